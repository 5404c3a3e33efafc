// Values of the selected robots, as the inspector shows them, and their course for its charts.

import type { CourseResult, Detail } from "../generated/messages";

/** Values of the charts, one entry a sample: s, m/s, °/s, m and m. Without a value there is a gap. */
export interface History {
  time: number[];
  v: (number | null)[];
  w: (number | null)[];
  nearest: (number | null)[];
  error: (number | null)[];
}

export const MAX_SAMPLES = 900;
/** Robots whose course is kept; the one that was looked at longest ago gives way. */
export const MAX_HISTORIES = 200;
/** Values come several times a second; after this silence, ms, there is a gap in the course. */
export const GAP = 1500;

function empty(): History {
  return { time: [], v: [], w: [], nearest: [], error: [] };
}

export class Readouts {
  details = $state.raw<Detail[]>([]);
  histories = new Map<string, History>();
  /** The course of the selected robot until the earlier moment that is shown; null: the present is shown. */
  past = $state.raw<{ name: string; course: History } | null>(null);
  /** Counts samples: histories are plain, for speed. */
  historyVersion = $state(0);
  private heard = new Map<string, number>();

  /** `past`: they are of an earlier moment, and no part of the course. */
  receive(time: number, robots: Detail[], now = performance.now(), past = false): void {
    this.details = robots;
    if (past) return;
    for (const r of robots) this.sample(time, r, now);
    for (const name of this.histories.keys()) {
      if (this.histories.size <= MAX_HISTORIES) break;
      this.histories.delete(name);
      this.heard.delete(name);
    }
    this.historyVersion++;
  }

  private sample(time: number, r: Detail, now: number): void {
    let h = this.histories.get(r.name);
    this.histories.delete(r.name); // put last again: it is the one looked at most recently
    // time that goes back is another run
    if (!h || (h.time.length && time < h.time[h.time.length - 1])) h = empty();
    this.histories.set(r.name, h);
    const silent = now - (this.heard.get(r.name) ?? now);
    this.heard.set(r.name, now);
    const last = h.time[h.time.length - 1];
    if (time === last) return;
    if (last !== undefined && silent > GAP) add(h, (last + time) / 2, null, null, null, null);
    const v = Math.hypot(r.velocity[0], r.velocity[1]) * (r.velocity[0] < 0 ? -1 : 1);
    add(h, time, v, (r.velocity[2] * 180) / Math.PI, r.nearest, r.odometry_error[0]);
  }

  /** What the simulator has kept of the last minutes, before the first sample of the page. */
  before(course: CourseResult, now = performance.now()): void {
    // It may come before the first sample, which then follows a gap if it is late.
    if (!this.heard.has(course.name)) this.heard.set(course.name, now);
    const known = this.histories.get(course.name) ?? empty();
    const h = historyOf(course, known.time[0] ?? Infinity);
    for (let k = 0; k < known.time.length; k++) add(h, known.time[k], known.v[k], known.w[k], known.nearest[k], known.error[k]);
    this.histories.set(course.name, h);
    this.historyVersion++;
  }

  /** The course until an earlier moment. */
  look(course: CourseResult): void {
    this.past = { name: course.name, course: historyOf(course, Infinity) };
    this.historyVersion++;
  }

  /** Others are selected: values of those that are not any more go at once. */
  keepOnly(names: readonly string[]): void {
    const wanted = new Set(names);
    this.details = this.details.filter((d) => wanted.has(d.name));
  }
}

function historyOf({ time, v, w, error }: CourseResult, until: number): History {
  const h = empty();
  for (let k = 0; k < time.length; k++) if (time[k] < until) add(h, time[k], v[k], (w[k] * 180) / Math.PI, null, error[k]);
  return h;
}

function add(h: History, time: number, v: number | null, w: number | null, nearest: number | null, error: number | null): void {
  h.time.push(time);
  h.v.push(v);
  h.w.push(w);
  h.nearest.push(nearest);
  h.error.push(error);
  if (h.time.length > MAX_SAMPLES) for (const list of [h.time, h.v, h.w, h.nearest, h.error]) list.shift();
}
