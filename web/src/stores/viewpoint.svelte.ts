// Which part of the world the window shows: moved by hands, following a body, or all of it.

import type { Box, Camera } from "../view/camera";
import type { World } from "../view/world";
import type { Redraw } from "./ports";

export class Viewpoint {
  /** The body in the middle of the window. */
  follow = $state<string | null>(null);
  /** The followed body points up; else the world's y axis does. */
  headingUp = $state(false);
  /** Pixels per metre, of the last picture. */
  scale = $state(1);
  /** Where the pointer is, m in the world's frame. */
  pointer = $state.raw<[number, number] | null>(null);
  /** Whether the present world has been shown whole. */
  fitted = false;
  private first: Box | null = null;
  /** Whether a hand has chosen another part of the world to look at. */
  moved = false;

  constructor(
    readonly camera: Camera,
    private world: Pick<World, "bounds" | "frame" | "rows" | "pose">,
    private redraw: Redraw,
  ) {}

  /** Another world is there: show this part of it, with the next picture; null: all of it. */
  refit(first: Box | null = this.first): void {
    this.first = first;
    this.fitted = false;
  }

  /** Before a picture; whether the world was shown whole for the first time. */
  update(): boolean {
    const { camera, world } = this;
    if (!world.frame) return false;
    const first = !this.fitted;
    if (first) {
      camera.fit(this.whole());
      this.moved = false;
      this.fitted = true;
    }
    const row = this.follow !== null ? world.rows.get(this.follow) : undefined;
    if (row !== undefined) {
      const [x, y, th] = world.pose(row);
      [camera.x, camera.y] = [x, y];
      if (this.headingUp) camera.angle = Math.PI / 2 - th;
    }
    if (row === undefined || !this.headingUp) camera.angle = 0;
    return first;
  }

  /** Show a part of the world again; `moved`: a hand had chosen it. */
  restore(x: number, y: number, scale: number, moved: boolean): void {
    if (!moved) return; // the whole world, in a window of perhaps another size
    this.moved = true;
    Object.assign(this.camera, { x, y, scale });
  }

  /** Let the front of the followed body point up. */
  toggleHeadingUp(): void {
    this.headingUp = !this.headingUp;
    this.redraw();
  }

  /** The first view: the view of the world file, or the whole world. */
  private whole(): Box {
    return this.first ?? this.world.bounds();
  }

  /** The window has another size: what was shown whole stays so. */
  resized(): void {
    if (!this.moved && this.fitted) this.camera.fit(this.whole());
  }

  /** The world's frame is drawn from another origin, which moved by (dx, dy): the same part stays in view. */
  shift(dx: number, dy: number): void {
    this.camera.x -= dx;
    this.camera.y -= dy;
  }

  home(): void {
    this.follow = null;
    this.camera.angle = 0;
    this.moved = false;
    this.camera.fit(this.whole());
    this.redraw();
  }

  pan(dx: number, dy: number): void {
    this.moved = true;
    this.follow = null;
    this.camera.pan(dx, dy);
    this.redraw();
  }

  get isFollowing(): boolean {
    return this.follow !== null;
  }

  zoom(factor: number): void {
    this.moved = true;
    this.camera.zoom(factor);
    this.redraw();
  }

  zoomAt(x: number, y: number, factor: number): void {
    this.moved = true;
    if (this.isFollowing) this.camera.zoom(factor); // the followed body stays in the middle
    else this.camera.zoomAt(x, y, factor);
    this.redraw();
  }

  /** Put a point in the middle, m from the origin of what is drawn, near enough to see a robot. */
  goTo(x: number, y: number): void {
    this.moved = true;
    this.follow = null;
    [this.camera.x, this.camera.y] = [x, y];
    this.camera.scale = Math.max(this.camera.scale, NEAR);
    this.redraw();
  }

  followRobot(name: string | null): void {
    this.moved = true;
    this.follow = name;
    this.redraw();
  }

  /** Bodies came or went: one that is gone is followed no longer. */
  forget(isThere: (name: string) => boolean): void {
    if (this.follow !== null && !isThere(this.follow)) this.follow = null;
  }
}

/** Pixels per metre at which a robot is well seen. */
const NEAR = 40;
