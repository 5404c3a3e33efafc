// Actions on all selected bodies at once.

import { count, shown } from "../text";
import type { Ask } from "../net/connection";
import { batches, type Asks, type Says } from "./ports";
import type { Roster } from "./roster.svelte";

export class Fleet {
  constructor(
    private selection: { readonly names: string[]; set(names: string[]): void },
    private roster: Pick<Roster, "drivable" | "robotNames" | "ofKind">,
    private session: Asks,
    private notices: Says,
    private request: (request: Ask) => Promise<unknown>,
    private group: () => number,
  ) {}

  /** Selected robots that drive. */
  get drivable(): string[] {
    return this.roster.drivable(this.selection.names);
  }

  async removeAll(names: readonly string[]): Promise<void> {
    let gone = 0;
    const group = this.group();
    for (const some of batches(names)) if ((await this.session.ask({ type: "remove", names: some, group })) !== undefined) gone += some.length;
    if (gone) this.notices.offer(gone === 1 ? `${shown(names[0])} removed` : `${gone} removed`);
  }

  /** Clone the selected robots, and select the clones. */
  async clone(): Promise<void> {
    const { names } = this.selection;
    const robots = new Set(this.roster.robotNames);
    const some = names.filter((n) => robots.has(n));
    if (some.length < names.length)
      this.notices.say(`${names.length - some.length} of ${names.length} are of the map: only robots are cloned`, !some.length);
    if (!some.length) return;
    const added = await this.session.ask<string[]>({ type: "clone", names: some });
    if (added) this.selection.set(added);
  }

  /** Take the selected robots over and let them go again: they stop. */
  async stop(): Promise<void> {
    const names = this.drivable;
    if (names.length > 1) this.notices.say(`stop: ${count(names.length, "robot")}`);
    const stops = names.map(async (name) => {
      await this.session.ask({ type: "drive", name, on: true });
      await this.session.ask({ type: "drive", name, on: false });
    });
    await Promise.all(stops);
  }

  /** Set the charge of the batteries of the selected robots, %. */
  async setCharge(charge: number): Promise<void> {
    const names = this.drivable;
    const group = this.group();
    let done = 0;
    for (const some of batches(names)) if ((await this.session.ask({ type: "charge", names: some, charge, group })) !== undefined) done += some.length;
    if (done) this.notices.offer(`battery at ${charge} %: ${names.length === 1 ? shown(names[0]) : count(done, "robot")}`);
  }

  /** Put a body at a pose, m and rad. */
  async place(name: string, x: number, y: number, th: number): Promise<void> {
    const done = await this.session.ask({ type: "move", to: [{ name, x, y, th }], group: this.group() });
    if (done !== undefined) this.notices.offer(`${shown(name)} placed`);
  }

  /** Command an actuator of a robot, in SI units; what is no number is not sent. */
  async command(name: string, device: string, command: string, value: number): Promise<void> {
    if (Number.isFinite(value)) await this.session.ask({ type: "command", name, device, command, value });
  }

  /** Press the red buttons of all selected robots, or pull them out; their motors. It says of how many. */
  async switchAll(what: "estop" | "enable", on: boolean): Promise<void> {
    await this.switch(what, this.drivable, on);
  }

  /** Press the red buttons of some robots, or pull them out. Without names: of the selected ones, without any of all. */
  async stopAll(names: readonly string[] = [], on = true): Promise<void> {
    const chosen = names.length ? [...names] : this.drivable;
    await this.switch("estop", chosen.length ? chosen : this.roster.ofKind("robot"), on);
  }

  private async switch(what: "estop" | "enable", names: readonly string[], on: boolean): Promise<void> {
    let done = 0;
    let failed: unknown = null;
    for (const some of batches(names)) {
      try {
        await this.request({ type: what, names: some, on });
        done += some.length;
      } catch (error) {
        failed ??= error; // the others all the same: this may be an emergency
      }
    }
    const word = what === "enable" ? (on ? "motors on" : "motors off") : on ? "emergency stop" : "emergency stop released";
    if (failed) this.notices.fail(failed);
    if (done) this.notices.say(`${word}: ${names.length === 1 ? shown(names[0]) : count(done, "robot")}`);
    else if (!names.length) this.notices.say("there are no robots");
  }
}
