// Tools of the left button besides selecting and moving: measure, place new bodies, send robots to goals, select the bodies in a box.
// Each is also worked by keys: arrows move a cross in the window, Enter presses there, A and D turn.

import type { Model } from "../generated/messages";
import type { Camera } from "../view/camera";
import type { World } from "../view/world";
import type { Pose, Redraw } from "./ports";

export type Tool = "select" | "measure" | "place" | "goal" | "estimate" | "area" | "edit" | "path";

export interface Placing {
  model: string;
  count: number;
  name: string;
}

/** What tools lead to: the adding of bodies, and trips of robots. */
export interface Uses {
  model(name: string): Model | undefined;
  add(placing: Placing, pose: Pose): void;
  /** `th`: rad, null for any heading; `more`: after the goals that are there. */
  send(at: [number, number], th: number | null, more: boolean): void;
  estimate(at: [number, number], th: number): void;
  area(from: readonly [number, number], to: readonly [number, number]): void;
  /** The rulers, or what edits the map: whichever bar is open. */
  hand(from: readonly [number, number], to: readonly [number, number], done: boolean): void;
  /** Keys point there, m in the world's frame. */
  point(at: [number, number]): void;
}

/** Nearer than this, pixels, two points are one. */
const SAME = 3;
/** Dragged farther than this, pixels, a body that is placed points where the hand went. */
const TURNS = 8;
/** Steps of the cross by keys, pixels: usual ones, with Shift fine ones. */
const STEP = 12;
const FINE = 1;
const TURN = (5 * Math.PI) / 180;
const ARROWS: Record<string, [number, number]> = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

export class Tools {
  tool = $state<Tool>("select");
  placing = $state.raw<Placing | null>(null);
  /** The cross that keys move, and where they pressed first, pixels. */
  private cross: [number, number] | null = null;
  private pressed: [number, number] | null = null;
  /** Heading of what keys place; null: none chosen. */
  private heading: number | null = null;

  constructor(
    private world: Pick<World, "boxSelect" | "preview" | "goal" | "cross" | "schema" | "where">,
    private camera: Pick<Camera, "toWorld" | "toScreen" | "angle" | "width" | "height">,
    private uses: Uses,
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
    this.cross = this.pressed = this.heading = null;
    this.world.preview = this.world.goal = this.world.cross = this.world.boxSelect = null;
    this.redraw();
  }

  // -- keys

  /** Whether a key was for the tool: arrows, Enter, A and D. */
  key(key: string, shift: boolean): boolean {
    if (this.tool === "select") return false;
    const arrow = ARROWS[key];
    const turn = { a: TURN, d: -TURN }[key.toLowerCase()];
    const { width, height } = this.camera;
    this.cross ??= [width / 2, height / 2];
    if (arrow) {
      const step = shift ? FINE : STEP;
      const [x, y] = this.cross;
      this.cross = [Math.min(width, Math.max(0, x + step * arrow[0])), Math.min(height, Math.max(0, y + step * arrow[1]))];
    } else if (turn !== undefined && (this.tool === "place" || this.tool === "goal" || this.tool === "estimate")) this.heading = (this.heading ?? 0) + turn;
    else if (key === "Enter") {
      this.enter(...this.cross, shift);
      return true;
    } else return false;
    this.preview(...this.cross);
    return true;
  }

  private preview(x: number, y: number): void {
    this.world.cross = this.camera.toWorld(x, y);
    const from = this.pressed;
    if (this.tool === "place") this.place(x, y, x, y, false);
    else if (this.tool === "goal" || this.tool === "estimate") this.goal(x, y, x, y, false);
    else if (this.tool === "measure") this.use(x, y, x, y, false);
    else if (from && this.tool !== "select") this.use(...from, x, y, false);
    this.uses.point(this.absolute(x, y));
    this.redraw();
  }

