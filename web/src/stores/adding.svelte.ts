// Adding bodies: one, or many at places that are shown before.

import { count as counted, shown } from "../text";
import type { Model } from "../generated/messages";
import type { World } from "../view/world";
import type { Asks, Pose, Redraw, Says } from "./ports";

export const ARRANGEMENTS = {
  near: "near the home of the map",
  random: "at random free places",
  grid: "in rows and columns",
  line: "along a line",
} as const;
export type Arrangement = keyof typeof ARRANGEMENTS;

/** Bodies that are selected once they are there: of more, each would be measured and listed. */
export const MAX_SELECTED = 5;

/** Bodies that are about to be added. */
export interface Batch {
  model: string;
  count: number;
  arrangement: Arrangement;
  /** Two points: corners of an area, or ends of a line, m in the world's frame; null: all of the map. */
  area: [number, number, number, number] | null;
  seed: number;
}

export class Adding {
  /** What is shown in the world, and is added by `confirm`; null: nothing. */
  batch = $state.raw<Batch | null>(null);
  /** Free places that were found; fewer than wanted: there is no more room. */
  places = $state.raw<Pose[]>([]);
  busy = $state(false);
  /** An area, or the ends of a line, is being drawn. */
  drawing = $state(false);
  private asked = 0;

  constructor(
    private world: Pick<World, "preview" | "schema">,
    private session: Asks & { readonly catalog: { models: Model[] } | null },
    private notices: Says,
    private selection: { set(names: string[]): void },
    private tools: { set(tool: "area" | "select"): void },
    private redraw: Redraw,
    private group: () => number,
  ) {}

  model(name: string): Model | undefined {
    return this.session.catalog?.models.find((m) => m.name === name);
  }

  /** Add one body, or some around a pose. Whether they were added. */
  async add(model: string, name: string, count: number, pose: Pose | null = null): Promise<boolean> {
    const at = pose ? { x: pose[0], y: pose[1], th: pose[2] } : {};
    const names = await this.session.ask<string[]>({ type: "add", model, name, count, ...at, group: this.group() });
    if (names) this.added(names);
    return names !== undefined;
  }

  private added(names: string[]): void {
    if (!names.length) return;
    const some = names.slice(0, 3).map((n) => shown(n)).join(", "); // prettier-ignore
    this.notices.offer(`${some}${names.length > 3 ? ` and ${names.length - 3} more` : ""} added`);
    if (names.length <= MAX_SELECTED) this.selection.set(names);
  }

  // -- many, with a preview

  /** Show where bodies would stand. */
  async preview(batch: Batch): Promise<void> {
    this.batch = batch;
    const number = ++this.asked;
    this.busy = true;
    const { model, count, arrangement, area, seed } = batch;
    const places = await this.session.ask<Pose[]>({ type: "places", model, count, arrangement, area, seed });
    if (number !== this.asked) return; // another one was asked for meanwhile
    this.busy = false;
    this.places = places ?? [];
    this.show();
  }

  private show(): void {
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const model = this.model(this.batch?.model ?? "");
    const poses = this.places.map(([x, y, th]): Pose => [x - ox, y - oy, th]);
    this.world.preview = model && poses.length ? { model, poses } : null;
    this.redraw();
  }

  /** Show other random places. */
  async again(): Promise<void> {
    if (this.batch) await this.preview({ ...this.batch, seed: this.batch.seed + 1 });
  }

  /** Draw the area, or the line. */
  draw(): void {
    this.drawing = true;
    this.tools.set("area");
    this.notices.say(this.batch?.arrangement === "line" ? "drag from the start to the end of the line" : "drag from one corner of the area to the other");
  }

  /** The area was drawn. */
  drawn(from: readonly [number, number], to: readonly [number, number]): void {
    this.drawing = false;
    if (this.batch) void this.preview({ ...this.batch, area: [...from, ...to] as Batch["area"] });
  }

  /** Add what is shown. */
  async confirm(): Promise<void> {
    const { batch, places } = this;
    if (!batch || !places.length || this.busy) return;
    this.busy = true;
    const names = await this.session.ask<string[]>({ type: "add", model: batch.model, count: places.length, places, group: this.group() });
    this.busy = false;
    if (!names) return;
    this.cancel();
    this.added(names);
    if (places.length < batch.count) this.notices.say(`there is room for ${counted(places.length, "body", "bodies")} only`);
  }

  cancel(): void {
    this.asked++;
    if (this.drawing) this.tools.set("select");
    this.batch = null;
    this.places = [];
    this.busy = this.drawing = false;
    this.world.preview = null;
    this.redraw();
  }
}
