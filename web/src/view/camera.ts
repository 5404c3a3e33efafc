// The part of the world that the window shows. World coordinates are metres relative to the schema's origin, y up; screen pixels, y down.

export type Box = [number, number, number, number];

export const MIN_SCALE = 0.05;
export const MAX_SCALE = 4000;

export class Camera {
  /** World point in the middle of the window, m. */
  x = 0;
  y = 0;
  /** CSS pixels per metre. */
  scale = 40;
  width = 1;
  height = 1;

  resize(width: number, height: number): void {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
  }

  /** The world is shown turned to the left by this angle, rad. */
  private turned = 0;
  private cos = 1;
  private sin = 0;

  get angle(): number {
    return this.turned;
  }

  set angle(angle: number) {
    if (angle === this.turned) return;
    this.turned = angle;
    [this.cos, this.sin] = [Math.cos(angle), Math.sin(angle)];
  }

  toScreen(x: number, y: number): [number, number] {
    const dx = (x - this.x) * this.scale;
    const dy = (y - this.y) * this.scale;
    return [this.width / 2 + this.cos * dx - this.sin * dy, this.height / 2 - this.sin * dx - this.cos * dy];
  }

  toWorld(px: number, py: number): [number, number] {
    const dx = (px - this.width / 2) / this.scale;
    const dy = (this.height / 2 - py) / this.scale;
    return [this.x + this.cos * dx + this.sin * dy, this.y - this.sin * dx + this.cos * dy];
  }

  pan(dx: number, dy: number): void {
    const [wx, wy] = this.toWorld(this.width / 2 - dx, this.height / 2 - dy);
    this.x = wx;
    this.y = wy;
  }

  /** Zoom by a factor; the world point under the screen point (px, py) stays there. */
  zoomAt(px: number, py: number, factor: number): void {
    const [wx, wy] = this.toWorld(px, py);
    this.scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, this.scale * factor));
    const [nx, ny] = this.toWorld(px, py);
    this.x += wx - nx;
    this.y += wy - ny;
  }

  zoom(factor: number): void {
    this.zoomAt(this.width / 2, this.height / 2, factor);
  }

  /** Show a box (least x, least y, greatest x, greatest y) with a margin in pixels. */
  fit(box: Box, margin = 24): void {
    const w = Math.max(box[2] - box[0], 1);
    const h = Math.max(box[3] - box[1], 1);
    const free = (size: number) => Math.max(size - 2 * margin, size / 2);
    this.scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, Math.min(free(this.width) / w, free(this.height) / h)));
    this.x = (box[0] + box[2]) / 2;
    this.y = (box[1] + box[3]) / 2;
  }

  /** A box around the visible part of the world, larger by `margin` m on all sides. */
  box(margin = 0): Box {
    const [c, s] = [Math.abs(this.cos), Math.abs(this.sin)];
    const w = (c * this.width + s * this.height) / 2 / this.scale + margin;
    const h = (s * this.width + c * this.height) / 2 / this.scale + margin;
    return [this.x - w, this.y - h, this.x + w, this.y + h];
  }

  /** Something that changes when the view does. */
  key(): string {
    return `${this.x},${this.y},${this.scale},${this.angle},${this.width},${this.height}`;
  }
}

/** The step of a scale bar or grid: 1, 2 or 5 times a power of ten, at least `least`. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const head = least / power;
  return (head <= 1 ? 1 : head <= 2 ? 2 : head <= 5 ? 5 : 10) * power;
}
