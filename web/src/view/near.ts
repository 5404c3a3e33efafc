// Walls that are near a point. It is loaded with the parts of the page that ask.

import type { WorldMap } from "../net/frames";

type Point = readonly [number, number];

/** From a point to a wall: x0, y0, x1, y1. */
export function distance([x, y]: Point, [x0, y0, x1, y1]: readonly [number, number, number, number]): number {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const t = length ? Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / length)) : 0;
  return Math.hypot(x0 + t * dx - x, y0 + t * dy - y);
}

/** From a point of the world's frame to the nearest wall or point of a map; null without any. */
export function nearestWall({ walls, points, origin }: WorldMap, x: number, y: number): number | null {
  const at: Point = [x - origin[0], y - origin[1]];
  let least = Infinity;
  for (let k = 0; k < walls.length; k += 4) least = Math.min(least, distance(at, [walls[k], walls[k + 1], walls[k + 2], walls[k + 3]]));
  for (let k = 0; k < points.length; k += 2) least = Math.min(least, Math.hypot(points[k] - at[0], points[k + 1] - at[1]));
  return least < Infinity ? least : null;
}

/** The end of a wall within a distance of a point of the world's frame, m; null: none. */
export function nearestEnd({ walls, origin }: WorldMap, [x, y]: Point, limit: number): [number, number] | null {
  const [ox, oy] = origin;
  let best: [number, number] | null = null;
  let least = limit;
  for (let k = 0; k < walls.length; k += 2) {
    const d = Math.hypot(walls[k] + ox - x, walls[k + 1] + oy - y);
    if (d <= least) [least, best] = [d, [walls[k] + ox, walls[k + 1] + oy]];
  }
  return best;
}
