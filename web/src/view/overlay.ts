// The few things that are drawn on top of either back-end: names, selection, odometry, places, rulers, debug pictures.

import { Bit } from "../generated/messages";
import { niceStep, type Camera } from "./camera";
import { drawText as text, Labels } from "./labels";
import { css } from "./palette";
import { wheelShapes } from "./shape";
import { MAX_LABELS, type World } from "./world";

/** Of the one world that a page shows. */
export const labels = new Labels();

type Ctx = CanvasRenderingContext2D;
const FONT = "12px system-ui, sans-serif";

export function drawOverlay(ctx: Ctx, world: World, camera: Camera, ratio: number, clear: boolean): void {
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (clear) ctx.clearRect(0, 0, camera.width, camera.height);
  ctx.font = FONT;
  ctx.lineJoin = "round";
  drawEdge(ctx, world, camera);
  for (const draw of world.under) draw(ctx, world, camera);
  if (world.debug) drawDebug(ctx, world, camera);
  if (world.layers.areas) drawAreas(ctx, world, camera);
  if (world.layers.places) drawPlaces(ctx, world, camera);
  if (world.layers.odometry) drawOdometry(ctx, world, camera);
  if (world.layers.velocity) drawVelocity(ctx, world, camera);
  if (world.layers.trips) drawTrips(ctx, world, camera);
  world.traffic?.(ctx, camera);
  drawWheels(ctx, world, camera);
  drawSelection(ctx, world, camera);
  drawStops(ctx, world, camera);
  if (world.overlaps) drawOverlaps(ctx, world, camera);
  drawMarks(ctx, world, camera);
  labels.draw(ctx, world, camera);
  if (world.preview) drawPreview(ctx, world, camera);
  if (world.goal) {
    ctx.strokeStyle = ctx.fillStyle = world.palette.selection;
    drawGoal(ctx, camera, world.goal.at, world.goal.th);
  }
  if (world.boxSelect) drawBox(ctx, world, camera);
  for (const draw of world.over) draw(ctx, world, camera);
  if (world.cross) drawCross(ctx, world, camera);
  drawScale(ctx, world, camera);
}

/** Without a map, the world has this extent on each side of its origin, m; the plane continues, but robots are not meant to be there. */
const NO_MAP: [number, number, number, number] = [-100, -100, 100, 100];

/** The edge of the world: of what is mapped, or, without a map, of a square, with grey beyond. */
function drawEdge(ctx: Ctx, world: World, camera: Camera): void {
  if (!world.layers.map) return;
  const b = world.map.bounds ?? NO_MAP;
  const [ox, oy] = world.map.bounds ? world.map.origin : (world.schema?.origin ?? [0, 0]);
  const away = world.map.bounds ? 4 / camera.scale : 0;
  const [x0, y0, x1, y1] = [b[0] - ox - away, b[1] - oy - away, b[2] - ox + away, b[3] - oy + away];
  ctx.beginPath();
  if (b === NO_MAP) ctx.rect(0, 0, camera.width, camera.height);
  polygon(ctx, camera, [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]); // prettier-ignore
  if (b === NO_MAP) {
    ctx.fillStyle = world.palette.outside;
    ctx.fill("evenodd");
    return;
  }
  ctx.strokeStyle = world.palette.beyond;
  ctx.lineWidth = 1;
  ctx.stroke();
}

/** Add a closed polygon of points in m to the path. */
function polygon(ctx: Ctx, camera: Camera, corners: readonly (readonly [number, number])[]): void {
  corners.forEach(([x, y], i) => {
    const p = camera.toScreen(x, y);
    if (i) ctx.lineTo(...p);
    else ctx.moveTo(...p);
  });
  ctx.closePath();
}

/** Least radius of a wheel that is drawn, pixels. */
const MIN_WHEEL = 1.5;

function drawWheels(ctx: Ctx, world: World, camera: Camera): void {
  ctx.fillStyle = world.palette.outline;
  for (const [row, angle] of world.frame?.steering ?? []) {
    const model = world.model(row);
    if (model.wheel_radius * camera.scale < MIN_WHEEL || world.isHidden(row)) continue;
    outline(ctx, wheelShapes(model, angle), camera, world.pose(row));
    ctx.fill();
  }
}

