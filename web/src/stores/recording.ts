// Recordings of the run: begun and ended by a button; what is kept in memory only is saved by another one.

import { USUAL_TOPICS, type Status } from "../generated/messages";
import type { Ask } from "../net/connection";
import { count } from "../text";
import type { Asks, Tells } from "./ports";

type Start = Extract<Ask, { type: "start_recording" }>;

/** The user's choice of topics to record. */
export interface Choice {
  /** Usual topics with scans of lasers that have subscribers; usual topics without scans; all; topics that match `patterns`. */
  topics: "usual" | "withoutScans" | "all" | "named";
  /** Patterns of topics, separated by blanks or commas. */
  patterns: string;
  /** Names; null: all robots, also those that come later. */
  robots: readonly string[] | null;
  /** Keep only so many minutes of simulated time in memory, until they are saved; 0: write all to a file. */
  minutes: number;
  /** Save the kept minutes when a robot stalls. */
  onStall: boolean;
  /** Most messages for each simulated second by patterns, see `rated`; 0: one for each step; without one, or null: as usual. */
  rates: Readonly<Record<string, number | null | undefined>>;
}

/** Most minutes that are kept (StartRecording of protocols/webgui/messages.py). */
export const MOST_MINUTES = 1440;

/** Most patterns of topics, and of robots (StartRecording of protocols/webgui/messages.py). */
export const MOST_PATTERNS = 100;

/** Highest rate, Hz (StartRecording of protocols/webgui/messages.py). */
export const HIGHEST_RATE_HZ = 1e6;

/** A pattern that fits one name only. */
export function exactly(name: string): string {
  return name.replace(/[*?[]/g, "[$&]");
}

function patternsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((pattern) => pattern !== "");
}

/** The patterns that may have rates: those that are named, or one for all topics. */
export function rated({ topics, patterns }: Pick<Choice, "topics" | "patterns">): string[] {
  return topics === "named" ? [...new Set(patternsIn(patterns))] : ["*"];
}

function ratesOf(choice: Choice): [string, number][] {
  return rated(choice).flatMap((pattern): [string, number][] => {
    const rate = choice.rates[pattern];
    return typeof rate === "number" ? [[pattern, rate]] : [];
  });
}

export class Recording {
  constructor(
    private session: Asks & { readonly stats: Pick<Status, "recording"> | null },
    private notices: Tells,
  ) {}

  /** Why a choice cannot be recorded; "": it can. Patterns are for the simulator to judge. */
  static problem(choice: Choice): string {
    const topics = choice.topics === "named" ? patternsIn(choice.patterns).length : 1;
    const robots = choice.robots ? choice.robots.length : 1;
    if (!(choice.minutes >= 0 && choice.minutes <= MOST_MINUTES)) return `expected 0 to ${MOST_MINUTES} minutes`;
    if (ratesOf(choice).some(([, rate]) => !(rate >= 0 && rate <= HIGHEST_RATE_HZ))) return `expected rates of 0 to ${HIGHEST_RATE_HZ} a second`;
    if (!topics) return "no topics";
    if (!robots) return "no robots";
    if (topics > MOST_PATTERNS) return `${topics} patterns; at most ${MOST_PATTERNS}`;
    return robots > MOST_PATTERNS ? `${count(robots, "robot")}; at most ${MOST_PATTERNS}, or all` : "";
  }

  toggle(): Promise<boolean> {
    return this.session.stats?.recording ? this.ask({ type: "stop_recording" }, "recorded: ") : this.begin({ type: "start_recording" });
  }

  /** Record what was chosen; false: the simulator refuses. */
  start(choice: Choice): Promise<boolean> {
    const { topics, patterns, robots, minutes, onStall } = choice;
    const rates = ratesOf(choice);
    const wish: Start = { type: "start_recording" };
    if (topics === "withoutScans") wish.topics = [...USUAL_TOPICS];
    else if (topics === "all") wish.topics = ["*"];
    else if (topics === "named") wish.topics = patternsIn(patterns);
    if (robots) wish.robots = robots.map(exactly);
    if (rates.length) wish.rates = rates;
    if (minutes) wish.last = minutes * 60;
    if (minutes && onStall) wish.on_stall = true;
    return this.begin(wish);
  }

  save(): Promise<boolean> {
    return this.ask({ type: "save_recording" }, "saved: ");
  }

  private begin(wish: Start): Promise<boolean> {
    return this.ask(wish, wish.last ? "keeping for " : "recording to ");
  }

  /** Ask for it, and say where the file is; false: the simulator refuses. */
  private async ask(request: Ask, done: string): Promise<boolean> {
    const path = await this.session.ask<string>(request);
    if (path === undefined) return false;
    if (request.type === "start_recording") this.notices.say(done + path, false, 8); // it is not all there yet
    else this.notices.hand(done, path);
    return true;
  }
}
