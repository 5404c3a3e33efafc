// Lines of the grid: a metre apart, or, zoomed out, as many as can be distinguished.

import { niceStep, type Camera } from "./camera";
import type { World } from "./world";

export interface GridLines {
  /** x1, y1, x2, y2 of each line, m. */
  lines: number[];
  color: string;
}

/** Least distance of two lines, pixels. */
const LEAST = 9;

export function gridStep(camera: Camera): number {
  return Math.max(1, niceStep(LEAST / camera.scale));
}

/** The lines in view, by colour; those through whole multiples of five steps are darker. World coordinates, not the origin's, are round. */
export function gridLines(world: World, camera: Camera): GridLines[] {
  const step = gridStep(camera);
  const [ox, oy] = world.schema?.origin ?? [0, 0];
  const [x0, y0, x1, y1] = camera.box();
  const minor: number[] = [];
  const major: number[] = [];
  for (let k = Math.ceil((x0 + ox) / step); k * step <= x1 + ox; k++) (k % 5 ? minor : major).push(k * step - ox, y0, k * step - ox, y1);
  for (let k = Math.ceil((y0 + oy) / step); k * step <= y1 + oy; k++) (k % 5 ? minor : major).push(x0, k * step - oy, x1, k * step - oy);
  return [
    { lines: minor, color: world.palette.grid },
    { lines: major, color: world.palette.gridMajor },
  ];
}
