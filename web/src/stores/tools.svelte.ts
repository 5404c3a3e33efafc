// Tools of the left button besides selecting and moving: measure, place new bodies, select the bodies in a box.

import type { Model } from "../generated/messages";
import { shown } from "../text";
import type { Camera } from "../view/camera";
import type { World } from "../view/world";
import type { Asks, Redraw, Says } from "./ports";

export type Tool = "select" | "measure" | "place";

export interface Placing {
  model: string;
  count: number;
  name: string;
}

/** Nearer than this, pixels, two points are one: a measurement that was clicked away. */
const SAME = 3;
/** Dragged farther than this, pixels, a body that is placed points where the hand went. */
const TURNS = 8;

export class Tools {
  tool = $state<Tool>("select");
  placing = $state.raw<Placing | null>(null);

  constructor(
    private world: Pick<World, "measure" | "boxSelect" | "preview" | "schema" | "within">,
    private camera: Pick<Camera, "toWorld">,
    private session: Asks & { readonly catalog: { models: Model[] } | null },
    private notices: Says,
    private redraw: Redraw,
  ) {}

  set(tool: Tool): void {
    this.cancel();
    this.tool = tool;
  }

  startPlacing(placing: Placing): void {
    this.set("place");
    this.placing = placing;
  }

  cancel(): void {
    this.tool = "select";
    this.placing = null;
    this.world.preview = null;
    this.world.measure = null;
    this.redraw();
  }

  /** Draw a box around bodies, points in pixels. When it is done: the rows in it; else, or if it is a point, null. */
  box(fromX: number, fromY: number, x: number, y: number, done: boolean): number[] | null {
    const from = this.camera.toWorld(fromX, fromY);
    const to = this.camera.toWorld(x, y);
    this.world.boxSelect = done ? null : { from, to };
    this.redraw();
    if (!done || (fromX === x && fromY === y)) return null;
    return this.world.within([Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])]);
  }

  measure(fromX: number, fromY: number, x: number, y: number, done: boolean): void {
    const same = Math.hypot(x - fromX, y - fromY) < SAME;
    this.world.measure = done && same ? null : { from: this.camera.toWorld(fromX, fromY), to: this.camera.toWorld(x, y) };
    this.redraw();
  }

  place(x: number, y: number, toX: number, toY: number, done: boolean): void {
    const { placing } = this;
    const model = this.session.catalog?.models.find((m) => m.name === placing?.model);
    if (!placing || !model) return;
    const [wx, wy] = this.camera.toWorld(x, y);
    const th = Math.hypot(toX - x, toY - y) > TURNS ? Math.atan2(y - toY, toX - x) : 0;
    if (done) {
      this.cancel();
      void this.add(placing, wx, wy, th);
    } else this.world.preview = { model, x: wx, y: wy, th };
    this.redraw();
  }

  private async add({ model, name, count }: Placing, x: number, y: number, th: number): Promise<void> {
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const names = await this.session.ask<string[]>({ type: "add", model, name, count, x: x + ox, y: y + oy, th });
    if (names) this.notices.say(`${names.map((n) => shown(n)).join(", ")} added`);
  }
}
