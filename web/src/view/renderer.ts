// The interface of both back-ends. They draw the world; `overlay.ts` draws the few things on top, for both, in two dimensions.

import { NO_READING, type Group } from "../generated/messages";
import type { Readings } from "../net/frames";
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

/** Fields of lasers that may lie over each other at one place. */
const STACKED = 3;
/** Fields whose origins are nearer than this, pixels, hide each other: only one is filled. */
const APART = 30;

/** Middle range of a sensor, m, of a few of its rays. */
function extent(block: Readings, group: Group, k: number): number {
  const n = group.count;
  let sum = 0;
  let rays = 0;
  for (let j = 0; j < n; j += Math.max(1, n >> 4)) {
    const raw = block.ranges[k * n + j];
    if (raw < NO_READING) [sum, rays] = [sum + raw, rays + 1];
  }
  return rays ? (sum / rays) * group.unit : 0;
}

/** Which sensors of a block are drawn, and which of them as filled fields: few, apart from each other, the selected ones first. */
export function choose(world: World, camera: Camera, block: Readings, group: Group, used: number, most: number): Chosen {
  const { robots } = block;
  const [x0, y0, x1, y1] = camera.box(group.range_max);
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
  const isSelected = (k: number) => world.selected.has(robots[k]);
  const isFew = visible.length + used <= most;
  const candidates = isFew ? [...visible.filter(isSelected), ...visible.filter((k) => !isSelected(k))] : visible.filter(isSelected).slice(0, most);
  const filled: number[] = [];
  const sizes: number[] = [];
  for (const k of candidates) {
    const [x, y, size] = [pose[3 * robots[k]], pose[3 * robots[k] + 1], extent(block, group, k)];
    let over = 0;
    filled.forEach((f, i) => {
      if (robots[f] === robots[k]) return; // two lasers of one robot are one field
      const away = Math.hypot(pose[3 * robots[f]] - x, pose[3 * robots[f] + 1] - y);
      if (away * camera.scale < APART) over = STACKED;
      else if (away < 0.5 * (size + sizes[i])) over++;
    });
    if (over >= STACKED) continue;
    filled.push(k);
    sizes.push(size);
  }
  const known = new Set(filled);
  return { index: [...filled, ...visible.filter((k) => !known.has(k))], filled: filled.length };
}