function outline(ctx: Ctx, parts: readonly (readonly [number, number][])[], camera: Camera, at: [number, number, number]): void {
  const [x, y, th] = at;
  const c = Math.cos(th);
  const s = Math.sin(th);
  ctx.beginPath();
  for (const part of parts) {
    part.forEach(([px, py], i) => {
      const p = camera.toScreen(x + c * px - s * py, y + s * px + c * py);
      if (i) ctx.lineTo(...p);
      else ctx.moveTo(...p);
    });
    ctx.closePath();
  }
}

function arrow(ctx: Ctx, x: number, y: number, angle: number, length: number): void {
  const tx = x + Math.cos(angle) * length;
  const ty = y - Math.sin(angle) * length;
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(tx, ty);
  for (const turn of [2.6, -2.6]) {
    ctx.moveTo(tx, ty);
    ctx.lineTo(tx + Math.cos(angle + turn) * 6, ty - Math.sin(angle + turn) * 6);
  }
  ctx.stroke();
}

function drawAreas(ctx: Ctx, world: World, camera: Camera): void {
  const [ox, oy] = world.map.origin;
  for (const area of world.map.areas) {
    ctx.beginPath();
    area.corners.forEach(([x, y], i) => {
      const p = camera.toScreen(x - ox, y - oy);
      if (i) ctx.lineTo(...p);
      else ctx.moveTo(...p);
    });
    ctx.strokeStyle = world.palette.badArea;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([6, 4]);
    if (area.corners.length > 2) {
      ctx.closePath();
      ctx.fillStyle = world.palette.area;
      ctx.fill();
    }
    ctx.stroke();
    ctx.setLineDash([]);
  }
}

function drawPlaces(ctx: Ctx, world: World, camera: Camera): void {
  const [ox, oy] = world.map.origin;
  for (const place of world.map.places) {
    const [x, y] = camera.toScreen(place.pose[0] - ox, place.pose[1] - oy);
    if (x < -50 || y < -50 || x > camera.width + 50 || y > camera.height + 50) continue;
    const kind = place.kind.toLowerCase();
    ctx.strokeStyle = ctx.fillStyle = world.palette.place;
    ctx.lineWidth = 2;
    if (kind.includes("dock")) {
      ctx.strokeRect(x - 6, y - 6, 12, 12);
      ctx.fillRect(x - 2, y - 2, 4, 4);
    } else if (kind.includes("home")) {
      ctx.beginPath();
      ctx.moveTo(x - 7, y + 1);
      ctx.lineTo(x, y - 7);
      ctx.lineTo(x + 7, y + 1);
      ctx.moveTo(x - 5, y);
      ctx.lineTo(x - 5, y + 6);
      ctx.lineTo(x + 5, y + 6);
      ctx.lineTo(x + 5, y);
      ctx.stroke();
    } else {
      ctx.beginPath();
      ctx.arc(x, y, 5, 0, 7);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(x, y, 1.5, 0, 7);
      ctx.fill();
    }
    if (place.heading) arrow(ctx, x, y, place.pose[2] + camera.angle, 16);
  }
}

function drawOdometry(ctx: Ctx, world: World, camera: Camera): void {
  const odometry = world.frame?.odometry;
  if (!odometry) return;
  for (const row of shownRows(world, camera, odometry.length / 3)) {
    const at: [number, number, number] = [odometry[3 * row], odometry[3 * row + 1], odometry[3 * row + 2]];
    ctx.strokeStyle = world.palette.ghost;
    ctx.lineWidth = 1.2;
    ctx.setLineDash([4, 3]);
    outline(ctx, world.model(row).parts, camera, at);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(...camera.toScreen(at[0], at[1]));
    const [x, y] = world.pose(row);
    ctx.lineTo(...camera.toScreen(x, y));
    ctx.stroke();
    ctx.setLineDash([]);
    const [px, py] = camera.toScreen(at[0], at[1]);
    const length = Math.max(14, 0.5 * camera.scale);
    const seen = at[2] + camera.angle;
    arrow(ctx, px, py, seen, length);
    ctx.lineWidth = 1;
    arrow(ctx, px, py, seen + Math.PI / 2, length * 0.7);
  }
}

