// Paths with their sectors, who waits for whom, and paths that are being drawn, on top of either back-end. Loaded with the panel of traffic.

import type { Traffic, TrafficPlan } from "../generated/messages";
import type { Camera } from "./camera";
import { shown } from "../text";
import { drawText } from "./labels";
import type { World } from "./world";

type Ctx = CanvasRenderingContext2D;
type Point = readonly [number, number];

/** Corners of each sector of each path, m. */
export type Sectors = Point[][][];

/** A path that is being drawn: where its robot stands is its first point. */
export interface Draft {
  robot: string;
  points: Point[];
}

/** From this scale on, pixels per metre, numbers of sectors are written. */
const NUMBERS_FROM = 10;
/** Longest arrowhead, pixels. */
const HEAD = 11;

/** Cut paths at the ends of their sectors. */
export function sectorsOf(plan: TrafficPlan): Sectors {
  return plan.paths.map(({ points, ends }) => {
    const along = [0];
    for (let k = 1; k < points.length; k++) along.push(along[k - 1] + Math.hypot(points[k][0] - points[k - 1][0], points[k][1] - points[k - 1][1]));
    const at = (s: number): Point => {
      let k = 1;
      while (k < points.length - 1 && along[k] < s) k++;
      const f = (s - along[k - 1]) / (along[k] - along[k - 1] || 1);
      const [[ax, ay], [bx, by]] = [points[k - 1], points[k]];
      return [ax + f * (bx - ax), ay + f * (by - ay)];
    };
    return ends.map((end, k) => {
      const begin = k ? ends[k - 1] : 0;
      return [at(begin), ...points.filter((_, i) => along[i] > begin + 1e-6 && along[i] < end - 1e-6), at(end)];
    });
  });
}

export function drawTraffic(ctx: Ctx, world: World, camera: Camera, plan: TrafficPlan | null, sectors: Sectors, state: Traffic | null, drafts: readonly Draft[]): void {
  const [ox, oy] = world.schema?.origin ?? [0, 0];
  const screen = ([x, y]: Point) => camera.toScreen(x - ox, y - oy);
  const { palette } = world;
  const line = (points: readonly Point[]) => points.forEach((p, k) => (k ? ctx.lineTo(...screen(p)) : ctx.moveTo(...screen(p))));
  /** Many pieces in one stroke. */
  const stroke = (pieces: readonly (readonly Point[])[], color: string, width: number, alpha = 1, dash: number[] = []) => {
    if (!pieces.length) return;
    ctx.globalAlpha = alpha;
    ctx.strokeStyle = color;
    ctx.lineWidth = width;
    ctx.setLineDash(dash);
    ctx.beginPath();
    pieces.forEach(line);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  };
  if (plan && state && plan.version === state.version) {
    const ahead: Point[][] = [];
    const shared: Point[][] = [];
    const granted: Point[][] = [];
    const inside: Point[][] = [];
    state.robots.forEach(([tail, head, allowed], i) => {
      const contested = new Set(plan.paths[i].shared);
      sectors[i].forEach((piece, k) => {
        if (k < tail) return;
        if (k <= head) inside.push(piece);
        else if (k <= allowed) granted.push(piece);
        else (contested.has(k) ? shared : ahead).push(piece);
      });
    });
    const thin = Math.min(1.6, Math.max(0.7, camera.scale / 20));
    stroke(ahead, palette.sonar, 1.5 * thin, 1, state.orders ? [6, 5] : []);
    stroke(shared, palette.stalled, 3 * thin, 0.35);
    stroke(granted, palette.badArea, 5 * thin, 0.9);
    stroke(inside, palette.place, 5 * thin, 0.9);
    if (state.orders) drawNodes(ctx, world, camera, plan, state);
    const row = (i: number) => world.rows.get(plan.paths[i]?.robot ?? "");
    const circleOf = new Map(state.circles.flatMap((circle, k) => circle.map((i) => [i, k] as const)));
    for (const { robot, sector, by } of state.waits) {
      stroke([sectors[robot][sector] ?? []], palette.stalled, 3 * thin, 1, [4, 4]);
      const from = row(robot);
      if (from === undefined) continue;
      for (const other of by) {
        const to = row(other);
        if (to !== undefined) arrow(ctx, world, camera, from, to, circleOf.has(robot) && circleOf.get(robot) === circleOf.get(other));
      }
    }
    for (const i of circleOf.keys()) {
      const at = row(i);
      if (at === undefined) continue;
      const [x, y] = camera.toScreen(...(world.pose(at).slice(0, 2) as [number, number]));
      ctx.strokeStyle = palette.stalled;
      ctx.lineWidth = 4;
      ctx.beginPath();
      ctx.arc(x, y, Math.max(10, world.radius[at] * camera.scale + 7), 0, 7);
      ctx.stroke();
    }
    if (camera.scale >= NUMBERS_FROM)
      for (const { robot, sector } of state.waits) {
        const piece = sectors[robot][sector];
        if (!piece) continue;
        const [[ax, ay], [bx, by]] = piece;
        const [x, y] = screen([(ax + bx) / 2, (ay + by) / 2]);
        drawText(ctx, world, `${sector}`, x + 6, y - 4, palette.stalled);
      }
  }
  for (const { points } of drafts) {
    stroke([points], palette.selection, 3, 1, [8, 5]);
    ctx.fillStyle = palette.selection;
    points.forEach((p, k) => {
      ctx.beginPath();
      ctx.arc(...screen(p), k ? 4 : 2.5, 0, 7);
      ctx.fill();
    });
  }
}

