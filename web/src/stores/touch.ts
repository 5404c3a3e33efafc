// Gestures on the world: points of the window become points of the world, and the store of each subject acts.

import type { Hands } from "../hands/gestures";
import type { Camera } from "../view/camera";
import type { World } from "../view/world";
import type { Drag } from "./drag";
import type { Roster } from "./roster.svelte";
import type { Selection } from "./selection.svelte";
import type { Session } from "./session.svelte";
import type { Tool, Tools } from "./tools.svelte";
import type { Viewpoint } from "./viewpoint.svelte";

/** A body counts as hit within this distance of it, pixels. */
const REACH = 6;

export class Touch implements Hands {
  constructor(
    private world: Pick<World, "pick">,
    private camera: Pick<Camera, "toWorld" | "scale">,
    private session: Pick<Session, "mayTouch">,
    private roster: Pick<Roster, "name">,
    private selection: Selection,
    private viewpoint: Viewpoint,
    private held: Drag,
    private tools: Tools,
  ) {}

  get tool(): Tool {
    return this.tools.tool;
  }

  get isFollowing(): boolean {
    return this.viewpoint.isFollowing;
  }

  mayTouch(): boolean {
    return this.session.mayTouch();
  }

  pick(x: number, y: number): number {
    return this.world.pick(...this.camera.toWorld(x, y), REACH / this.camera.scale);
  }

  isSelected(row: number): boolean {
    return this.selection.isSelected(row);
  }

  select(rows: number[], mode: "set" | "add" | "toggle"): void {
    this.selection.select(rows, mode);
  }

  hover(row: number): void {
    this.selection.hover(row);
  }

  grab(row: number): void {
    this.held.grab(this.selection.with(row), row);
  }

  drag(fromX: number, fromY: number, x: number, y: number): void {
    const [ax, ay] = this.camera.toWorld(fromX, fromY);
    const [bx, by] = this.camera.toWorld(x, y);
    this.held.moveTo(bx - ax, by - ay);
  }

  turnTo(x: number, y: number): void {
    this.held.turnTo(...this.camera.toWorld(x, y));
  }

  turnBy(row: number, angle: number): void {
    this.held.nudge(this.selection.with(row), 0, angle);
  }

  drop(keep: boolean): void {
    this.held.drop(keep);
  }

  pan(dx: number, dy: number): void {
    this.viewpoint.pan(dx, dy);
  }

  zoomAt(x: number, y: number, factor: number): void {
    this.viewpoint.zoomAt(x, y, factor);
  }

  box(fromX: number, fromY: number, x: number, y: number, done: boolean): void {
    const rows = this.tools.box(fromX, fromY, x, y, done);
    if (rows) this.selection.select(rows, "add");
  }

  use(fromX: number, fromY: number, x: number, y: number, done: boolean, more: boolean): void {
    this.tools.use(fromX, fromY, x, y, done, more);
  }

  followRow(row: number): void {
    this.viewpoint.followRobot(this.roster.name(row));
  }
}
