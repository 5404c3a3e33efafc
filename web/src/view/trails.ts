// Where robots were: a ring of samples, a fixed simulated time apart, for all robots together.

export const SAMPLES = 120;
/** Simulated time between two samples, s. */
export const SPACING = 0.2;

export class Trails {
  robots = 0;
  /** x, y of robot r's sample k at 2·(r·SAMPLES + k). NaN: none. */
  data = new Float32Array(0);
  /** Where the next sample goes. */
  head = 0;
  count = 0;
  version = 0;
  private last = -Infinity;

  reset(robots: number): void {
    this.robots = robots;
    this.data = new Float32Array(2 * robots * SAMPLES).fill(NaN);
    this.head = this.count = 0;
    this.last = -Infinity;
    this.version++;
  }

  add(time: number, pose: Float32Array): void {
    if (time < this.last) this.reset(this.robots);
    if (time - this.last < SPACING - 1e-9) return;
    this.last = time;
    for (let r = 0; r < this.robots; r++) {
      const at = 2 * (r * SAMPLES + this.head);
      this.data[at] = pose[3 * r];
      this.data[at + 1] = pose[3 * r + 1];
    }
    this.head = (this.head + 1) % SAMPLES;
    this.count = Math.min(this.count + 1, SAMPLES);
    this.version++;
  }

  clear(): void {
    this.reset(this.robots);
  }

  /** Samples of a robot, oldest first; a jump (it was placed) starts a new piece. */
  pieces(robot: number): [number, number, number][][] {
    const pieces: [number, number, number][][] = [];
    let piece: [number, number, number][] = [];
    for (let k = 0; k < this.count; k++) {
      const slot = (this.head - this.count + k + SAMPLES) % SAMPLES;
      const at = 2 * (robot * SAMPLES + slot);
      const x = this.data[at];
      const y = this.data[at + 1];
      const before = piece[piece.length - 1];
      if (before && Math.hypot(x - before[0], y - before[1]) > JUMP) {
        pieces.push(piece);
        piece = [];
      }
      if (!Number.isNaN(x)) piece.push([x, y, (k + 1 + SAMPLES - this.count) / SAMPLES]);
    }
    pieces.push(piece);
    return pieces.filter((p) => p.length > 1);
  }
}

/** Farther apart than this are no two samples of a robot that drove, m. */
export const JUMP = 1.5;
