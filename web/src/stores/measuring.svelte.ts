// Rulers, angles and areas on the world. It is loaded when the first one is drawn, and keeps them while the page is open.

import { degrees } from "../text";
import type { Camera } from "../view/camera";
import { angleOf, areaOf, drawArc, drawLine, edgeOf, lengthWords, type Point } from "../view/measures";
import { nearestEnd } from "../view/near";
import type { Drawer, World } from "../view/world";
import type { Redraw } from "./ports";

export const KINDS = { length: "Length", angle: "Angle", area: "Area" } as const;
export type Kind = keyof typeof KINDS;
/** Points after which a figure is complete; an area is closed by hand. */
const COMPLETE: Record<Kind, number> = { length: 2, angle: 3, area: Infinity };
/** Nearer than this, pixels, is at it. */
const NEAR = 10;
/** Dragged farther than this, pixels, a hand has drawn a line; else it has clicked. */
const DRAGGED = 4;

/** A point in the world's frame, m; with a body, it goes where the body goes. */
interface Anchor {
  at: Point;
  body: string;
}

interface Figure {
  number: number;
  kind: Kind;
  points: Anchor[];
}

export interface Row {
  number: number;
  kind: Kind;
  words: string;
}

export class Measuring {
  kind = $state<Kind>("length");
  snaps = $state(true);
  /** Complete figures, with their values. */
  rows = $state.raw<Row[]>([]);
  /** Points of the figure that is being drawn. */
  begun = $state(0);
  private figures: Figure[] = [];
  private points: Anchor[] = [];
  /** Where the hand is. */
  private hand: Anchor | null = null;
  private last = 0;

  constructor(
    private world: Pick<World, "map" | "schema" | "rows" | "pose" | "pick" | "over">,
    private camera: Pick<Camera, "scale">,
    private redraw: Redraw,
  ) {
    world.over.add(this.draw);
  }

  setKind(kind: Kind): void {
    this.kind = kind;
    this.abandon();
  }

  /** The hand is somewhere, m in the world's frame, and draws nothing yet; null: it is away. */
  hover(at: Point | null): void {
    this.hand = at && this.anchor(at);
    this.redraw();
  }

  /** A click, or a drag from one point to another, m in the world's frame. */
  use(from: Point, to: Point, done: boolean): void {
    const dragged = Math.hypot(to[0] - from[0], to[1] - from[1]) * this.camera.scale > DRAGGED;
    if (dragged && !this.points.length) this.add(this.anchor(from));
    this.hand = this.anchor(to);
    if (done) this.add(this.hand);
    this.redraw();
  }

  private add(point: Anchor): void {
    if (this.kind === "area" && this.points.length > 2 && this.isNear(point.at, this.place(this.points[0]))) {
      this.close();
      return;
    }
    this.points.push(point);
    this.begun = this.points.length;
    if (this.begun === COMPLETE[this.kind]) this.complete();
  }

  /** Close an area of at least three points. */
  close(): void {
    if (this.kind === "area" && this.points.length > 2) this.complete();
  }

  private complete(): void {
    this.figures.push({ number: ++this.last, kind: this.kind, points: this.points });
    this.abandon();
  }

  /** Forget the points of the figure that is being drawn. */
  abandon(): void {
    this.points = [];
    this.begun = 0;
    this.hand = null;
    this.show();
  }

  remove(number: number): void {
    this.figures = this.figures.filter((f) => f.number !== number);
    this.show();
  }

  clear(): void {
    this.figures = [];
    this.abandon();
  }

  private isNear(a: Point, b: Point): boolean {
    return Math.hypot(a[0] - b[0], a[1] - b[1]) * this.camera.scale <= NEAR;
  }

  /** The end of a wall, or the body, that is near a point; else the point. */
  private anchor(at: Point): Anchor {
    const { world, camera } = this;
    if (this.snaps) {
      const near = NEAR / camera.scale;
      const end = nearestEnd(world.map, at, near);
      if (end) return { at: end, body: "" };
      const [ox, oy] = world.schema?.origin ?? [0, 0];
      const row = world.pick(at[0] - ox, at[1] - oy, near);
      if (row >= 0) return { at, body: world.schema?.bodies[row].name ?? "" };
    }
    return { at, body: "" };
  }

  private place(point: Anchor): Point {
    const row = point.body ? this.world.rows.get(point.body) : undefined;
    if (row !== undefined) {
      const [ox, oy] = this.world.schema?.origin ?? [0, 0];
      const [x, y] = this.world.pose(row);
      point.at = [x + ox, y + oy]; // it stays there when the body goes
    }
    return point.at;
  }

  private words(kind: Kind, points: readonly Point[]): string {
    if (points.length < 2) return "";
    if (kind === "length") return lengthWords(points[0], points[1]);
    if (kind === "angle") return points.length < 3 ? "" : degrees(angleOf(points));
    return points.length < 3 ? "" : `${areaOf(points).toFixed(3)} m², edge ${edgeOf(points).toFixed(2)} m`;
  }

  /** Values of all figures; robots that they are fixed to may have moved. */
  private show(): void {
    const rows = this.figures.map(({ number, kind, points }) => ({ number, kind, words: this.words(kind, points.map((p) => this.place(p))) })); // prettier-ignore
    if (rows.length !== this.rows.length || rows.some((r, k) => r.number !== this.rows[k].number || r.words !== this.rows[k].words)) this.rows = rows;
    this.redraw();
  }

  private draw: Drawer = (ctx, world, camera) => {
    const [ox, oy] = world.schema?.origin ?? [0, 0];
    let moved = false;
    const figure = (kind: Kind, anchors: readonly Anchor[], label: string) => {
      const points = anchors.map((a) => this.place(a));
      const local = points.map(([x, y]): Point => [x - ox, y - oy]);
      const words = this.words(kind, points);
      drawLine(ctx, world, camera, local, kind === "area" && local.length > 2, label && words ? `${label}: ${words}` : words);
      if (kind === "angle" && local.length > 2) drawArc(ctx, world, camera, local);
      return words;
    };
    for (const { number, kind, points } of this.figures) {
      const words = figure(kind, points, String(number));
      moved ||= words !== this.rows.find((r) => r.number === number)?.words;
    }
    const { hand } = this;
    if (this.points.length || hand) figure(this.kind, hand ? [...this.points, hand] : this.points, "");
    if (moved) queueMicrotask(() => this.show());
  };
}
