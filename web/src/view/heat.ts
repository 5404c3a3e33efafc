// Colours of heat maps, and drawing of one. It is loaded when a heat map is opened.

import type { Camera } from "./camera";
import type { World } from "./world";

/** A heat map: values of cells, row by row from the lowest one; x, y: its lower left corner, m in the world's frame. */
export interface HeatMap {
  x: number;
  y: number;
  edge: number;
  rows: number;
  columns: number;
  most: number;
  values: Float32Array;
}

/** Viridis: its lightness grows evenly, for every kind of sight. */
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]] as const; // prettier-ignore

/** The colour of a share of the scale, 0 to 1. */
export function colorAt(share: number): [number, number, number] {
  const at = Math.min(1, Math.max(0, share)) * (STOPS.length - 1);
  const k = Math.min(STOPS.length - 2, Math.floor(at));
  return [0, 1, 2].map((i) => Math.round(STOPS[k][i] + (at - k) * (STOPS[k + 1][i] - STOPS[k][i]))) as [number, number, number];
}

/** The place of a value on the scale, 0 to 1. */
export function shareOf(value: number, most: number, logarithmic: boolean): number {
  if (most <= 0) return 0;
  return logarithmic ? Math.log1p((999 * value) / most) / Math.log(1000) : value / most;
}

/** The value at a place of the scale. */
export function valueAt(share: number, most: number, logarithmic: boolean): number {
  return logarithmic ? ((1000 ** share - 1) * most) / 999 : share * most;
}

/** Pixels of a heat map, one for each cell, the highest row first; cells without a value are clear. */
export function pixels(map: HeatMap, logarithmic: boolean): Uint8ClampedArray<ArrayBuffer> {
  const { rows, columns, values, most } = map;
  const data = new Uint8ClampedArray(4 * rows * columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column];
      if (value > 0) data.set([...colorAt(shareOf(value, most, logarithmic)), 255], 4 * ((rows - 1 - row) * columns + column));
    }
  return data;
}

/** Keep what follows off the bodies, which are drawn already. */
export function clipBodies(ctx: CanvasRenderingContext2D, world: World, camera: Camera): void {
  ctx.beginPath();
  ctx.rect(0, 0, camera.width, camera.height);
  for (const row of world.within(camera.box(2))) {
    const [x, y, th] = world.pose(row);
    const [c, s] = [Math.cos(th), Math.sin(th)];
    for (const part of world.model(row).parts) {
      part.forEach(([px, py], k) => {
        const at = camera.toScreen(x + c * px - s * py, y + s * px + c * py);
        if (k) ctx.lineTo(...at);
        else ctx.moveTo(...at);
      });
      ctx.closePath();
    }
  }
  ctx.clip("evenodd");
}

/** Draw the picture of a heat map where it lies; x, y: m from the origin of what is drawn. */
export function drawHeat(ctx: CanvasRenderingContext2D, camera: Camera, picture: CanvasImageSource, map: HeatMap, x: number, y: number): void {
  const [left, top] = camera.toScreen(x, y + map.rows * map.edge);
  const size = map.edge * camera.scale;
  ctx.save();
  ctx.translate(left, top);
  ctx.rotate(-camera.angle);
  ctx.imageSmoothingEnabled = false;
  ctx.globalAlpha = 0.62;
  ctx.drawImage(picture, 0, 0, map.columns * size, map.rows * size);
  ctx.restore();
}
