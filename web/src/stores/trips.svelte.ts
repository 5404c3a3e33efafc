// Trips of robots to goals: sent from the page, planned and driven by the simulator.

import type { TripInfo } from "../generated/messages";
import { count, shown } from "../text";
import type { World } from "../view/world";
import { batches, type Asks, type Redraw, type Says } from "./ports";

/** States in which a robot does not come nearer to its goal. */
const BLOCKED: ReadonlySet<string> = new Set(["blocked", "no path"]);

export class Trips {
  all = $state.raw<ReadonlyMap<string, TripInfo>>(new Map());

  constructor(
    private world: Pick<World, "trips" | "schema">,
    private fleet: { readonly drivable: string[] },
    private session: Asks,
    private notices: Says,
    private redraw: Redraw,
    private group: () => number,
  ) {}

  received(trips: readonly TripInfo[]): void {
    this.all = new Map(trips.map((t) => [t.robot, t]));
    this.place();
  }

  /** Put the trips where they are drawn; again when the origin of what is drawn has moved. `hidden`: an earlier moment is shown. */
  place(hidden = false): void {
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const of = (t: TripInfo) => ({
      goals: t.goals.map(([x, y, th]) => [x - ox, y - oy, th] as [number, number, number | null]),
      path: t.path.map(([x, y]) => [x - ox, y - oy] as [number, number]),
      blocked: BLOCKED.has(t.state),
    });
    this.world.trips = new Map(hidden ? [] : [...this.all].map(([name, t]) => [name, of(t)]));
    this.redraw();
  }

  /** Robots that goals are for: the selected ones. It says so when there are none. */
  private get robots(): string[] {
    const names = this.fleet.drivable;
    if (!names.length) this.notices.say("select the robots that are to drive");
    return names;
  }

  /** Send the selected robots to a point, m, with a heading or any; `queue`: after their other goals. */
  async send(at: readonly [number, number], th: number | null, queue = false): Promise<void> {
    await this.ask((names, group) => ({ type: "send", names, goals: [[at[0], at[1], th]], queue, group }), queue ? "one more goal" : "sent");
  }

  /** Tell the programs of the selected robot where it is. */
  async estimate(at: readonly [number, number], th: number): Promise<void> {
    const [name] = this.robots;
    if (name && (await this.session.ask({ type: "estimate", name, x: at[0], y: at[1], th })) !== undefined) this.notices.say(`${shown(name)}: pose estimate published`);
  }

  /** Send the selected robots to docks. */
  async dock(): Promise<void> {
    await this.ask((names, group) => ({ type: "dock", names, group }), "to the docks");
  }

  /** Let the selected robots stay where they are. */
  async stop(): Promise<void> {
    await this.ask((names, group) => ({ type: "send", names, goals: [], group }), "stopped");
  }

  /** Let robots drive between their goals again and again, each between its own. */
  async patrol(order: "loop" | "back"): Promise<void> {
    const group = this.group();
    const names = this.robots.filter((n) => this.all.has(n));
    if (!names.length) this.notices.say("choose goals first: Go there, and with Shift more of them");
    for (const name of names) {
      const { goals } = this.all.get(name)!;
      await this.session.ask({ type: "send", names: [name], goals, order, group });
    }
    if (names.length) this.notices.offer(`${count(names.length, "robot")} on patrol`);
  }

  private async ask(request: (names: string[], group: number) => Parameters<Asks["ask"]>[0], done: string): Promise<void> {
    const names = this.robots;
    const group = this.group();
    let sent = 0;
    for (const some of batches(names)) if ((await this.session.ask(request(some, group))) !== undefined) sent += some.length;
    if (sent) this.notices.offer(`${names.length === 1 ? shown(names[0]) : count(sent, "robot")}: ${done}`);
  }
}
