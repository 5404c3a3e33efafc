// Names of bodies, places and areas, as many as there is room for: none covers a robot or another name, and none is cut by the window's edge.

import { Bit } from "../generated/messages";
import { degrees, fixed, shown } from "../text";
import type { Camera } from "./camera";
import { zoneLabel } from "./floor";
import type { World } from "./world";

type Ctx = CanvasRenderingContext2D;
export type Rect = [left: number, top: number, right: number, bottom: number];

/** Characters of a label, names of 64 and a mark. */
const MAX_LABEL = 80;
/** Bodies that are tried, and labels that are drawn, in one picture: measuring texts takes time. */
const MAX_TRIED = 400;
const MAX_DRAWN = 80;
/** Edge of a cell of the raster that finds overlaps, pixels. */
const CELL = 64;
/** Height of a line of text, pixels, and of the part above its base line. */
const LINE = 15;
const ASCENT = 11;
/** Least scales at which names of bodies, areas and places are drawn, pixels per metre. */
const BODIES_FROM = 6;
const AREAS_FROM = 12;
const PLACES_FROM = 14;
/** Least distance of a label from the window's edge, pixels. */
const MARGIN = 3;

/** The part of the window that is taken. */
export class Room {
  private cells = new Map<number, Rect[]>();

  add(rect: Rect): void {
    for (const key of keysOf(rect)) {
      const cell = this.cells.get(key);
      if (cell) cell.push(rect);
      else this.cells.set(key, [rect]);
    }
  }

  isFree(rect: Rect): boolean {
    for (const key of keysOf(rect))
      for (const other of this.cells.get(key) ?? [])
        if (rect[0] < other[2] && rect[2] > other[0] && rect[1] < other[3] && rect[3] > other[1]) return false;
    return true;
  }
}

function* keysOf([x0, y0, x1, y1]: Rect): Generator<number> {
  for (let j = Math.floor(y0 / CELL); j <= Math.floor(y1 / CELL); j++)
    for (let i = Math.floor(x0 / CELL); i <= Math.floor(x1 / CELL); i++) yield j * 65_536 + i;
}

/** The rectangle of a size, moved into the window; null: it is too large for it. */
export function inside(left: number, top: number, wide: number, high: number, width: number, height: number): Rect | null {
  if (wide > width - 2 * MARGIN || high > height - 2 * MARGIN) return null;
  const x = Math.min(Math.max(left, MARGIN), width - MARGIN - wide);
  const y = Math.min(Math.max(top, MARGIN), height - MARGIN - high);
  return [x, y, x + wide, y + high];
}

/** The state of a body in words. */
export function stateWords(state: number): string[] {
  const words: string[] = [];
  if (state & Bit.ESTOP) words.push("emergency stop");
  if (state & Bit.STALLED) words.push("stalled");
  if (state & Bit.HELD) words.push("held");
  return words;
}

export function drawText(ctx: Ctx, world: World, foreign: string, x: number, y: number, color: string): void {
  const words = shown(foreign, MAX_LABEL);
  ctx.strokeStyle = world.palette.labelGround;
  ctx.lineWidth = 3;
  ctx.strokeText(words, x, y);
  ctx.fillStyle = color;
  ctx.fillText(words, x, y);
}

type Line = [words: string, color: string];

export class Labels {
  /** Widths of texts, pixels: measuring is slow, and names stay. */
  private widths = new Map<string, number>();
  /** Corner of the body at which its label was drawn last: it stays there while there is room. */
  private corners = new Map<string, number>();
  /** What was drawn in the last picture: name and rectangle. */
  drawn: [string, Rect][] = [];

  draw(ctx: Ctx, world: World, camera: Camera): void {
    const room = new Room();
    this.drawn = [];
    if (this.widths.size > 5000) this.widths.clear();
    if (this.corners.size > 5000) this.corners.clear();
    this.takeBodies(room, world, camera);
    if (world.layers.labels || world.layers.pose || world.hovered >= 0) this.bodies(ctx, room, world, camera);
    if (world.layers.places && camera.scale > PLACES_FROM) this.places(ctx, room, world, camera);
    if (camera.scale <= AREAS_FROM) return;
    const { areas, floor } = world.map;
    if (world.layers.areas) for (const { name, corners } of areas) this.area(ctx, room, world, camera, name, corners[0]);
    if (world.layers.floor) for (const zone of floor?.zones ?? []) this.area(ctx, room, world, camera, zoneLabel(zone), zone.corners[0]);
  }

  /** Bodies and symbols of places are not covered. */
  private takeBodies(room: Room, world: World, camera: Camera): void {
    if (world.layers.bodies)
      for (const row of world.within(camera.box(1))) {
        const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
        const r = Math.max(3, 0.8 * world.radius[row] * camera.scale);
        room.add([x - r, y - r, x + r, y + r]);
      }
    if (!world.layers.places) return;
    const [ox, oy] = world.map.origin;
    for (const { pose } of world.map.places) {
      const [x, y] = camera.toScreen(pose[0] - ox, pose[1] - oy);
      if (x > 0 && y > 0 && x < camera.width && y < camera.height) room.add([x - 6, y - 6, x + 6, y + 6]);
    }
  }

  private width(ctx: Ctx, words: string): number {
    let width = this.widths.get(words);
    if (width === undefined) this.widths.set(words, (width = ctx.measureText(words).width));
    return width;
  }

