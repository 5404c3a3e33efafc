// The run of traffic: its paths, what is said about it, decisions by hand, and paths that are drawn. It is loaded with its panel.

import type { Traffic as State, TrafficPlan, TrafficWait } from "../generated/messages";
import { fixed, shown } from "../text";
import { sectorsOf, type Draft, type Sectors } from "../view/traffic";
import type { World } from "../view/world";
import type { Asks, Redraw, Says } from "./ports";

type Point = readonly [number, number];
const NO_PLAN: TrafficPlan = { version: -1, paths: [], supervisors: [] };

export class Traffic {
  plan = $state.raw<TrafficPlan>(NO_PLAN);
  sectors: Sectors = [];
  /** Paths that are being drawn, by robot. */
  drafts = $state.raw<Draft[]>([]);
  /** The robot whose path is drawn. */
  robot = $state("");
  supervisor = $state("bankers");
  private asked = -1;

  constructor(
    private world: Pick<World, "rows" | "pose" | "schema">,
    private session: Asks,
    private notices: Says & { offer(text: string): void },
    private redraw: Redraw,
  ) {}

  /** A new state: its paths are asked for when they have changed. */
  async told(state: State | null): Promise<void> {
    this.redraw();
    if (!state || this.asked === state.version) return;
    this.asked = state.version;
    const plan = await this.session.ask<TrafficPlan>({ type: "traffic_plan" });
    if (!plan) this.asked = -1;
    else {
      this.plan = plan;
      this.sectors = sectorsOf(plan);
      this.asked = plan.version;
    }
    this.redraw();
  }

  name(robot: number): string {
    return this.plan.paths[robot]?.robot ?? `robot ${robot}`;
  }

  names(robots: readonly number[]): string {
    return listed(robots.map((i) => shown(this.name(i))));
  }

  /** Why a robot waits: "held by bob". */
  why({ by, reason }: TrafficWait): string {
    return [reason, by.length ? `held by ${this.names(by)}` : ""].filter(Boolean).join("; ");
  }

  // -- by hand

  async hold(on: boolean): Promise<void> {
    await this.session.ask({ type: "hold_traffic", on });
  }

  async step(): Promise<void> {
    await this.session.ask({ type: "step_traffic" });
  }

  async grant(name: string): Promise<void> {
    if ((await this.session.ask({ type: "grant_sector", name })) !== undefined) this.notices.offer(`${shown(name)} may enter its next sector`);
  }

  async revoke(name: string): Promise<void> {
    if ((await this.session.ask({ type: "revoke_sector", name })) !== undefined) this.notices.offer(`permission of ${shown(name)} taken back`);
  }

  async end(): Promise<void> {
    if ((await this.session.ask({ type: "end_traffic" })) !== undefined) this.notices.say("the traffic run has ended");
  }

  // -- drawing paths

  /** Add a point to the path of the robot, m in the world's frame. */
  add(point: Point): void {
    const { robot, world } = this;
    const row = world.rows.get(robot);
    if (row === undefined) {
      this.notices.say("choose the robot that is to drive the path");
      return;
    }
    const [ox, oy] = world.schema?.origin ?? [0, 0];
    const [x, y] = world.pose(row);
    const draft = this.draft ?? { robot, points: [[x + ox, y + oy]] };
    const points: Point[] = [...draft.points, [Number(point[0].toFixed(3)), Number(point[1].toFixed(3))]];
    this.drafts = [...this.drafts.filter((d) => d.robot !== robot), { robot, points }];
    this.redraw();
  }

  get draft(): Draft | undefined {
    return this.drafts.find((d) => d.robot === this.robot);
  }

  /** Take the last point of the robot's path away. */
  back(): void {
    const points = this.draft?.points.slice(0, -1) ?? [];
    const others = this.drafts.filter((d) => d.robot !== this.robot);
    this.drafts = points.length > 1 ? [...others, { robot: this.robot, points }] : others;
    this.redraw();
  }

  clear(): void {
    this.drafts = [];
    this.redraw();
  }

  /** Let the robots drive their paths; whether they do. */
  async run(): Promise<boolean> {
    const paths = this.drafts.map(({ robot, points }) => ({ robot, points: points.slice(1).map(([x, y]): [number, number] => [x, y]) }));
    const done = await this.session.ask({ type: "run_traffic", paths, supervisor: this.supervisor });
    if (done === undefined) return false;
    this.notices.offer(`${paths.length === 1 ? "a robot drives" : `${paths.length} robots drive`} under ${this.supervisor}`);
    this.clear();
    return true;
  }
}

/** "ann", "ann and bob", "ann, bob and carol". */
export function listed(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** "12 s", "3 min 5 s". */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return whole < 60 ? `${fixed(whole, 0)} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
