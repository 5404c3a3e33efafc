// Simulated time: how late it is, how fast it goes.

import { FASTEST, PAUSED } from "../generated/messages";
import type { Frame } from "../net/frames";
import type { Asks } from "./ports";

export interface Info {
  /** Simulated time, s. */
  time: number;
  /** Simulated per wall time. */
  ratio: number;
  stepMs: number;
  tick: number;
  paused: boolean;
  fastest: boolean;
  /** Simulated per wall time that is wanted. */
  speed: number;
}

export const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
/** Numbers are shown anew no more often than every so many ms. */
export const INFO_PERIOD = 90;

export class Clock {
  info = $state.raw<Info>({ time: 0, ratio: 1, stepMs: 0, paused: false, fastest: false, speed: 1, tick: 0 });
  private last = -Infinity;

  constructor(private session: Asks) {}

  framed(frame: Pick<Frame, "flags" | "time" | "ratio" | "stepMs" | "tick" | "speed">, now: number): void {
    const paused = (frame.flags & PAUSED) !== 0;
    // while it stands still, no later frame would bring what is left out here
    if (!paused && !this.info.paused && now - this.last <= INFO_PERIOD) return;
    this.last = now;
    const { time, ratio, stepMs, tick, speed } = frame;
    this.info = { time, ratio, stepMs, tick, paused, fastest: (frame.flags & FASTEST) !== 0, speed };
  }

  async togglePause(): Promise<void> {
    await this.session.ask({ type: this.info.paused ? "run" : "pause" });
  }

  async step(): Promise<void> {
    await this.session.ask({ type: "step", count: 1 });
  }

  /** One faster or slower; after the fastest comes as fast as the machine can. */
  async changeSpeed(by: 1 | -1): Promise<void> {
    const { speed, fastest } = this.info;
    const found = fastest ? SPEEDS.length : SPEEDS.findIndex((s) => s >= speed - 1e-6);
    const index = found < 0 ? SPEEDS.length : found; // faster than all of them
    await this.setSpeed(index + by >= SPEEDS.length ? 0 : SPEEDS[Math.max(0, index + by)]);
  }

  /** Simulated per wall time; 0: as fast as the machine can. */
  async setSpeed(factor: number): Promise<void> {
    await this.session.ask({ type: "speed", factor });
  }
}