  /** Draw lines at the first of some corners (left or right edge, top) with room; the number of the corner, −1: none. */
  private put(ctx: Ctx, room: Room, world: World, camera: Camera, key: string, lines: Line[], corners: [x: number, y: number, toLeft: boolean][], force = false): number {
    const texts = lines.map(([words, color]) => [shown(words, MAX_LABEL), color] as const);
    const wide = Math.max(...texts.map(([words]) => this.width(ctx, words)));
    const high = LINE * lines.length;
    let found = -1;
    let at: Rect | null = null;
    for (let k = 0; k < corners.length && found < 0; k++) {
      const [x, y, toLeft] = corners[k];
      const rect = inside(toLeft ? x - wide : x, y, wide, high, camera.width, camera.height);
      if (rect && room.isFree(rect)) [found, at] = [k, rect];
      else if (rect && force) at ??= rect;
    }
    if (!at) return -1;
    room.add(at);
    this.drawn.push([key, at]);
    texts.forEach(([words, color], k) => drawText(ctx, world, words, at[0], at[1] + ASCENT + LINE * k, color));
    return found;
  }

  // -- bodies

  private bodies(ctx: Ctx, room: Room, world: World, camera: Camera): void {
    if (!world.frame || !world.schema) return;
    const { state } = world.frame;
    const urgent = Bit.ESTOP | Bit.STALLED;
    const rank = (row: number) => (row === world.hovered ? 0 : world.selected.has(row) ? 1 : state[row] & urgent ? 2 : 3);
    const rows = world
      .within(camera.box())
      .filter((row) => world.schema!.bodies[row].robot || rank(row) < 2)
      .filter((row) => camera.scale >= BODIES_FROM || rank(row) < 2)
      .map((row) => [rank(row), row])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let first = true; // of the selected ones
    for (const [order, row] of rows.slice(0, MAX_TRIED)) {
      if (this.drawn.length >= MAX_DRAWN) break;
      const force = order === 0 || (order === 1 && first);
      if (order === 1) first = false;
      this.body(ctx, room, world, camera, row, force);
    }
  }

  private body(ctx: Ctx, room: Room, world: World, camera: Camera, row: number, force: boolean): void {
    const { name } = world.schema!.bodies[row];
    const lines = this.words(world, row);
    if (!lines.length) return;
    const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
    const r = Math.max(6, world.radius[row] * camera.scale);
    const [side, high] = [r * 0.8 + 4, LINE * lines.length];
    const corners: [number, number, boolean][] = [
      [x + side, y - r * 0.75 - ASCENT, false],
      [x + side, y + r * 0.75 - 4, false],
      [x - side, y - r * 0.75 - ASCENT, true],
      [x - side, y + r * 0.75 - 4, true],
      [x + side, y - high / 2, false],
    ];
    const last = this.corners.get(name) ?? 0;
    const order = [last, ...corners.keys()];
    const found = this.put(ctx, room, world, camera, name, lines, order.map((k) => corners[k]), force);
    if (found >= 0) this.corners.set(name, order[found]);
  }

  private words(world: World, row: number): Line[] {
    const { palette, layers, schema, frame } = world;
    const lines: Line[] = [];
    const isPointed = row === world.hovered;
    if (layers.labels || isPointed) {
      const { name } = schema!.bodies[row];
      lines.push([frame!.state[row] & Bit.CLIENT ? `● ${name}` : name, palette.label]);
      const words = stateWords(frame!.state[row]);
      if (words.length) lines.push([words.join(", "), palette.stalled]);
    }
    if ((layers.pose && row < schema!.robots) || isPointed) {
      const [ox, oy] = schema!.origin;
      const [x, y, th] = world.pose(row);
      lines.push([`${fixed(x + ox, 2)}, ${fixed(y + oy, 2)} m, ${degrees(th)}`, palette.label]);
    }
    return lines;
  }

  // -- the map

  private places(ctx: Ctx, room: Room, world: World, camera: Camera): void {
    const [ox, oy] = world.map.origin;
    for (const { name, pose } of world.map.places) {
      const [x, y] = camera.toScreen(pose[0] - ox, pose[1] - oy);
      if (!name || x < 0 || y < 0 || x > camera.width || y > camera.height) continue;
      const corners: [number, number, boolean][] = [
        [x + 10, y + 3, false],
        [x + 10, y - 18, false],
        [x - 10, y + 3, true],
        [x - 10, y - 18, true],
      ];
      this.put(ctx, room, world, camera, name, [[name, world.palette.place]], corners);
    }
  }

  /** The name of an area or zone at its first corner. */
  private area(ctx: Ctx, room: Room, world: World, camera: Camera, name: string, corner: readonly [number, number]): void {
    const [ox, oy] = world.map.origin;
    const [x, y] = camera.toScreen(corner[0] - ox, corner[1] - oy);
    if (!name || x < 0 || y < 0 || x > camera.width || y > camera.height) return;
    const places: [number, number, boolean][] = [[x + 4, y - LINE, false], [x + 4, y + 2, false], [x - 4, y - LINE, true], [x - 4, y + 2, true]]; // prettier-ignore
    this.put(ctx, room, world, camera, name, [[name, world.palette.badArea]], places);
  }
}
