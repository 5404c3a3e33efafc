// The few things that are drawn on top of either back-end: names, selection, odometry, places, rulers, debug pictures.

import { Bit } from "../generated/messages";
import { niceStep, type Camera } from "./camera";
import { degrees, fixed, shown } from "../text";
import { css } from "./palette";
import { MAX_LABELS, type World } from "./world";

/** Characters of a label, names of 64 and a mark. */
const MAX_LABEL = 80;

type Ctx = CanvasRenderingContext2D;
const FONT = "12px system-ui, sans-serif";

export function drawOverlay(ctx: Ctx, world: World, camera: Camera, ratio: number, clear: boolean): void {
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  if (clear) ctx.clearRect(0, 0, camera.width, camera.height);
  ctx.font = FONT;
  ctx.lineJoin = "round";
  drawEdge(ctx, world, camera);
  if (world.debug) drawDebug(ctx, world, camera);
  if (world.layers.areas) drawAreas(ctx, world, camera);
  if (world.layers.places) drawPlaces(ctx, world, camera);
  if (world.layers.odometry) drawOdometry(ctx, world, camera);
  if (world.layers.velocity) drawVelocity(ctx, world, camera);
  drawSelection(ctx, world, camera);
  drawMarks(ctx, world, camera);
  if (world.layers.labels || world.layers.pose) drawLabels(ctx, world, camera);
  if (world.preview) drawPreview(ctx, world, camera);
  if (world.measure) drawMeasure(ctx, world, camera);
  if (world.boxSelect) drawBox(ctx, world, camera);
  drawScale(ctx, world, camera);
}

/** Without a map, the world has this extent on each side of its origin, m; the plane continues, but robots are not meant to be there. */
const NO_MAP: [number, number, number, number] = [-100, -100, 100, 100];

/** The edge of the world: of what is mapped, or, without a map, of a square, with grey beyond. */
function drawEdge(ctx: Ctx, world: World, camera: Camera): void {
  if (!world.layers.map) return;
  const b = world.map.bounds ?? NO_MAP;
  const [ox, oy] = world.map.bounds ? world.map.origin : (world.schema?.origin ?? [0, 0]);
  const [x0, y1] = camera.toScreen(b[0] - ox, b[1] - oy);
  const [x1, y0] = camera.toScreen(b[2] - ox, b[3] - oy);
  if (b === NO_MAP) {
    ctx.beginPath();
    ctx.rect(0, 0, camera.width, camera.height);
    ctx.rect(x0, y0, x1 - x0, y1 - y0);
    ctx.fillStyle = world.palette.outside;
    ctx.fill("evenodd");
    return;
  }
  ctx.strokeStyle = world.palette.beyond;
  ctx.lineWidth = 1;
  ctx.strokeRect(x0 - 4, y0 - 4, x1 - x0 + 8, y1 - y0 + 8);
}

function outline(ctx: Ctx, world: World, camera: Camera, row: number, at: [number, number, number]): void {
  const [x, y, th] = at;
  const c = Math.cos(th);
  const s = Math.sin(th);
  ctx.beginPath();
  for (const part of world.model(row).parts) {
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
    if (camera.scale > 12 && area.name) {
      const [x, y] = camera.toScreen(area.corners[0][0] - ox, area.corners[0][1] - oy);
      text(ctx, world, area.name, x + 4, y - 4, world.palette.badArea);
    }
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
    if (place.heading) arrow(ctx, x, y, place.pose[2], 16);
    if (camera.scale > 14 && place.name) text(ctx, world, place.name, x + 10, y + 14, world.palette.place);
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
    outline(ctx, world, camera, row, at);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(...camera.toScreen(at[0], at[1]));
    const [x, y] = world.pose(row);
    ctx.lineTo(...camera.toScreen(x, y));
    ctx.stroke();
    ctx.setLineDash([]);
    const [px, py] = camera.toScreen(at[0], at[1]);
    const length = Math.max(14, 0.5 * camera.scale);
    arrow(ctx, px, py, at[2], length);
    ctx.lineWidth = 1;
    arrow(ctx, px, py, at[2] + Math.PI / 2, length * 0.7);
  }
}