function drawVelocity(ctx: Ctx, world: World, camera: Camera): void {
  const velocity = world.frame?.velocity;
  if (!velocity) return;
  ctx.strokeStyle = world.palette.velocity;
  ctx.lineWidth = 2;
  for (const row of shownRows(world, camera, velocity.length / 3)) {
    const [x, y, heading] = world.pose(row);
    const th = heading + camera.angle;
    const [vx, vy, w] = [velocity[3 * row], velocity[3 * row + 1], velocity[3 * row + 2]];
    const [px, py] = camera.toScreen(x, y);
    const speed = Math.hypot(vx, vy);
    if (speed > 0.01) arrow(ctx, px, py, th + Math.atan2(vy, vx), Math.max(10, speed * camera.scale));
    if (Math.abs(w) > 0.02) {
      const r = world.radius[row] * camera.scale + 4;
      ctx.beginPath();
      ctx.arc(px, py, r, -th, -th - w, w > 0);
      ctx.stroke();
    }
  }
}

/** Rows of robots for which more is drawn: those in view, or, of too many, the selected ones. */
function shownRows(world: World, camera: Camera, count: number): number[] {
  const rows = world.within(camera.box(2)).filter((r) => r < count);
  return rows.length <= MAX_LABELS ? rows : rows.filter((r) => world.selected.has(r));
}

/** Rings nearer to each other than this part of their size are dots: many of them would hide the bodies. */
const CROWDED = 0.6;

function drawSelection(ctx: Ctx, world: World, camera: Camera): void {
  const rings: [number, number, number][] = [];
  ctx.strokeStyle = ctx.fillStyle = world.palette.selection;
  for (const row of [...world.selected, world.hovered]) {
    if (row < 0 || row >= world.count) continue;
    const chosen = world.selected.has(row);
    const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
    const r = Math.max(9, world.radius[row] * camera.scale + 5);
    if (x < -r || y < -r || x > camera.width + r || y > camera.height + r) continue;
    const isCrowded = chosen && row !== world.hovered && rings.some(([px, py, pr]) => Math.hypot(px - x, py - y) < CROWDED * (r + pr));
    ctx.beginPath();
    if (isCrowded) {
      ctx.arc(x, y, 3, 0, 7);
      ctx.fill();
      continue;
    }
    rings.push([x, y, r]);
    ctx.lineWidth = chosen ? 2.5 : 1.5;
    if (!chosen) ctx.setLineDash([3, 3]);
    ctx.arc(x, y, r, 0, 7);
    ctx.stroke();
    ctx.setLineDash([]);
  }
}

/** What dragged bodies overlap: the walls red and wide, the bodies hatched. */
function drawOverlaps(ctx: Ctx, world: World, camera: Camera): void {
  const { rows, walls } = world.overlaps!;
  ctx.strokeStyle = world.palette.stalled;
  ctx.lineWidth = 4;
  ctx.beginPath();
  for (const [x0, y0, x1, y1] of walls) {
    ctx.moveTo(...camera.toScreen(x0, y0));
    ctx.lineTo(...camera.toScreen(x1, y1));
  }
  ctx.stroke();
  for (const row of rows) {
    ctx.save();
    outline(ctx, world.model(row).parts, camera, world.pose(row));
    ctx.lineWidth = 2;
    ctx.stroke();
    ctx.clip();
    const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
    const r = Math.max(6, world.radius[row] * camera.scale);
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let k = -2 * r; k <= 2 * r; k += 5) {
      ctx.moveTo(x + k - r, y - r);
      ctx.lineTo(x + k + r, y + r);
    }
    ctx.stroke();
    ctx.restore();
  }
}

