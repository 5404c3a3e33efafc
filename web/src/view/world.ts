// Everything that renderers draw, in plain arrays; the panels have their own, slower copy of what they show.

import type { DebugResult, Model, Schema } from "../generated/messages";
import { NO_MAP, type FieldLevels, type Frame, type WorldMap } from "../net/frames";
import { Trails } from "./trails";
import { defaultLayers, type Layers } from "./layers";
import { LIGHT, ROBOT_COLORS, type Palette } from "./palette";
import type { Box, Camera } from "./camera";

/** Most lasers in view that are drawn as filled fields; of more, only the points are. */
export const MAX_FILLED = 50;
/** Most labels in view. */
export const MAX_LABELS = 50;

export type ColorBy = "auto" | "model" | "robot";

export interface Trip {
  goals: [number, number, number | null][];
  path: [number, number][];
  /** Whether the robot cannot go on. */
  blocked: boolean;
}

/** Draws something on the world that is loaded when it is needed. */
export type Drawer = (ctx: CanvasRenderingContext2D, world: World, camera: Camera) => void;

export interface Stroke {
  from: [number, number];
  to: [number, number];
}

export class World {
  schema: Schema | null = null;
  frame: Frame | null = null;
  map: WorldMap = NO_MAP;
  /** Count changes, so that renderers know when to upload. */
  schemaVersion = 0;
  mapVersion = 0;
  frameVersion = 0;
  /** The last levels of each pheromone field, which only some frames have. */
  fields = new Map<number, FieldLevels>();
  fieldVersion = 0;
  trails = new Trails();
  layers: Layers = defaultLayers();
  palette: Palette = LIGHT;
  paletteVersion = 0;
  /** Of the models; one each; or one each only to robots that would look like another. */
  colorBy: ColorBy = "auto";
  private colors: string[] = [];
  private colorsOf: [unknown, ColorBy] = [null, "auto"];
  /** Rows. */
  selected = new Set<number>();
  hovered = -1;
  hidden = new Set<string>();
  rows = new Map<string, number>();
  radius: Float32Array = new Float32Array(0);
  /** What draws under the names of bodies, and above all. */
  readonly under = new Set<Drawer>();
  readonly over = new Set<Drawer>();
  boxSelect: Stroke | null = null;
  /** Where a dragged body is shown until the simulator says the same: row → x, y, th. */
  dragged = new Map<number, [number, number, number]>();
  /** Detections of selected robots' devices, by the robots' names: x, y in the robot's frame, and the label. */
  marks = new Map<string, [number, number, string][]>();
  /** What dragged bodies overlap: rows of bodies, and walls. */
  overlaps: { rows: number[]; walls: [number, number, number, number][] } | null = null;
  debug: DebugResult | null = null;
  /** Bodies that are about to be placed. */
  preview: { model: Model; poses: [number, number, number][] } | null = null;
  /** A goal that is being chosen. */
  goal: { at: [number, number]; th: number | null } | null = null;
  /** The cross that keys move. */
  cross: [number, number] | null = null;
  /** Draws the run of traffic, while its panel is open. */
  traffic: ((ctx: CanvasRenderingContext2D, camera: Camera) => void) | null = null;
  /** Where robots are going, by name: corners of the path from the goal's map, m from the origin of what is drawn. */
  trips = new Map<string, Trip>();

  setSchema(schema: Schema): void {
    const old = this.schema;
    this.schema = schema;
    this.rows = new Map(schema.bodies.map((b, i) => [b.name, i]));
    this.radius = Float32Array.from(schema.bodies, (b) => {
      let r = 0.05;
      for (const part of schema.models[b.model].parts) for (const [x, y] of part) r = Math.max(r, Math.hypot(x, y));
      return r;
    });
    const same = old && old.robots === schema.robots && old.bodies.every((b, i) => b.name === schema.bodies[i]?.name);
    const moved = old && (old.origin[0] !== schema.origin[0] || old.origin[1] !== schema.origin[1]);
    if (!same || moved) this.trails.reset(schema.robots);
    this.dragged.clear();
    this.hovered = -1;
    this.debug = null;
    this.frame = null; // it has the rows of the old schema
    this.schemaVersion++;
  }

  setMap(map: WorldMap): void {
    this.map = map;
    this.mapVersion++;
    this.fields.clear();
  }