  private enter(x: number, y: number, shift: boolean): void {
    const from = this.pressed;
    if (this.tool === "place") this.place(x, y, x, y, true);
    else if (this.tool === "goal" || this.tool === "estimate") this.goal(x, y, x, y, true, shift);
    else if (this.tool === "measure") this.use(x, y, x, y, true);
    else if (!from) {
      this.pressed = [x, y];
      this.preview(x, y);
    } else {
      this.pressed = null;
      this.use(...from, x, y, true);
    }
  }

  // -- hands; points are pixels

  use(fromX: number, fromY: number, x: number, y: number, done: boolean, more = false): void {
    if (this.tool === "place") this.place(fromX, fromY, x, y, done);
    else if (this.tool === "goal" || this.tool === "estimate") this.goal(fromX, fromY, x, y, done, more);
    else if (this.tool === "area") this.area(fromX, fromY, x, y, done);
    else if (this.tool === "edit" || this.tool === "path" || this.tool === "measure") this.uses.hand(this.absolute(fromX, fromY), this.absolute(x, y), done);
  }

  /** Draw a box around bodies. When it is done: the rows in it; else, or if it is a point, null. */
  box(fromX: number, fromY: number, x: number, y: number, done: boolean): number[] | null {
    this.world.boxSelect = done ? null : { from: this.camera.toWorld(fromX, fromY), to: this.camera.toWorld(x, y) };
    this.redraw();
    if (!done || (fromX === x && fromY === y)) return null;
    const [x0, x1, y0, y1] = [Math.min(fromX, x), Math.max(fromX, x), Math.min(fromY, y), Math.max(fromY, y)];
    return this.world.where((wx, wy) => {
      const [px, py] = this.camera.toScreen(wx, wy); // the view may be turned
      return px >= x0 && px <= x1 && py >= y0 && py <= y1;
    });
  }

  /** Choose two corners of an area, or the ends of a line. */
  area(fromX: number, fromY: number, x: number, y: number, done: boolean): void {
    const [from, to] = [this.absolute(fromX, fromY), this.absolute(x, y)];
    this.world.boxSelect = { from: this.camera.toWorld(fromX, fromY), to: this.camera.toWorld(x, y) };
    this.redraw();
    if (!done || Math.hypot(x - fromX, y - fromY) < SAME) return;
    this.cancel();
    this.uses.area(from, to);
  }

  place(x: number, y: number, toX: number, toY: number, done: boolean): void {
    const { placing } = this;
    const model = this.uses.model(placing?.model ?? "");
    if (!placing || !model) return;
    const [wx, wy] = this.camera.toWorld(x, y);
    const th = this.bearing(x, y, toX, toY) ?? 0;
    if (done) {
      const [ax, ay] = this.absolute(x, y);
      this.cancel();
      this.uses.add(placing, [ax, ay, th]);
    } else this.world.preview = { model, poses: [[wx, wy, th]] };
    this.redraw();
  }

  /** A goal or an estimated pose where the hand pressed; dragged away from there, the robot also turns that way. */
  goal(x: number, y: number, toX: number, toY: number, done: boolean, more = false): void {
    const th = this.bearing(x, y, toX, toY);
    this.world.goal = done ? null : { at: this.camera.toWorld(x, y), th };
    if (done) {
      const [ax, ay] = this.absolute(x, y);
      this.heading = null;
      if (this.tool === "goal") this.uses.send([ax, ay], th, more);
      else {
        this.uses.estimate([ax, ay], th ?? 0);
        this.cancel();
      }
    }
    this.redraw();
  }

  /** The heading from one point to another, rad; null: they are one, and no key has turned. */
  private bearing(x: number, y: number, toX: number, toY: number): number | null {
    return Math.hypot(toX - x, toY - y) > TURNS ? Math.atan2(y - toY, toX - x) - this.camera.angle : this.heading;
  }

  private absolute(x: number, y: number): [number, number] {
    const [wx, wy] = this.camera.toWorld(x, y);
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    return [wx + ox, wy + oy];
  }
}