/** A red octagon at each robot whose emergency stop is pressed, and a ring: never left out, however many there are. */
function drawStops(ctx: Ctx, world: World, camera: Camera): void {
  const state = world.frame?.state;
  if (!state || !world.schema) return;
  for (let row = 0; row < world.schema.robots; row++) {
    if (!(state[row] & Bit.ESTOP)) continue;
    const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
    if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
    const r = Math.max(6, world.radius[row] * camera.scale);
    ctx.strokeStyle = ctx.fillStyle = world.palette.stalled;
    ctx.lineWidth = 3;
    ctx.beginPath();
    ctx.arc(x, y, r + 2, 0, 7);
    ctx.stroke();
    octagon(ctx, x - 0.75 * r, y - 0.75 * r, Math.min(10, Math.max(6, 0.6 * r)));
    ctx.fill();
    ctx.strokeStyle = world.palette.ground;
    ctx.lineWidth = 1.5;
    ctx.stroke();
    const half = Math.min(5, Math.max(3, 0.3 * r));
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x - 0.75 * r - half, y - 0.75 * r);
    ctx.lineTo(x - 0.75 * r + half, y - 0.75 * r);
    ctx.stroke();
  }
}

function octagon(ctx: Ctx, x: number, y: number, r: number): void {
  ctx.beginPath();
  for (let k = 0; k < 8; k++) {
    const a = (k + 0.5) * (Math.PI / 4);
    ctx.lineTo(x + r * Math.cos(a), y + r * Math.sin(a));
  }
  ctx.closePath();
}

/** Detections of selected robots' devices: a small cross and a word. */
function drawMarks(ctx: Ctx, world: World, camera: Camera): void {
  if (!world.frame) return;
  for (const [name, marks] of world.marks) {
    const row = world.rows.get(name);
    if (row === undefined || !world.selected.has(row)) continue;
    const [x, y, th] = world.pose(row);
    const [c, s] = [Math.cos(th), Math.sin(th)];
    for (const [mx, my, words] of marks) {
      const [px, py] = camera.toScreen(x + c * mx - s * my, y + s * mx + c * my);
      ctx.strokeStyle = world.palette.selection;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.moveTo(px - 5, py - 5);
      ctx.lineTo(px + 5, py + 5);
      ctx.moveTo(px + 5, py - 5);
      ctx.lineTo(px - 5, py + 5);
      ctx.stroke();
      text(ctx, world, words, px + 8, py + 4, world.palette.label);
    }
  }
}

function drawPreview(ctx: Ctx, world: World, camera: Camera): void {
  const { model, poses } = world.preview!;
  ctx.globalAlpha = 0.6;
  ctx.fillStyle = css(model.color);
  ctx.strokeStyle = world.palette.outline;
  ctx.lineWidth = 1.2;
  for (const [x, y, th] of poses) {
    const [c, s] = [Math.cos(th), Math.sin(th)];
    for (const part of model.parts) {
      ctx.beginPath();
      polygon(ctx, camera, part.map(([px, py]) => [x + c * px - s * py, y + s * px + c * py] as const)); // prettier-ignore
      ctx.fill();
      ctx.stroke();
    }
  }
  ctx.globalAlpha = 1;
}

/** A goal: a ring with a dot, and an arrow for its heading. */
function drawGoal(ctx: Ctx, camera: Camera, at: readonly [number, number], th: number | null): void {
  const [x, y] = camera.toScreen(...at);
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.arc(x, y, 6, 0, 7);
  ctx.stroke();
  ctx.beginPath();
  ctx.arc(x, y, 2, 0, 7);
  ctx.fill();
  if (th !== null) arrow(ctx, x, y, th + camera.angle, 22);
}

/** Paths of robots that drive to goals: of the selected ones wide, of the others thin. */
function drawTrips(ctx: Ctx, world: World, camera: Camera): void {
  for (const [name, trip] of world.trips) {
    const row = world.rows.get(name);
    if (row === undefined) continue;
    const isChosen = world.selected.has(row) || row === world.hovered;
    ctx.strokeStyle = ctx.fillStyle = trip.blocked ? world.palette.stalled : isChosen ? world.palette.selection : world.palette.place;
    ctx.globalAlpha = isChosen ? 1 : 0.6;
    ctx.lineWidth = isChosen ? 2.5 : 1.5;
    ctx.setLineDash(trip.blocked ? [2, 4] : [8, 5]);
    ctx.beginPath();
    ctx.moveTo(...camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number])));
    for (const corner of trip.path) ctx.lineTo(...camera.toScreen(...corner));
    for (const [x, y] of trip.goals.slice(trip.path.length ? 1 : 0)) ctx.lineTo(...camera.toScreen(x, y));
    ctx.stroke();
    ctx.setLineDash([]);
    for (const [x, y, th] of trip.goals) drawGoal(ctx, camera, [x, y], th);
    ctx.globalAlpha = 1;
  }
}

