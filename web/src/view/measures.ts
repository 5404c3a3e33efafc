// Rulers, angles and areas on the world. It is loaded with the bars that use them.

import { degrees } from "../text";
import type { Camera } from "./camera";
import { drawText as text } from "./labels";
import type { World } from "./world";

type Ctx = CanvasRenderingContext2D;
/** m from the origin of what is drawn. */
export type Point = readonly [number, number];
const FONT = "12px system-ui, sans-serif";

/** A line with its length and bearing. */
export function drawStroke(ctx: Ctx, world: World, camera: Camera, from: Point, to: Point): void {
  drawLine(ctx, world, camera, [from, to], false, lengthWords(from, to));
}

/** Points joined by lines, with words in their middle; `closed`: a filled area. */
export function drawLine(ctx: Ctx, world: World, camera: Camera, points: readonly Point[], closed: boolean, words: string): void {
  const corners = points.map(([x, y]) => camera.toScreen(x, y));
  if (!corners.length) return;
  ctx.strokeStyle = ctx.fillStyle = world.palette.measure;
  ctx.lineWidth = 2;
  ctx.beginPath();
  for (const c of corners) ctx.lineTo(...c);
  if (closed) {
    ctx.closePath();
    ctx.globalAlpha = 0.15;
    ctx.fill();
    ctx.globalAlpha = 1;
  }
  ctx.stroke();
  for (const [x, y] of corners) ctx.strokeRect(x - 3, y - 3, 6, 6);
  if (!words) return;
  const middle = (k: 0 | 1) => corners.reduce((sum, c) => sum + c[k], 0) / corners.length;
  ctx.font = `600 ${FONT}`;
  text(ctx, world, words, middle(0) + 8, middle(1) - 8, world.palette.measure);
  ctx.font = FONT;
}

/** The arc of the angle at the middle of three points. */
export function drawArc(ctx: Ctx, world: World, camera: Camera, [a, at, b]: readonly Point[]): void {
  const [x, y] = camera.toScreen(...at);
  const [from, to] = [a, b].map((p) => camera.toScreen(...p)).map(([px, py]) => Math.atan2(py - y, px - x));
  const turn = Math.atan2(Math.sin(to - from), Math.cos(to - from));
  ctx.strokeStyle = world.palette.measure;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.arc(x, y, 22, from, from + turn, turn < 0);
  ctx.stroke();
}

export function lengthWords(from: Point, to: Point): string {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  return `${Math.hypot(dx, dy).toFixed(3)} m, ${degrees(Math.atan2(dy, dx))}`;
}

/** The angle at the middle of three points, rad, 0 to π. */
export function angleOf([a, at, b]: readonly Point[]): number {
  const turn = Math.atan2(b[1] - at[1], b[0] - at[0]) - Math.atan2(a[1] - at[1], a[0] - at[0]);
  return Math.abs(Math.atan2(Math.sin(turn), Math.cos(turn)));
}

/** Area of a polygon that does not cross itself, m². */
export function areaOf(points: readonly Point[]): number {
  return Math.abs(points.reduce((sum, [x, y], k) => sum + x * points[(k + 1) % points.length][1] - points[(k + 1) % points.length][0] * y, 0)) / 2;
}

/** Length of the edge of a polygon, m. */
export function edgeOf(points: readonly Point[]): number {
  return points.reduce((sum, [x, y], k) => sum + Math.hypot(points[(k + 1) % points.length][0] - x, points[(k + 1) % points.length][1] - y), 0);
}
