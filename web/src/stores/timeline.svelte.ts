// The time line: looking back at an earlier moment, which changes nothing, and letting the world go on from there; or going through a recording.

import type { Looked, Mark, TimeLine as State } from "../generated/messages";
import type { Ask } from "../net/connection";
import type { Asks, Says } from "./ports";

/** Nearer to the latest moment than this, s, the bar means now. */
const NOW_S = 0.05;
/** An event this near, s, is the one that is shown: the moment that is shown for it may be a little earlier. */
const SAME_S = 0.25;
/** Least time that the bar spans, s. */
const MIN_SPAN_S = 0.5;

export class TimeLine {
  /** The available history; null: none. */
  state = $state.raw<State | null>(null);
  /** Events, oldest first. */
  marks = $state.raw<Mark[]>([]);
  /** The moment that is shown; null: now, or a recording. */
  looked = $state.raw<Looked | null>(null);
  /** Where the bar was put while the simulator has not shown it yet, s. */
  private wanted = $state<number | null>(null);
  /** The part that the bar spans; null: all of it. */
  private part = $state.raw<{ first: number; last: number } | null>(null);
  /** Where the bar is in the window, pixels: the chart below has its times at the same places. */
  place = $state.raw({ left: 0, right: 0 });
  private waits: Ask | null = null;
  private busy = false;

  constructor(
    private session: Asks & { readonly readOnly: boolean },
    private notices: Says,
    /** Simulated time of what is drawn, s. */
    private now: () => number,
    private changed: () => void,
  ) {}

  /** An earlier moment of a running simulation is shown. */
  get isLooking(): boolean {
    return this.looked !== null;
  }

  /** A recording is shown: the bar moves it for all pages. */
  get isReplay(): boolean {
    return !!this.state?.replay;
  }

  /** Where the bar is, s. */
  get time(): number {
    const at = this.isReplay ? this.now() : (this.looked?.time ?? this.state?.last ?? 0);
    return this.wanted ?? at;
  }

  /** How long before the latest moment the one that is shown is, s. */
  get ago(): number {
    return Math.max(0, (this.state?.last ?? 0) - this.time);
  }

  /** Times at the ends of the bar, s. */
  get span(): { first: number; last: number } {
    const { first, last } = this.state ?? { first: 0, last: 0 };
    if (!this.part) return { first, last };
    return { first: Math.max(first, this.part.first), last: Math.min(last, this.part.last) };
  }

  get isZoomed(): boolean {
    return this.part !== null;
  }

  told(state: State | null): void {
    if (state?.replay !== this.state?.replay) this.part = null;
    this.state = state;
  }

  /** Let the bar span more or less time; what is at a time, s, stays where it is. */
  zoom(factor: number, at: number): void {
    const { first, last } = this.span;
    const part = Math.min(1, Math.max(0, (at - first) / Math.max(last - first, 1e-9)));
    const span = Math.max(MIN_SPAN_S, (last - first) / factor);
    this.show(at - part * span, span);
  }

  /** Move what the bar spans, s. */
  pan(by: number): void {
    const { first, last } = this.span;
    this.show(first + by, last - first);
  }

  /** Let the bar span all again. */
  whole(): void {
    this.part = null;
  }

  /** A moment outside of what the bar spans is shown: go there. */
  keepInView(): void {
    const { first, last } = this.span;
    if (this.part && (this.time < first || this.time > last)) this.show(this.time - 0.1 * (last - first), last - first);
  }

  private show(first: number, span: number): void {
    if (!this.state) return;
    const begin = Math.max(this.state.first, Math.min(first, this.state.last - span));
    const all = span >= this.state.last - this.state.first;
    this.part = all ? null : { first: begin, last: begin + span };
  }

  marked(marks: Mark[]): void {
    this.marks = marks;
  }

  /** The connection is another one: it shows the present. */
  lose(): void {
    this.wanted = this.waits = this.looked = null;
    this.changed();
  }

  /** Look at a moment, s. */
  async seek(time: number): Promise<void> {
    if (!this.state) return;
    if (!this.isReplay && !this.isLooking && time >= this.state.last - NOW_S) return;
    this.wanted = time;
    await this.look({ type: "look", time: Math.max(0, time) });
  }

  /** The moment before or after. */
  async step(by: 1 | -1): Promise<void> {
    if (!this.state) this.notices.say("no moments are kept (--history)");
    else if (by < 0 || this.looked || this.isReplay) await this.look({ type: "look", by });
  }

  /** The event before or after the moment that is shown. */
  async toMark(by: 1 | -1): Promise<void> {
    const { state } = this;
    if (!state) return this.step(by);
    const time = this.isLooking || this.isReplay ? this.time : Infinity; // the latest reported moment lags behind the live world
    const times = this.marks.map((mark) => mark.time).filter((t) => t >= state.first && (t - time) * by > SAME_S);
    if (times.length) await this.look({ type: "look", time: by > 0 ? Math.min(...times) : Math.max(...times) });
    else this.notices.say(by > 0 ? "there is no event after this moment" : "there is no event before this moment");
  }

  async back(): Promise<void> {
    if (this.looked) await this.look({ type: "look" });
  }

  /** Let the world go on from the moment that is shown. */
  async goOn(): Promise<void> {
    const time = await this.session.ask<number>({ type: "go_on" });
    if (time === undefined) return;
    this.looked = null;
    this.changed();
    this.notices.offer(`the world goes on from ${time.toFixed(1)} s`);
  }

  /** Switch whether a recording starts again at its end. */
  async toggleLoop(): Promise<void> {
    await this.session.ask({ type: "loop", on: !this.state?.loop });
  }

  /** Of several that are asked for while one is under way, only the last one is sent. */
  private async look(ask: Ask): Promise<void> {
    if (this.busy) {
      this.waits = ask;
      return;
    }
    this.busy = true;
    try {
      for (let next: Ask | null = ask; next; next = this.waits) {
        this.waits = null;
        const looked: Looked | null | undefined = await this.session.ask<Looked | null>(next);
        if (looked === undefined) break; // the simulator has refused it
        this.looked = looked;
        this.changed();
      }
    } finally {
      this.busy = false;
      this.waits = this.wanted = null;
    }
  }
}
