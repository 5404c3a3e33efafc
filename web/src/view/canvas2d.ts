// The back-end for machines without a graphics processor, and for tests: a 2-D canvas that is drawn by the CPU.

import { Bit, NO_READING, type Group, type Model } from "../generated/messages";
import type { Readings } from "../net/frames";
import { Camera } from "./camera";
import { FloorImages, floorZones, type FloorImage } from "./floor";
import { gridLines } from "./grid";
import { css, rgba } from "./palette";
import { choose, type Chosen, type Drawn, type Renderer } from "./renderer";
import { headingMark, isLine } from "./shape";
import { JUMP, SAMPLES } from "./trails";
import { isJump, MAX_FILLED, type World } from "./world";

/** Trails fade in so many steps. */
const BANDS = 4;
/** Bodies smaller than this, in pixels, are drawn as dots. */
const DOT = 2.5;

export class Canvas2D implements Renderer {
  readonly name = "canvas2d";
  readonly canvas: HTMLCanvasElement;
  private ctx: CanvasRenderingContext2D;
  private ratio = 1;
  /** Walls and points as a picture: drawing them costs far more than copying it. */
  private cache = document.createElement("canvas");
  private cacheCtx: CanvasRenderingContext2D;
  private cacheCamera = new Camera();
  private cacheKey = "";
  private cacheStale = true;
  private dots = document.createElement("canvas");
  private dotsCtx: CanvasRenderingContext2D;
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private paths = new Map<Model, { body: Path2D; mark: Path2D | null; size: number; isLine: boolean }>();
  private pathsVersion = -1;
  private directions = new Map<number, Float64Array>();
  private floor = new FloorImages();

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    // without this attribute the picture may be made by software that pretends to be a graphics processor, ten times slower
    const get = (c: HTMLCanvasElement) => c.getContext("2d", { willReadFrequently: true })!;
    this.ctx = get(canvas);
    this.cacheCtx = get(this.cache);
    this.dotsCtx = get(this.dots);
  }

  resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    for (const c of [this.canvas, this.cache, this.dots]) {
      c.width = Math.round(width * ratio);
      c.height = Math.round(height * ratio);
    }
    this.image = this.dotsCtx.createImageData(this.dots.width, this.dots.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.cacheKey = "";
  }

  dispose(): void {}

  settle(): boolean {
    const stale = this.cacheStale;
    this.cacheStale = false;
    if (stale) this.cacheKey = "";
    return stale;
  }

  draw(world: World, camera: Camera): Drawn {
    const { ctx, ratio } = this;
    const drawn: Drawn = { bodies: 0, fans: 0, points: 0, sonar: 0 };
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = world.palette.ground;
    ctx.fillRect(0, 0, camera.width, camera.height);
    if (world.layers.grid) this.drawGrid(world, camera);
    if (world.layers.floor) this.drawFloor(world, camera); // paint hides the grid, whose colours suit the plain ground alone
    if (world.layers.pheromones) for (const image of this.floor.fields(world)) this.drawImage(image, camera);
    if (world.frame && world.schema) this.drawReadings(world, camera, drawn);
    if (world.layers.map) this.drawMap(world, camera);
    if (world.layers.trails) this.drawTrails(world, camera);
    if (world.layers.bodies) this.drawBodies(world, camera, drawn);
    return drawn;
  }

  // -- what stands still

  private drawFloor(world: World, camera: Camera): void {
    const { ctx } = this;
    const color = world.map.floor?.color;
    if (color) {
      ctx.fillStyle = css(color);
      ctx.fillRect(0, 0, camera.width, camera.height);
    }
    const picture = this.floor.picture(world);
    if (picture) this.drawImage(picture, camera);
    for (const { corners, fill, edge } of floorZones(world)) {
      const [r, g, b, a] = fill;
      ctx.beginPath();
      for (const [x, y] of corners) ctx.lineTo(...camera.toScreen(x, y));
      ctx.closePath();
      ctx.fillStyle = `rgba(${r * 255}, ${g * 255}, ${b * 255}, ${a})`;
      ctx.fill();
      if (!edge) continue;
      ctx.strokeStyle = edge;
      ctx.lineWidth = 1;
      ctx.stroke();
    }
  }

  private drawImage(image: FloorImage, camera: Camera): void {
    const { ctx, ratio } = this;
    const [px, py] = camera.toScreen(image.x, image.y);
    const k = camera.scale * ratio;
    const c = Math.cos(image.th + camera.angle);
    const s = Math.sin(image.th + camera.angle);
    // the image's y axis points down, the world's up
    ctx.setTransform(k * c, -k * s, k * s, k * c, px * ratio, py * ratio);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image.source, 0, -image.height, image.width, image.height);
    ctx.imageSmoothingEnabled = true;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  private drawGrid(world: World, camera: Camera): void {
    const { ctx } = this;
    for (const { lines, color } of gridLines(world, camera)) {
      ctx.strokeStyle = color;
      ctx.lineWidth = 1;
      ctx.beginPath();
      for (let i = 0; i < lines.length; i += 4) {
        const [x1, y1] = camera.toScreen(lines[i], lines[i + 1]);
        const [x2, y2] = camera.toScreen(lines[i + 2], lines[i + 3]);
        const half = 0.5 / this.ratio;
        ctx.moveTo(Math.round(x1) + half, Math.round(y1) + half);
        ctx.lineTo(Math.round(x2) + half, Math.round(y2) + half);
      }
      ctx.stroke();
    }
  }

  private drawMap(world: World, camera: Camera): void {
    const { map } = world;
    if (!map.walls.length && !map.points.length) return;
    const base = `${world.mapVersion},${world.paletteVersion},${camera.width},${camera.height}`;
    const key = `${base},${camera.x},${camera.y},${camera.scale},${camera.angle}`;
    if (key !== this.cacheKey) {
      const large = map.points.length + map.walls.length > 20000;
      if (large && this.cacheKey.startsWith(base + ",")) this.cacheStale = true; // the view moves: the old picture, shifted, will do
      else {
        this.paintMap(world, camera);
        this.cacheKey = key;
        this.cacheStale = false;
        Object.assign(this.cacheCamera, { x: camera.x, y: camera.y, scale: camera.scale, angle: camera.angle, width: camera.width, height: camera.height });
      }
    }
    const old = this.cacheCamera;
    const k = camera.scale / old.scale;
    const { ctx, ratio } = this;
    if (old.angle === camera.angle) {
      const [left, top] = camera.toScreen(...old.toWorld(0, 0));
      ctx.drawImage(this.cache, left, top, old.width * k, old.height * k);
      return;
    }
    const [x, y] = camera.toScreen(old.x, old.y);
    ctx.translate(x, y);
    ctx.rotate(old.angle - camera.angle);
    ctx.drawImage(this.cache, (-old.width * k) / 2, (-old.height * k) / 2, old.width * k, old.height * k);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  private paintMap(world: World, camera: Camera): void {
    const c = this.cacheCtx;
    const { map, palette } = world;
    const [x0, y0, x1, y1] = camera.box(1);
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.cache.width, this.cache.height);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = palette.wall;
    const size = Math.max(map.resolution * camera.scale, 1);
    const p = map.points;
    // a point is the lower left corner of its square; one that is smaller than a pixel begins there
    const half = size > 1 || camera.angle ? map.resolution / 2 : 0.5 / camera.scale;
    for (let i = 0; i < p.length; i += 2) {
      if (p[i] < x0 || p[i] > x1 || p[i + 1] < y0 || p[i + 1] > y1) continue;
      const [px, py] = camera.toScreen(p[i] + half, p[i + 1] + half);
      c.fillRect(px - size / 2, py - size / 2, size, size);
    }
    c.strokeStyle = palette.wall;
    c.lineWidth = Math.min(3, Math.max(1.25, 0.05 * camera.scale));
    c.lineCap = "round";
    c.beginPath();
    const w = map.walls;
    for (let i = 0; i < w.length; i += 4) {
      if (Math.max(w[i], w[i + 2]) < x0 || Math.min(w[i], w[i + 2]) > x1) continue;
      if (Math.max(w[i + 1], w[i + 3]) < y0 || Math.min(w[i + 1], w[i + 3]) > y1) continue;
      c.moveTo(...camera.toScreen(w[i], w[i + 1]));
      c.lineTo(...camera.toScreen(w[i + 2], w[i + 3]));
    }
    c.stroke();
  }

  // -- sensors

  private drawReadings(world: World, camera: Camera, drawn: Drawn): void {
    let filled = 0;
    let dotted = false;
    const bright: [Readings, Group][] = [];
    for (const block of world.frame!.readings) {
      const group = world.schema!.groups[block.group];
      if (!group || !(group.kind === "laser" ? world.layers.laser : world.layers.sonar)) continue;
      const chosen = choose(world, camera, block, group, group.kind === "laser" ? filled : 0, MAX_FILLED);
      if (group.kind === "sonar") {
        this.drawSonar(world, camera, block, group, chosen);
        drawn.sonar += chosen.index.length;
        continue;
      }
      filled += chosen.filled;
      for (let i = 0; i < chosen.filled; i++) this.drawFan(world, camera, block, group, chosen.index[i]);
      drawn.fans += chosen.filled;
      if (chosen.filled < chosen.index.length) {
        if (!dotted) this.pixels.fill(0);
        dotted = true;
        drawn.points += this.dotFans(world, camera, block, group, chosen);
      }
      if (block.bright.length) bright.push([block, group]);
    }
    if (dotted && this.image) {
      this.dotsCtx.putImageData(this.image, 0, 0);
      this.ctx.drawImage(this.dots, 0, 0, camera.width, camera.height);
    }
    for (const [block, group] of bright) this.drawBright(world, camera, block, group);
  }

  /** Cosine and sine of each bearing of a laser. */
  private bearings(group: Group): Float64Array {
    let table = this.directions.get(group.id);
    if (!table || table.length !== 2 * group.count) {
      table = new Float64Array(2 * group.count);
      this.directions.set(group.id, table);
    }
    for (let j = 0; j < group.count; j++) {
      const a = group.angle0 + j * group.step;
      table[2 * j] = Math.cos(a);
      table[2 * j + 1] = Math.sin(a);
    }
    return table;
  }

  /** The frame of a laser on the screen: origin, and what a metre ahead is, px. */
  private mount(world: World, camera: Camera, robot: number, group: Group): [number, number, number, number] {
    const [x, y, th] = world.pose(robot);
    const [mx, my, mth] = group.poses[0];
    const c = Math.cos(th);
    const s = Math.sin(th);
    const [px, py] = camera.toScreen(x + c * mx - s * my, y + s * mx + c * my);
    const seen = th + mth + camera.angle;
    return [px, py, Math.cos(seen) * camera.scale, Math.sin(seen) * camera.scale];
  }

  private drawFan(world: World, camera: Camera, block: Readings, group: Group, k: number): void {
    const { ctx } = this;
    const n = group.count;
    const [ox, oy, c, s] = this.mount(world, camera, block.robots[k], group);
    const table = this.bearings(group);
    const fill = new Path2D();
    const edge = new Path2D();
    fill.moveTo(ox, oy);
    let before = -1;
    for (let j = 0; j < n; j++) {
      const raw = block.ranges[k * n + j];
      const r = raw >= NO_READING ? 0 : raw * group.unit;
      const dx = r * table[2 * j];
      const dy = r * table[2 * j + 1];
      const px = ox + c * dx - s * dy;
      const py = oy - s * dx - c * dy;
      fill.lineTo(px, py);
      if (before < 0 || isJump(before, r)) edge.moveTo(px, py);
      else edge.lineTo(px, py);
      before = r;
    }
    fill.closePath();
    ctx.fillStyle = world.palette.laserFill;
    ctx.fill(fill);
    ctx.strokeStyle = world.palette.laserEdge;
    ctx.lineWidth = 1;
    ctx.stroke(edge);
  }

  private dotFans(world: World, camera: Camera, block: Readings, group: Group, chosen: Chosen): number {
    const n = group.count;
    const width = this.dots.width;
    const height = this.dots.height;
    const [r, g, b] = rgba(world.palette.laserPoint);
    const color = (0xd0 << 24) | (Math.round(b * 255) << 16) | (Math.round(g * 255) << 8) | Math.round(r * 255);
    const table = this.bearings(group);
    const none = group.range_max - group.unit;
    let count = 0;
    for (let i = chosen.filled; i < chosen.index.length; i++) {
      const k = chosen.index[i];
      const [ox, oy, c, s] = this.mount(world, camera, block.robots[k], group);
      for (let j = 0; j < n; j++) {
        const raw = block.ranges[k * n + j];
        const range = raw * group.unit;
        if (raw >= NO_READING || range >= none) continue;
        const dx = range * table[2 * j];
        const dy = range * table[2 * j + 1];
        const px = ((ox + c * dx - s * dy) * this.ratio) | 0;
        const py = ((oy - s * dx - c * dy) * this.ratio) | 0;
        if (px < 0 || py < 0 || px >= width - 1 || py >= height - 1) continue;
        const at = py * width + px;
        this.pixels[at] = this.pixels[at + 1] = this.pixels[at + width] = this.pixels[at + width + 1] = color;
        count++;
      }
    }
    return count;
  }

  private drawBright(world: World, camera: Camera, block: Readings, group: Group): void {
    const { ctx } = this;
    ctx.fillStyle = world.palette.bright;
    const table = this.bearings(group);
    for (const at of block.bright) {
      const k = Math.floor(at / group.count);
      const j = at % group.count;
      const [ox, oy, c, s] = this.mount(world, camera, block.robots[k], group);
      const r = block.ranges[at] * group.unit;
      const dx = r * table[2 * j];
      const dy = r * table[2 * j + 1];
      ctx.fillRect(ox + c * dx - s * dy - 2, oy - s * dx - c * dy - 2, 4, 4);
    }
  }

  private drawSonar(world: World, camera: Camera, block: Readings, group: Group, chosen: Chosen): void {
    const { ctx } = this;
    const n = group.count;
    ctx.strokeStyle = world.palette.sonar;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const k of chosen.index) {
      const [x, y, th] = world.pose(block.robots[k]);
      const c = Math.cos(th);
      const s = Math.sin(th);
      for (let j = 0; j < n; j++) {
        const raw = block.ranges[k * n + j];
        if (raw >= NO_READING) continue;
        const [mx, my, mth] = group.poses[j];
        const sx = x + c * mx - s * my;
        const sy = y + s * mx + c * my;
        const r = raw * group.unit;
        ctx.moveTo(...camera.toScreen(sx, sy));
        ctx.lineTo(...camera.toScreen(sx + r * Math.cos(th + mth), sy + r * Math.sin(th + mth)));
      }
    }
    ctx.stroke();
  }

  // -- robots

  private drawTrails(world: World, camera: Camera): void {
    const { ctx } = this;
    const { trails } = world;
    if (trails.count < 2) return;
    const many = trails.robots > 100;
    const stride = trails.robots > 400 ? 8 : many ? 4 : 1;
    const [x0, y0, x1, y1] = camera.box(5);
    const byColor = new Map<string, number[]>();
    for (let r = 0; r < trails.robots; r++) {
      const [x, y] = world.pose(r);
      if (x < x0 || x > x1 || y < y0 || y > y1 || world.isHidden(r)) continue;
      const color = world.color(r);
      const rows = byColor.get(color);
      if (rows) rows.push(r);
      else byColor.set(color, [r]);
    }
    ctx.lineWidth = 1.5;
    for (const [color, rows] of byColor) {
      ctx.strokeStyle = css(color);
      for (let band = 0; band < BANDS; band++) {
        ctx.globalAlpha = 0.15 + (0.6 * (band + 1)) / BANDS;
        ctx.beginPath();
        const from = Math.floor((trails.count * band) / BANDS);
        const to = Math.min(Math.floor((trails.count * (band + 1)) / BANDS) + stride, trails.count);
        for (const r of rows) this.trailPart(world, camera, r, from, to, stride, band === BANDS - 1);
        ctx.stroke();
      }
    }
    ctx.globalAlpha = 1;
  }

  private trailPart(world: World, camera: Camera, r: number, from: number, to: number, stride: number, last: boolean): void {
    const { trails } = world;
    const { ctx } = this;
    let bx = NaN;
    let by = NaN;
    const far = JUMP * stride;
    for (let k = from; k < to; k += stride) {
      const slot = (trails.head - trails.count + k + SAMPLES) % SAMPLES;
      const at = 2 * (r * SAMPLES + slot);
      const x = trails.data[at];
      const y = trails.data[at + 1];
      const [px, py] = camera.toScreen(x, y);
      if (Math.abs(x - bx) + Math.abs(y - by) <= far) ctx.lineTo(px, py);
      else ctx.moveTo(px, py);
      bx = x;
      by = y;
    }
    const [x, y] = world.pose(r);
    if (last && Math.abs(x - bx) + Math.abs(y - by) <= far) ctx.lineTo(...camera.toScreen(x, y));
  }

  private shapes(world: World): void {
    if (this.pathsVersion === world.schemaVersion) return;
    this.pathsVersion = world.schemaVersion;
    this.directions.clear();
    this.paths = new Map(
      world.schema!.models.map((model) => {
        const body = new Path2D();
        let size = 0;
        for (const part of model.parts) {
          part.forEach(([x, y], i) => {
            if (i) body.lineTo(x, y);
            else body.moveTo(x, y);
            size = Math.max(size, Math.hypot(x, y));
          });
          body.closePath();
        }
        const nose = headingMark(model);
        let mark: Path2D | null = null;
        if (nose) {
          mark = new Path2D();
          nose.forEach(([x, y], i) => (i ? mark!.lineTo(x, y) : mark!.moveTo(x, y)));
          mark.closePath();
        }
        return [model, { body, mark, size, isLine: isLine(model) }];
      }),
    );
  }

  private drawBodies(world: World, camera: Camera, drawn: Drawn): void {
    if (!world.frame || !world.schema) return;
    this.shapes(world);
    const { ctx, ratio } = this;
    const pose = world.frame.pose;
    const state = world.frame.state;
    const [x0, y0, x1, y1] = camera.box(2);
    const { fill: filled } = world.layers;
    const k = camera.scale * ratio;
    for (let i = 0; i < world.count; i++) {
      const x = pose[3 * i];
      const y = pose[3 * i + 1];
      if (x < x0 || x > x1 || y < y0 || y > y1 || world.isHidden(i)) continue;
      const shape = this.paths.get(world.model(i))!;
      const [px, py] = camera.toScreen(x, y);
      drawn.bodies++;
      const stalled = (state[i] & Bit.STALLED) !== 0;
      const outline = stalled ? world.palette.stalled : shape.isLine ? css(world.color(i)) : world.palette.outline;
      if (shape.size * camera.scale < DOT) {
        ctx.fillStyle = outline; // a pale dot would be lost on a pale ground
        ctx.fillRect(px - DOT - 1, py - DOT - 1, 2 * DOT + 2, 2 * DOT + 2);
        ctx.fillStyle = stalled ? outline : css(world.color(i));
        ctx.fillRect(px - DOT, py - DOT, 2 * DOT, 2 * DOT);
        continue;
      }
      const seen = pose[3 * i + 2] + camera.angle;
      const c = Math.cos(seen);
      const s = Math.sin(seen);
      ctx.setTransform(k * c, -k * s, -k * s, -k * c, px * ratio, py * ratio);
      if (filled && !(state[i] & Bit.GHOST)) {
        ctx.fillStyle = css(world.color(i));
        ctx.fill(shape.body);
      }
      ctx.lineWidth = (stalled ? 2.5 : 1.2) / camera.scale;
      ctx.strokeStyle = outline;
      ctx.stroke(shape.body);
      if (shape.mark) {
        ctx.fillStyle = outline;
        ctx.fill(shape.mark);
      }
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
}
