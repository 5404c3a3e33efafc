// Drawing, moving and erasing walls, zones and places of the map. It is loaded when the world is edited.

import type { EditMap, PlaceToAdd, SetZone } from "../generated/messages";
import type { Place, WorldMap, Zone } from "../net/frames";
import { distance, nearestEnd } from "../view/near";
import { inPolygon, type Stroke, type World } from "../view/world";
import type { Asks, Redraw, Says } from "./ports";

type Point = readonly [number, number];
type Wall = [number, number, number, number];
export type Subject = { wall: Wall } | { place: Place } | { zone: Zone };

export const MODES = { wall: "Wall", zone: "Zone", goal: "Goal", dock: "Dock", move: "Move", erase: "Erase" } as const;
export type Mode = keyof typeof MODES;

/** Kinds of zones, with what they do to robots. */
export const ZONES = {
  slippery: { slip: 0.5 },
  slow: { speed_limit: 0.3 },
  hole: { hole: true },
  painted: { color: "#e8c34a" },
} as const satisfies Record<string, Partial<SetZone>>;
export type ZoneKind = keyof typeof ZONES;

/** Points are snapped to this grid, m. */
export const GRID = 0.1;
/** Nearer than this, pixels, is at it. */
const NEAR = 10;
/** Dragged farther than this, pixels, a place has a heading, and a wall a length. */
const TURNS = 8;

export class Editing {
  mode = $state<Mode>("wall");
  zone = $state<ZoneKind>("slippery");
  /** Of the next place or zone; "": a free one. */
  name = $state("");
  snaps = $state(true);
  /** A wall, or a way, that is being drawn. */
  stroke: Stroke | null = null;
  private moved: Subject | null = null;

  constructor(
    private world: Pick<World, "map" | "boxSelect" | "goal" | "schema">,
    private camera: { readonly scale: number },
    private session: Asks,
    private notices: Says & { offer(text: string): void },
    private redraw: Redraw,
  ) {}

  /** The left button or the keys: from one point to another, m in the world's frame. */
  async use(start: Point, end: Point, done: boolean): Promise<void> {
    const { mode, world } = this;
    const snaps = mode === "wall" || mode === "zone";
    const [from, to] = snaps ? [this.snapped(start), this.snapped(end)] : [start, end];
    this.stroke = world.boxSelect = world.goal = null;
    const long = Math.hypot(to[0] - from[0], to[1] - from[1]) * this.camera.scale > TURNS;
    if (!done) {
      if (mode === "wall" || mode === "move") this.stroke = { from: this.local(from), to: this.local(to) };
      else if (mode === "zone") world.boxSelect = { from: this.local(from), to: this.local(to) };
      else if (mode !== "erase") world.goal = { at: this.local(from), th: long ? Math.atan2(to[1] - from[1], to[0] - from[0]) : null };
      if (mode === "move") this.moved ??= this.at(from);
      this.redraw();
      return;
    }
    this.redraw();
    if (mode === "wall") {
      if (long) await this.edit({ add_walls: [[...from, ...to]] }, "wall drawn");
    } else if (mode === "zone") {
      if (long) await this.drawZone(from, to);
    } else if (mode === "erase") await this.erase(this.at(to));
    else if (mode === "move") await this.move(from, to);
    else await this.edit({ add_places: [this.newPlace(from, long ? Math.atan2(to[1] - from[1], to[0] - from[0]) : null)] }, `${mode} set`);
  }

  private async edit(change: Omit<EditMap, "type" | "id">, done: string): Promise<void> {
    if ((await this.session.ask({ type: "edit_map", ...change })) !== undefined) this.notices.offer(done);
  }

  private newPlace(at: Point, th: number | null): PlaceToAdd {
    const kind = this.mode === "dock" ? "Dock" : th === null ? "Goal" : "GoalWithHeading";
    const name = this.name.trim() || this.free(this.mode, this.world.map.places);
    this.name = "";
    return { kind, name, x: at[0], y: at[1], th };
  }

