// A heat map as a picture for reports: walls, cells, and the scale with its unit.

import type { App } from "../app.svelte";
import type { Heat } from "../stores/heat.svelte";
import { Camera } from "../view/camera";
import { colorAt, drawHeat, pixels, valueAt } from "../view/heat";
import { LIGHT } from "../view/palette";

const WIDTH = 1200;
const FOOT = 54;

export async function heatPicture(app: App, heat: Heat, label: string, unit: string): Promise<Blob | null> {
  const { world } = app;
  const { result } = heat;
  if (!result) return null;
  const [ox, oy] = world.schema?.origin ?? [0, 0];
  const map: [number, number, number, number] = [result.x - ox, result.y - oy, result.x - ox + result.columns * result.edge, result.y - oy + result.rows * result.edge];
  const box = world.map.bounds ? world.bounds() : map;
  const height = Math.round(Math.min(2000, Math.max(200, (WIDTH * (box[3] - box[1])) / Math.max(box[2] - box[0], 1e-3))));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, height + FOOT];
  const ctx = canvas.getContext("2d", { willReadFrequently: true })!;
  ctx.fillStyle = LIGHT.ground;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  const camera = new Camera();
  camera.resize(WIDTH, height);
  camera.fit(box, 20);
  if (result.rows * result.columns) {
    const picture = new OffscreenCanvas(result.columns, result.rows);
    picture.getContext("2d")!.putImageData(new ImageData(pixels(result, heat.logarithmic), result.columns), 0, 0);
    drawHeat(ctx, camera, picture, result, map[0], map[1]);
  }
  ctx.strokeStyle = ctx.fillStyle = LIGHT.wall;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  const { walls, points } = world.map;
  for (let k = 0; k < walls.length; k += 4) {
    ctx.moveTo(...camera.toScreen(walls[k], walls[k + 1]));
    ctx.lineTo(...camera.toScreen(walls[k + 2], walls[k + 3]));
  }
  ctx.stroke();
  for (let k = 0; k < points.length; k += 2) {
    const [x, y] = camera.toScreen(points[k], points[k + 1]);
    ctx.fillRect(x - 0.5, y - 0.5, 1, 1);
  }
  ctx.font = "14px system-ui, sans-serif";
  const share = result.share === null ? "" : `: ${(100 * result.share).toFixed(1)} % of ${result.free.toFixed(1)} m² free area`;
  ctx.fillText(`${label}${share}, ${result.duration.toFixed(0)} s`, 20, height + 18);
  if (unit) {
    for (let k = 0; k < 300; k++) {
      ctx.fillStyle = `rgb(${colorAt(k / 299).join()})`;
      ctx.fillRect(20 + k, height + 26, 1, 12);
    }
    ctx.fillStyle = LIGHT.wall;
    for (const s of [0, 0.5, 1]) ctx.fillText(`${Number(valueAt(s, result.most, heat.logarithmic).toPrecision(2))}${s === 1 ? ` ${unit}` : ""}`, 20 + 300 * s, height + 52);
  }
  return new Promise((resolve) => void canvas.toBlob(resolve, "image/png"));
}
