// Values of the selected robots, as the inspector shows them, and their course for its charts.

import type { Detail } from "../generated/messages";

/** Values of the charts, one entry a sample: s, m/s, °/s, m and m. */
export interface History {
  time: number[];
  v: number[];
  w: number[];
  nearest: (number | null)[];
  error: number[];
}

export const MAX_SAMPLES = 300;
/** Robots whose course is kept; the one that was looked at longest ago gives way. */
export const MAX_HISTORIES = 200;

export class Readouts {
  details = $state.raw<Detail[]>([]);
  histories = new Map<string, History>();
  /** Counts samples: histories are plain, for speed. */
  historyVersion = $state(0);

  receive(time: number, robots: Detail[]): void {
    this.details = robots;
    for (const r of robots) this.sample(time, r);
    for (const name of this.histories.keys()) {
      if (this.histories.size <= MAX_HISTORIES) break;
      this.histories.delete(name);
    }
    this.historyVersion++;
  }

  private sample(time: number, r: Detail): void {
    let h = this.histories.get(r.name);
    this.histories.delete(r.name); // put last again: it is the one looked at most recently
    // time that goes back is another run
    if (!h || (h.time.length && time < h.time[h.time.length - 1])) h = { time: [], v: [], w: [], nearest: [], error: [] };
    this.histories.set(r.name, h);
    if (time === h.time[h.time.length - 1]) return;
    h.time.push(time);
    h.v.push(Math.hypot(r.velocity[0], r.velocity[1]) * (r.velocity[0] < 0 ? -1 : 1));
    h.w.push((r.velocity[2] * 180) / Math.PI);
    h.nearest.push(r.nearest);
    h.error.push(r.odometry_error[0]);
    if (h.time.length > MAX_SAMPLES) for (const list of [h.time, h.v, h.w, h.nearest, h.error]) list.shift();
  }

  /** Others are selected: values of those that are not any more go at once. */
  keepOnly(names: readonly string[]): void {
    const wanted = new Set(names);
    this.details = this.details.filter((d) => wanted.has(d.name));
  }
}