  private async drawZone(a: Point, b: Point): Promise<void> {
    const name = this.name.trim() || this.free(this.zone, this.world.map.floor?.zones ?? []);
    this.name = "";
    const corners: [number, number][] = [[a[0], a[1]], [b[0], a[1]], [b[0], b[1]], [a[0], b[1]]]; // prettier-ignore
    if ((await this.session.ask({ type: "set_zone", name, corners, ...ZONES[this.zone] })) !== undefined) this.notices.offer(`zone ${name} drawn`);
  }

  private free(stem: string, taken: readonly { name: string }[]): string {
    const names = new Set(taken.map((one) => one.name));
    for (let k = 1; ; k++) if (!names.has(`${stem} ${k}`)) return `${stem} ${k}`;
  }

  private async erase(what: Subject | null): Promise<void> {
    if (!what) this.notices.say("nothing of the map is here");
    else if ("wall" in what) await this.edit({ remove_walls: [what.wall] }, "wall erased");
    else if ("place" in what) await this.edit({ remove_places: [what.place.name] }, `${what.place.name || "place"} erased`);
    else if ((await this.session.ask({ type: "remove_zone", name: what.zone.name })) !== undefined) this.notices.offer(`zone ${what.zone.name} erased`);
  }

  private async move(from: Point, to: Point): Promise<void> {
    const what = this.moved ?? this.at(from);
    this.moved = null;
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    if (!what) this.notices.say("nothing of the map is here");
    else if ("wall" in what) {
      const [x0, y0, x1, y1] = what.wall;
      const [sx, sy] = this.snapped([x0 + dx, y0 + dy]);
      await this.edit({ remove_walls: [what.wall], add_walls: [[sx, sy, x1 + sx - x0, y1 + sy - y0]] }, "wall moved");
    } else if ("place" in what) {
      const { kind, name, pose, heading } = what.place;
      const place = { kind, name, x: pose[0] + dx, y: pose[1] + dy, th: heading ? pose[2] : null };
      await this.edit({ remove_places: [name], add_places: [place] }, `${name || "place"} moved`);
    } else {
      const { name, corners, color, slip, speed_limit, odometry_scale, hole } = what.zone;
      const there = corners.map(([x, y]): [number, number] => [x + dx, y + dy]);
      if ((await this.session.ask({ type: "set_zone", name, corners: there, color, slip, speed_limit, odometry_scale, hole })) !== undefined) this.notices.offer(`zone ${name} moved`);
    }
  }

  /** The place, wall or named zone at a point. */
  at(point: Point): Subject | null {
    const { map } = this.world;
    const near = NEAR / this.camera.scale;
    const place = nearest(map.places, (p) => Math.hypot(p.pose[0] - point[0], p.pose[1] - point[1]), near + 0.2);
    if (place) return { place };
    const walls = wallsOf(map);
    const wall = nearest(walls, (w) => distance(point, w), near);
    if (wall) return { wall };
    const zone = (map.floor?.zones ?? []).findLast((z) => z.name !== "" && inPolygon(z.corners, ...point));
    return zone ? { zone } : null;
  }

  /** Ends of walls that are near, else the grid. */
  private snapped(point: Point): [number, number] {
    if (!this.snaps) return [...point];
    const end = nearestEnd(this.world.map, point, NEAR / this.camera.scale);
    const round = (v: number) => Number((Math.round(v / GRID) * GRID).toFixed(6));
    return end ?? [round(point[0]), round(point[1])];
  }

  private local([x, y]: Point): [number, number] {
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    return [x - ox, y - oy];
  }
}

function wallsOf(map: WorldMap): Wall[] {
  const [ox, oy] = map.origin;
  const { walls } = map;
  return Array.from({ length: walls.length / 4 }, (_, k) => [walls[4 * k] + ox, walls[4 * k + 1] + oy, walls[4 * k + 2] + ox, walls[4 * k + 3] + oy]);
}

function nearest<T>(all: readonly T[], far: (one: T) => number, limit: number): T | null {
  let best: T | null = null;
  let least = limit;
  for (const one of all) {
    const d = far(one);
    if (d <= least) [best, least] = [one, d];
  }
  return best;
}
