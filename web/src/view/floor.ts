// The floor as images and polygons, for both back-ends: picture, zones, pheromone fields.

import type { Zone } from "../net/frames";
import { rgba } from "./palette";
import type { World } from "./world";

/** An image on the floor: its lower left corner and turn, m and rad, and its size, m, relative to the map's origin. */
export interface FloorImage {
  key: string;
  /** Counts changes of the pixels. */
  version: number;
  source: ImageBitmap | HTMLCanvasElement;
  x: number;
  y: number;
  th: number;
  width: number;
  height: number;
}

export interface FloorZone {
  /** x, y of each corner, m, relative to the map's origin. */
  corners: [number, number][];
  fill: [number, number, number, number];
  edge: string;
}

/** The opacity of painted zones, and of zones that only act on robots. */
const PAINTED = 1;
const TINTED = 0.16;
/** Colours of zones without one of their own, by what they do. */
const TINTS = { hole: "#000000", slip: "#4aa3df", limit: "#e69f00", carpet: "#8b5a2b" };

/** Pictures of the fields, kept from frame to frame: only new levels are painted. */
export class FloorImages {
  private canvases = new Map<number, { canvas: HTMLCanvasElement; version: number; levels: Uint8Array | null }>();
  private mapVersion = -1;

  /** The picture of the floor; none until it is decoded. */
  picture(world: World): FloorImage | null {
    const picture = world.map.floor?.picture;
    if (!picture?.image) return null;
    const [ox, oy] = world.map.origin;
    const [x, y, th] = picture.pose;
    return {
      key: "picture",
      version: world.mapVersion,
      source: picture.image,
      x: x - ox,
      y: y - oy,
      th,
      width: picture.width,
      height: picture.height,
    };
  }

  /** The pheromone fields whose levels have arrived. */
  fields(world: World): FloorImage[] {
    if (this.mapVersion !== world.mapVersion) {
      this.mapVersion = world.mapVersion;
      this.canvases.clear();
    }
    const [ox, oy] = world.map.origin;
    return (world.map.floor?.fields ?? []).flatMap((field, number) => {
      const shown = world.fields.get(number);
      if (!shown || !shown.rows) return [];
      const columns = shown.levels.length / shown.rows;
      let kept = this.canvases.get(number);
      if (!kept) {
        kept = { canvas: document.createElement("canvas"), version: 0, levels: null };
        this.canvases.set(number, kept);
      }
      if (kept.levels !== shown.levels) {
        paint(kept.canvas, shown.levels, shown.rows, columns, field.color);
        kept.levels = shown.levels;
        kept.version++;
      }
      // a pixel is a block of cells, so that the image may be larger than the field
      const block = Math.ceil(Math.max(field.rows, field.columns) / Math.max(shown.rows, columns)) * field.cell;
      const [x, y] = field.area;
      const size = { width: columns * block, height: shown.rows * block };
      return [{ key: `field ${number}`, version: kept.version, source: kept.canvas, x: x - ox, y: y - oy, th: 0, ...size }];
    });
  }
}

function paint(canvas: HTMLCanvasElement, levels: Uint8Array, rows: number, columns: number, color: string): void {
  if (canvas.width !== columns || canvas.height !== rows) [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(columns, rows);
  const [r, g, b] = rgba(color).map((v) => Math.round(v * 255));
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const at = 4 * ((rows - 1 - row) * columns + column);
      image.data[at] = r;
      image.data[at + 1] = g;
      image.data[at + 2] = b;
      // the bodies below must stay visible
      image.data[at + 3] = 0.85 * levels[row * columns + column];
    }
  context.putImageData(image, 0, 0);
}

/** The zones of the floor, the last one on top. */
export function floorZones(world: World): FloorZone[] {
  const [ox, oy] = world.map.origin;
  return (world.map.floor?.zones ?? []).map((zone) => {
    const tint = tintOf(zone);
    const [r, g, b] = rgba(zone.hole ? TINTS.hole : zone.color || tint);
    const alpha = zone.hole || zone.color ? PAINTED : TINTED;
    return { corners: zone.corners.map(([x, y]) => [x - ox, y - oy]), fill: [r, g, b, alpha], edge: acts(zone) ? tint : "" };
  });
}

export function acts(zone: Zone): boolean {
  return zone.slip !== null || zone.speed_limit !== null || zone.odometry_scale !== null;
}

function tintOf(zone: Zone): string {
  if (zone.hole) return TINTS.hole;
  if (zone.speed_limit !== null) return TINTS.limit;
  return zone.slip !== null ? TINTS.slip : TINTS.carpet;
}

/** What is written at a zone: its name and what it does. */
export function zoneLabel(zone: Zone): string {
  const said = [zone.name];
  if (zone.hole) said.push("hole");
  if (zone.speed_limit !== null) said.push(`${zone.speed_limit} m/s`);
  if (zone.slip !== null) said.push(`slip ${Math.round(zone.slip * 100)} %`);
  if (zone.odometry_scale !== null) said.push(`odometry × ${zone.odometry_scale}`);
  return said.filter(Boolean).join(", ");
}