/** The cross that keys move: in two colours, to be seen on every ground. */
function drawCross(ctx: Ctx, world: World, camera: Camera): void {
  const [x, y] = camera.toScreen(...world.cross!);
  for (const [width, color] of [
    [5, world.palette.ground],
    [2, world.palette.measure],
  ] as const) {
    ctx.lineWidth = width;
    ctx.strokeStyle = color;
    ctx.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) { // prettier-ignore
      ctx.moveTo(x + 4 * dx, y + 4 * dy);
      ctx.lineTo(x + 14 * dx, y + 14 * dy);
    }
    ctx.stroke();
  }
}

function drawBox(ctx: Ctx, world: World, camera: Camera): void {
  const { from, to } = world.boxSelect!;
  const [x0, y0] = camera.toScreen(...from);
  const [x1, y1] = camera.toScreen(...to);
  ctx.strokeStyle = world.palette.selection;
  ctx.lineWidth = 1;
  ctx.setLineDash([4, 3]);
  ctx.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
  ctx.setLineDash([]);
}

function drawScale(ctx: Ctx, world: World, camera: Camera): void {
  const step = niceStep(70 / camera.scale);
  const length = step * camera.scale;
  const x = 14;
  const y = camera.height - 14;
  ctx.strokeStyle = world.palette.labelGround;
  ctx.lineWidth = 5;
  const bar = () => {
    ctx.beginPath();
    ctx.moveTo(x, y - 5);
    ctx.lineTo(x, y);
    ctx.lineTo(x + length, y);
    ctx.lineTo(x + length, y - 5);
    ctx.stroke();
  };
  bar();
  ctx.strokeStyle = world.palette.label;
  ctx.lineWidth = 1.5;
  bar();
  const words = step >= 1000 ? `${step / 1000} km` : step >= 1 ? `${step} m` : step >= 0.01 ? `${Math.round(step * 100)} cm` : `${Math.round(step * 1000)} mm`;
  text(ctx, world, words, x + 4, y - 6, world.palette.label);
}

function drawDebug(ctx: Ctx, world: World, camera: Camera): void {
  const [ox, oy] = world.schema?.origin ?? [0, 0];
  const { squares, lines, names } = world.debug!;
  for (let k = 0; k + 3 < squares.length; k += 4) {
    const [x, y, edge, value] = squares.slice(k, k + 4);
    const [left, low] = [x - ox, y - oy];
    ctx.fillStyle = `hsl(${200 - 180 * value} 80% 55% / 0.35)`;
    ctx.beginPath();
    polygon(ctx, camera, [[left, low], [left + edge, low], [left + edge, low + edge], [left, low + edge]]); // prettier-ignore
    ctx.fill();
    if (edge * camera.scale > 5) {
      ctx.strokeStyle = `hsl(${200 - 180 * value} 80% 40% / 0.5)`;
      ctx.lineWidth = 0.5;
      ctx.stroke();
    }
  }
  ctx.strokeStyle = world.palette.measure;
  ctx.lineWidth = 1.5;
  for (const [x1, y1, x2, y2] of lines) {
    ctx.beginPath();
    ctx.moveTo(...camera.toScreen(x1 - ox, y1 - oy));
    ctx.lineTo(...camera.toScreen(x2 - ox, y2 - oy));
    ctx.stroke();
  }
  for (const name of names) {
    const row = world.rows.get(name);
    if (row === undefined) continue;
    outline(ctx, world.model(row).parts, camera, world.pose(row));
    ctx.stroke();
  }
}
