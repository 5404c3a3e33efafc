// Conditions of robots that a user must see at once: emergency stop, stall, motors off. They come with each frame.

import { Bit } from "../generated/messages";
import type { Roster } from "./roster.svelte";

/** Bits whose change counts; bodies are held and taken by clients far more often. */
const WATCHED = Bit.STALLED | Bit.MOTORS | Bit.ESTOP;

/** How many of some robots have a condition. */
export type Share = "none" | "mixed" | "all";

export class Conditions {
  /** Names of robots whose emergency stop is pressed. */
  stopped = $state.raw<ReadonlySet<string>>(new Set());
  stalled = $state.raw<ReadonlySet<string>>(new Set());
  unpowered = $state.raw<ReadonlySet<string>>(new Set());
  private last = new Uint8Array(0);
  private bodies: unknown = null;

  constructor(private roster: Pick<Roster, "bodies" | "robots" | "name">) {}

  /** State of all bodies, see `Bit`; the first rows are robots. */
  framed(state: Uint8Array): void {
    const n = Math.min(this.roster.robots, state.length);
    let same = this.last.length === n && this.bodies === this.roster.bodies;
    for (let row = 0; same && row < n; row++) same = this.last[row] === (state[row] & WATCHED);
    if (same) return;
    this.bodies = this.roster.bodies;
    this.last = state.slice(0, n).map((bits) => bits & WATCHED);
    this.stopped = this.withBit(Bit.ESTOP, true);
    this.stalled = this.withBit(Bit.STALLED, true);
    this.unpowered = this.withBit(Bit.MOTORS, false);
  }

  private withBit(bit: number, on: boolean): ReadonlySet<string> {
    const names = new Set<string>();
    this.last.forEach((bits, row) => {
      if ((bits & bit) !== 0 === on) names.add(this.roster.name(row));
    });
    return names;
  }

  /** How many of some robots are in a set, and whether these are none, some or all. */
  static of(names: readonly string[], set: ReadonlySet<string>): { count: number; share: Share } {
    const count = names.filter((name) => set.has(name)).length;
    return { count, share: count === 0 ? "none" : count === names.length ? "all" : "mixed" };
  }
}