  /** Take a frame; false if its rows do not match the schema. */
  setFrame(frame: Frame): boolean {
    const n = this.schema?.bodies.length ?? -1;
    if (frame.schema !== this.schema?.number || frame.pose.length !== 3 * n) return false;
    this.frame = frame;
    for (const [row, [x, y, th]] of this.dragged) frame.pose.set([x, y, th], 3 * row);
    for (const one of frame.fields) this.fields.set(one.field, one);
    if (frame.fields.length) this.fieldVersion++;
    this.trails.add(frame.time, frame.pose);
    this.frameVersion++;
    return true;
  }

  get count(): number {
    return this.frame ? this.frame.pose.length / 3 : 0;
  }

  pose(row: number): [number, number, number] {
    const p = this.frame?.pose;
    return p ? [p[3 * row], p[3 * row + 1], p[3 * row + 2]] : [0, 0, 0];
  }

  model(row: number): Model {
    const schema = this.schema!;
    return schema.models[schema.bodies[row].model];
  }

  color(row: number): string {
    if (this.colorsOf[0] !== this.schema || this.colorsOf[1] !== this.colorBy) this.recolor();
    return this.colors[row];
  }

  private recolor(): void {
    const { schema, colorBy } = this;
    this.colorsOf = [schema, colorBy];
    const { bodies, models } = schema!;
    const times = new Map<string, number>();
    for (const b of bodies) if (b.kind === "robot") times.set(models[b.model].color, (times.get(models[b.model].color) ?? 0) + 1);
    this.colors = bodies.map((b) => {
      const own = models[b.model].color;
      const another = b.kind === "robot" && (colorBy === "robot" || (colorBy === "auto" && times.get(own)! > 1));
      return another ? ROBOT_COLORS[b.color % ROBOT_COLORS.length] : own;
    });
  }

  isHidden(row: number): boolean {
    return this.hidden.size > 0 && this.hidden.has(this.model(row).name);
  }

  /** The body at a point, the smallest of several; −1: none. `reach`: distance from the body that still counts, m. */
  pick(x: number, y: number, reach: number): number {
    let best = -1;
    let least = Infinity;
    const pose = this.frame?.pose;
    if (!pose || !this.layers.bodies) return -1;
    for (let i = 0, n = this.count; i < n; i++) {
      const away = Math.hypot(pose[3 * i] - x, pose[3 * i + 1] - y);
      const r = this.radius[i];
      if (away > r + reach || this.isHidden(i)) continue;
      const inside = this.contains(i, x, y);
      const size = inside ? r : r + away + 10;
      if (size < least) [best, least] = [i, size];
    }
    return best;
  }

  private contains(row: number, x: number, y: number): boolean {
    const [px, py, th] = this.pose(row);
    const c = Math.cos(th);
    const s = Math.sin(th);
    const lx = c * (x - px) + s * (y - py);
    const ly = -s * (x - px) + c * (y - py);
    return this.model(row).parts.some((part) => inPolygon(part, lx, ly));
  }

  within(box: Box): number[] {
    return this.where((x, y) => x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3]);
  }

  /** Bodies for which a point passes a test. */
  where(test: (x: number, y: number) => boolean): number[] {
    const found: number[] = [];
    for (let i = 0; i < this.count; i++) {
      const [x, y] = this.pose(i);
      if (test(x, y) && !this.isHidden(i)) found.push(i);
    }
    return found;
  }

  /** The drawn world: map and bodies. */
  bounds(): Box {
    let box: Box = [Infinity, Infinity, -Infinity, -Infinity];
    const b = this.map.bounds;
    const [ox, oy] = this.map.origin;
    if (b) box = [b[0] - ox, b[1] - oy, b[2] - ox, b[3] - oy];
    for (let i = 0; i < this.count; i++) {
      const [x, y] = this.pose(i);
      const r = b ? this.radius[i] : this.radius[i] + 3;
      box = [Math.min(box[0], x - r), Math.min(box[1], y - r), Math.max(box[2], x + r), Math.max(box[3], y + r)];
    }
    return box[0] <= box[2] ? box : [-10, -10, 10, 10];
  }
}

export function inPolygon(corners: readonly (readonly [number, number])[], x: number, y: number): boolean {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [x1, y1] = corners[i];
    const [x2, y2] = corners[j];
    if (y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) inside = !inside;
  }
  return inside;
}

/** The middle of the ranges' jumps: neighbours that differ by more are not joined (m). */
export function isJump(a: number, b: number): boolean {
  return Math.abs(a - b) > 0.3 + 0.08 * Math.min(a, b);
}