/** Nodes of orders: full where they are released, with their names where there is room. */
function drawNodes(ctx: Ctx, world: World, camera: Camera, plan: TrafficPlan, state: Traffic): void {
  const [ox, oy] = world.schema?.origin ?? [0, 0];
  const { palette } = world;
  const named = new Set<string>();
  ctx.lineWidth = 1.5;
  plan.paths.forEach(({ points, nodes }, i) => {
    const [tail, , allowed] = state.robots[i] ?? [0, 0, 0];
    points.forEach(([x, y], k) => {
      if (k < tail) return;
      const at = camera.toScreen(x - ox, y - oy);
      ctx.strokeStyle = ctx.fillStyle = k <= allowed ? palette.badArea : palette.sonar;
      ctx.beginPath();
      ctx.arc(...at, 3.5, 0, 7);
      if (k <= allowed) ctx.fill();
      ctx.stroke();
      const name = nodes[k];
      // Orders share nodes: one name at each place.
      const place = `${name} ${x} ${y}`;
      if (!name || camera.scale < NUMBERS_FROM || named.has(place)) return;
      named.add(place);
      drawText(ctx, world, shown(name, 20), at[0] + 7, at[1] - 6, palette.label);
    });
  });
}

/** From the edge of one body to the edge of another. */
function arrow(ctx: Ctx, world: World, camera: Camera, from: number, to: number, isCircle: boolean): void {
  const [ax, ay] = camera.toScreen(...(world.pose(from).slice(0, 2) as [number, number]));
  const [bx, by] = camera.toScreen(...(world.pose(to).slice(0, 2) as [number, number]));
  const length = Math.hypot(bx - ax, by - ay);
  if (length < 4) return;
  let [r0, r1] = [from, to].map((row) => Math.max(5, world.radius[row] * camera.scale + 3));
  if (length < r0 + r1 + HEAD) r0 = r1 = 0; // robots that touch: from middle to middle
  const [ux, uy] = [(bx - ax) / length, (by - ay) / length];
  const [x0, y0, x1, y1] = [ax + ux * r0, ay + uy * r0, bx - ux * r1, by - uy * r1];
  const head = Math.min(HEAD, 0.4 * (length - r0 - r1));
  ctx.strokeStyle = ctx.fillStyle = world.palette.stalled;
  ctx.lineWidth = isCircle ? 4 : 2;
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1 - ux * head * 0.8, y1 - uy * head * 0.8);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x1 - ux * head - uy * head * 0.5, y1 - uy * head + ux * head * 0.5);
  ctx.lineTo(x1 - ux * head + uy * head * 0.5, y1 - uy * head - ux * head * 0.5);
  ctx.fill();
}
