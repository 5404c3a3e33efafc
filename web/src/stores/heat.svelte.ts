// Heat maps: asked for while they are shown, drawn under the names of robots. It is loaded when they are opened.

import type { Heat as HeatRequest, HeatResult } from "../generated/messages";
import { clipBodies, drawHeat, pixels, type HeatMap } from "../view/heat";
import type { Drawer, World } from "../view/world";
import type { Asks, Redraw } from "./ports";

export type Quantity = HeatRequest["what"];

export const QUANTITIES: Record<Quantity, { label: string; unit: string; about: string }> = {
  visits: { label: "Visits", unit: "visits", about: "robots that entered the cell" },
  time: { label: "Time", unit: "s", about: "time of robots in the cell" },
  stalls: { label: "Stalls", unit: "s", about: "time of stalled robots" },
  waits: { label: "Waits", unit: "s", about: "time of robots that stand although they have a goal" },
  visited: { label: "Coverage: visited", unit: "", about: "cells that robots covered" },
  seen: { label: "Coverage: seen", unit: "", about: "cells that lasers and sonars reached" },
};

/** Heat maps are asked for so often, ms. */
const PERIOD = 1000;

export class Heat {
  quantity = $state<Quantity>("visits");
  logarithmic = $state(false);
  result = $state.raw<(HeatResult & HeatMap) | null>(null);
  private picture: HTMLCanvasElement | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private world: Pick<World, "under" | "schema" | "map" | "palette">,
    private session: Asks & { readonly status: string },
    private redraw: Redraw,
  ) {}

  /** Show heat maps until the returned function is called. */
  open(): () => void {
    this.world.under.add(this.draw);
    void this.look();
    this.timer = setInterval(() => void this.look(), PERIOD);
    return () => {
      clearInterval(this.timer);
      this.world.under.delete(this.draw);
      this.result = null;
      this.redraw();
    };
  }

  set(quantity: Quantity): void {
    this.quantity = quantity;
    void this.look();
  }

  setLogarithmic(on: boolean): void {
    this.logarithmic = on;
    this.paint();
  }

  async reset(): Promise<void> {
    await this.session.ask({ type: "reset_heat" }, "counted from now on");
    await this.look();
  }

  async look(): Promise<void> {
    const { quantity, session } = this;
    if (session.status !== "open") return;
    const answer = await session.ask<HeatResult>({ type: "heat", what: quantity });
    if (!answer) {
      if (quantity === this.quantity && quantity === "seen") this.quantity = "visited"; // an earlier moment has no beams
      return;
    }
    const values = await unpacked(answer.values);
    if (quantity !== this.quantity) return; // another one was chosen meanwhile
    this.result = { ...answer, values: values as Float32Array & string };
    this.paint();
  }

  private paint(): void {
    const { result } = this;
    this.picture = null;
    if (result && result.rows * result.columns > 0) {
      this.picture = document.createElement("canvas");
      [this.picture.width, this.picture.height] = [result.columns, result.rows];
      this.picture.getContext("2d")!.putImageData(new ImageData(pixels(result, this.logarithmic), result.columns), 0, 0);
    }
    this.redraw();
  }

  private draw: Drawer = (ctx, world, camera) => {
    const [ox, oy] = world.schema?.origin ?? [0, 0];
    if (!this.picture || !this.result) return;
    ctx.save();
    if (world.layers.bodies) clipBodies(ctx, world, camera);
    drawHeat(ctx, camera, this.picture, this.result, this.result.x - ox, this.result.y - oy);
    ctx.restore();
  };

  /** The value of the cell at a point of the world's frame; null: there is no heat map. */
  at([x, y]: readonly [number, number]): number | null {
    const map = this.result;
    if (!map) return null;
    const [column, row] = [Math.floor((x - map.x) / map.edge), Math.floor((y - map.y) / map.edge)];
    return column >= 0 && column < map.columns && row >= 0 && row < map.rows ? map.values[row * map.columns + column] : 0;
  }

  /** The value at a point, in words. */
  words(at: readonly [number, number]): string {
    const { unit } = QUANTITIES[this.quantity];
    const value = this.at(at) ?? 0;
    if (!unit) return value ? "yes" : "no";
    return `${Number(value.toFixed(2))} ${unit}`;
  }

  /** The cells with a value, for other programs: their centres and values. */
  csv(): string {
    const map = this.result;
    const { quantity } = this;
    const { unit } = QUANTITIES[quantity];
    const lines = [`x_m,y_m,${quantity}${unit === "s" ? "_s" : ""}`];
    map?.values.forEach((value, k) => {
      if (value <= 0) return;
      const [column, row] = [k % map.columns, Math.floor(k / map.columns)];
      lines.push([map.x + (column + 0.5) * map.edge, map.y + (row + 0.5) * map.edge, value].map((v) => String(Number(v.toFixed(4)))).join());
    });
    return lines.join("\n") + "\n";
  }
}

/** Values of a heat map, as they come: float32, packed, in base64. */
export async function unpacked(text: string): Promise<Float32Array> {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Float32Array(await new Response(stream).arrayBuffer());
}
