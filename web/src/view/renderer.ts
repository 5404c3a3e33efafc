// The interface of both back-ends. They draw the world; `overlay.ts` draws the few things on top, for both, in two dimensions.

import type { Camera } from "./camera";
import type { World } from "./world";

export interface Drawn {
  bodies: number;
  fans: number;
  points: number;
  sonar: number;
}

export interface Renderer {
  readonly name: "webgl2" | "canvas2d";
  readonly canvas: HTMLCanvasElement;
  resize(width: number, height: number, ratio: number): void;
  draw(world: World, camera: Camera): Drawn;
  /** Called some time after the view has come to rest; whether something is to be drawn again. */
  settle(): boolean;
  dispose(): void;
}

/** Sensors of a group that are to be drawn: index in the frame's block and row of the robot; `filled` of them first. */
export interface Chosen {
  index: number[];
  filled: number;
}

/** Which sensors of a block are drawn, and which of them as filled fields (few, or selected). */
export function choose(world: World, camera: Camera, robots: Uint32Array, reach: number, used: number, most: number): Chosen {
  const [x0, y0, x1, y1] = camera.box(reach);
  const pose = world.frame!.pose;
  const only = world.layers.selectedOnly;
  const visible: number[] = [];
  for (let k = 0; k < robots.length; k++) {
    const r = robots[k];
    const x = pose[3 * r];
    const y = pose[3 * r + 1];
    if (x < x0 || x > x1 || y < y0 || y > y1) continue;
    if (only && !world.selected.has(r)) continue;
    visible.push(k);
  }
  if (visible.length + used <= most) return { index: visible, filled: visible.length };
  const first = visible.filter((k) => world.selected.has(robots[k])).slice(0, most);
  if (!first.length) return { index: visible, filled: 0 };
  const rest = visible.filter((k) => !world.selected.has(robots[k]));
  return { index: [...first, ...rest], filled: first.length };
}