function drawVelocity(ctx: Ctx, world: World, camera: Camera): void {
  const velocity = world.frame?.velocity;
  if (!velocity) return;
  ctx.strokeStyle = world.palette.velocity;
  ctx.lineWidth = 2;
  for (const row of shownRows(world, camera, velocity.length / 3)) {
    const [x, y, th] = world.pose(row);
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

function drawSelection(ctx: Ctx, world: World, camera: Camera): void {
  const rows = world.hovered >= 0 ? [...world.selected, world.hovered] : [...world.selected];
  for (const row of rows) {
    if (row >= world.count) continue;
    const chosen = world.selected.has(row);
    const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
    const r = Math.max(9, world.radius[row] * camera.scale + 5);
    ctx.strokeStyle = world.palette.selection;
    ctx.lineWidth = chosen ? 2.5 : 1.5;
    if (!chosen) ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.arc(x, y, r, 0, 7);
    ctx.stroke();
    ctx.setLineDash([]);
  }
}

/** The state of a body in a word. */
export function stateWords(state: number): string[] {
  const words: string[] = [];
  if (state & Bit.ESTOP) words.push("emergency stop");
  if (state & Bit.STALLED) words.push("stalled");
  if (state & Bit.HELD) words.push("held");
  return words;
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

function drawLabels(ctx: Ctx, world: World, camera: Camera): void {
  if (!world.frame || !world.schema) return;
  const robots = world.schema.robots;
  const rows = world.within(camera.box(0.5));
  const labelled = rows.length <= MAX_LABELS ? rows : rows.filter((r) => world.selected.has(r) || r === world.hovered);
  for (const row of labelled) {
    const body = world.schema.bodies[row];
    if (!body.robot && row !== world.hovered && !world.selected.has(row)) continue;
    const [x, y, th] = world.pose(row);
    const [px, py] = camera.toScreen(x, y);
    const r = Math.max(6, world.radius[row] * camera.scale);
    if (camera.scale < 6 && !world.selected.has(row) && row !== world.hovered) continue;
    const left = px + r * 0.75 + 4;
    let top = py - r * 0.75;
    if (world.layers.labels || row === world.hovered) {
      const client = world.frame.state[row] & Bit.CLIENT;
      text(ctx, world, client ? `● ${body.name}` : body.name, left, top, world.palette.label);
      const words = stateWords(world.frame.state[row]);
      if (words.length) text(ctx, world, words.join(", "), left, (top += 15), world.palette.stalled);
    }
    if ((world.layers.pose && row < robots) || row === world.hovered) {
      const [ox, oy] = world.schema.origin;
      text(ctx, world, `${fixed(x + ox, 2)}, ${fixed(y + oy, 2)} m, ${degrees(th)}`, left, top + 15, world.palette.label);
    }
  }
}

function text(ctx: Ctx, world: World, foreign: string, x: number, y: number, color: string): void {
  const words = shown(foreign, MAX_LABEL);
  ctx.strokeStyle = world.palette.labelGround;
  ctx.lineWidth = 3;
  ctx.strokeText(words, x, y);
  ctx.fillStyle = color;
  ctx.fillText(words, x, y);
}

function drawPreview(ctx: Ctx, world: World, camera: Camera): void {
  const { model, x, y, th } = world.preview!;
  const c = Math.cos(th);
  const s = Math.sin(th);
  ctx.globalAlpha = 0.6;
  ctx.fillStyle = css(model.color);
  ctx.strokeStyle = world.palette.outline;
  for (const part of model.parts) {
    ctx.beginPath();
    part.forEach(([px, py], i) => {
      const p = camera.toScreen(x + c * px - s * py, y + s * px + c * py);
      if (i) ctx.lineTo(...p);
      else ctx.moveTo(...p);
    });
    ctx.closePath();
    ctx.fill();
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

function drawMeasure(ctx: Ctx, world: World, camera: Camera): void {
  const { from, to } = world.measure!;
  const a = camera.toScreen(...from);
  const b = camera.toScreen(...to);
  ctx.strokeStyle = world.palette.measure;
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.moveTo(...a);
  ctx.lineTo(...b);
  ctx.stroke();
  for (const [x, y] of [a, b]) ctx.strokeRect(x - 3, y - 3, 6, 6);
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  ctx.font = `600 ${FONT}`;
  text(ctx, world, `${length.toFixed(3)} m, ${degrees(angle)}`, (a[0] + b[0]) / 2 + 8, (a[1] + b[1]) / 2 - 8, world.palette.measure);
  ctx.font = FONT;
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
    const [px, py] = camera.toScreen(x - ox, y - oy);
    const size = edge * camera.scale;
    ctx.fillStyle = `hsl(${200 - 180 * value} 80% 55% / 0.35)`;
    ctx.fillRect(px, py - size, size, size);
    if (size > 5) {
      ctx.strokeStyle = `hsl(${200 - 180 * value} 80% 40% / 0.5)`;
      ctx.lineWidth = 0.5;
      ctx.strokeRect(px, py - size, size, size);
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
    outline(ctx, world, camera, row, world.pose(row));
    ctx.stroke();
  }
}
