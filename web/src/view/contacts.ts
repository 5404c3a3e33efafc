// Which walls, points and bodies an outline overlaps: shown while a body is dragged. The simulator decides what a contact means.

import type { World } from "./world";

export type Point = readonly [number, number];
export type Outline = readonly Point[];
type Segment = readonly [number, number, number, number];

/** Edge of a cell of the raster that finds walls, m. */
const CELL = 1;
/** Search for a free place: rings so far apart, m, up to this distance, with so many directions. */
const RING = 0.05;
const FARTHEST = 3;
const DIRECTIONS = 24;

function cross(ax: number, ay: number, bx: number, by: number): number {
  return ax * by - ay * bx;
}

/** Whether two segments cross. */
function crosses([ax, ay]: Point, [bx, by]: Point, [cx, cy, dx, dy]: Segment): boolean {
  const d1 = cross(bx - ax, by - ay, cx - ax, cy - ay);
  const d2 = cross(bx - ax, by - ay, dx - ax, dy - ay);
  const d3 = cross(dx - cx, dy - cy, ax - cx, ay - cy);
  const d4 = cross(dx - cx, dy - cy, bx - cx, by - cy);
  return d1 * d2 < 0 && d3 * d4 < 0;
}

function contains(outline: Outline, x: number, y: number): boolean {
  let inside = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [x1, y1] = outline[i];
    const [x2, y2] = outline[j];
    if (y1 > y !== y2 > y && x < x1 + ((y - y1) * (x2 - x1)) / (y2 - y1)) inside = !inside;
  }
  return inside;
}

/** Whether a segment lies in an outline, in part at least. */
function meets(outline: Outline, segment: Segment): boolean {
  if (contains(outline, segment[0], segment[1])) return true;
  return outline.some((a, i) => crosses(a, outline[(i + 1) % outline.length], segment));
}

function overlap(a: Outline, b: Outline): boolean {
  if (contains(a, ...b[0]) || contains(b, ...a[0])) return true;
  return b.some((from, i) => {
    const to = b[(i + 1) % b.length];
    return meets(a, [from[0], from[1], to[0], to[1]]);
  });
}

export class Contacts {
  private cells = new Map<string, number[]>();
  private segments: Segment[] = [];
  private version = -1;

  constructor(private world: Pick<World, "map" | "mapVersion" | "count" | "pose" | "radius" | "model" | "isHidden" | "schema">) {}

  /** Index the walls of the present map; its points count as small crosses. */
  private update(): void {
    const { map, mapVersion } = this.world;
    if (this.version === mapVersion) return;
    this.version = mapVersion;
    this.cells.clear();
    this.segments = [];
    const { walls, points, resolution: r } = map;
    for (let i = 0; i < walls.length; i += 4) this.add([walls[i], walls[i + 1], walls[i + 2], walls[i + 3]]);
    for (let i = 0; i < points.length; i += 2) this.add([points[i], points[i + 1], points[i] + r, points[i + 1] + r]);
  }

  private add(segment: Segment): void {
    const index = this.segments.push(segment) - 1;
    const [x0, y0, x1, y1] = segment;
    // a long wall is in the cells along it, not in all cells of its box
    const steps = Math.max(1, Math.ceil(Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0)) / CELL));
    for (let k = 0; k < steps; k++) {
      const [ax, ay, bx, by] = [k, k + 1].flatMap((s) => [x0 + ((x1 - x0) * s) / steps, y0 + ((y1 - y0) * s) / steps]);
      for (const key of keys(Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by))) {
        const cell = this.cells.get(key);
        if (!cell) this.cells.set(key, [index]);
        else if (cell[cell.length - 1] !== index) cell.push(index);
      }
    }
  }

  /** Polygons of a body at a pose, in the frame of what is drawn. */
  outlines(row: number, [x, y, th]: readonly [number, number, number]): Outline[] {
    const [c, s] = [Math.cos(th), Math.sin(th)];
    return this.world.model(row).parts.map((part) => part.map(([px, py]) => [x + c * px - s * py, y + s * px + c * py] as const));
  }

  /** The walls that a body would overlap at a pose; empty: none. */
  walls(row: number, at: readonly [number, number, number]): Segment[] {
    this.update();
    const r = this.world.radius[row];
    const found = new Set<number>();
    const outlines = this.outlines(row, at);
    const near = new Set([...keys(at[0] - r, at[1] - r, at[0] + r, at[1] + r)].flatMap((key) => this.cells.get(key) ?? []));
    for (const index of near) if (outlines.some((o) => meets(o, this.segments[index]))) found.add(index);
    return [...found].map((index) => this.segments[index]);
  }

  /** The bodies that a body would overlap at a pose, but for some. */
  bodies(row: number, at: readonly [number, number, number], without: ReadonlySet<number>): number[] {
    const { world } = this;
    const found: number[] = [];
    let mine: Outline[] | null = null;
    for (let other = 0; other < world.count; other++) {
      if (other === row || without.has(other)) continue;
      const pose = world.pose(other);
      if (Math.hypot(pose[0] - at[0], pose[1] - at[1]) > world.radius[row] + world.radius[other]) continue;
      mine ??= this.outlines(row, at);
      const theirs = this.outlines(other, pose);
      if (mine.some((a) => theirs.some((b) => overlap(a, b)))) found.push(other);
    }
    return found;
  }

  /** The nearest pose with the same heading at which a body overlaps nothing; null: none is near. */
  free(row: number, [x, y, th]: readonly [number, number, number], without: ReadonlySet<number>): [number, number, number] | null {
    for (let away = RING; away <= FARTHEST; away += RING)
      for (let k = 0; k < DIRECTIONS; k++) {
        const a = (2 * Math.PI * k) / DIRECTIONS;
        const at: [number, number, number] = [x + away * Math.cos(a), y + away * Math.sin(a), th];
        if (!this.walls(row, at).length && !this.bodies(row, at, without).length) return at;
      }
    return null;
  }
}

function* keys(x0: number, y0: number, x1: number, y1: number): Generator<string> {
  for (let j = Math.floor(y0 / CELL); j <= Math.floor(y1 / CELL); j++)
    for (let i = Math.floor(x0 / CELL); i <= Math.floor(x1 / CELL); i++) yield `${i},${j}`;
}
