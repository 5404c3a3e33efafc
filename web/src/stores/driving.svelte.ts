// Driving the selected robot, or several together, by held keys or the joystick on the screen.

import { Driver, HeldKeys, type DriveCommand, type Robot } from "../hands/driving";
import type { Says } from "./ports";
import type { Roster } from "./roster.svelte";

/** Robots that are driven together at most: each gets a command ten times a second. */
export const MAX_TOGETHER = 50;

export class Driving {
  /** Several selected robots are driven at once. */
  together = $state(false);
  private drivers = new Map<string, Driver>();
  /** Robots that cannot be driven, until the hand lets go: the others go on. */
  private refused = new Set<string>();
  private keys = new HeldKeys();

  constructor(
    private selection: { readonly names: readonly string[] },
    private roster: Pick<Roster, "robot">,
    private session: { readonly readOnly: boolean; readonly looksBack?: boolean },
    private notices: Says,
    private send: (command: DriveCommand) => Promise<unknown>,
  ) {}

  private driver(name: string): Driver {
    let driver = this.drivers.get(name);
    if (!driver) {
      driver = new Driver((command) => {
        this.send(command).catch((error: unknown) => {
          if (this.drivers.get(name) !== driver || this.refused.has(name)) return;
          this.refused.add(name); // else it would be refused ten times a second
          this.drivers.get(name)?.release();
          if (this.drivers.size === this.refused.size) this.letGo();
          this.notices.fail(error);
        });
      });
      this.drivers.set(name, driver);
    }
    return driver;
  }

  /** The selected robot, if it is one alone and can be driven from here; the first one of several that are driven together. */
  driven(): Robot | null {
    return this.all()[0] ?? null;
  }

  private all(): Robot[] {
    const { names } = this.selection;
    if (this.session.readOnly || this.session.looksBack || names.length > (this.together ? MAX_TOGETHER : 1)) return [];
    return names.flatMap((name) => this.roster.robot(name) ?? []);
  }

  get isDriving(): boolean {
    return [...this.drivers.values()].some((driver) => driver.driving !== null);
  }

  /** Drive: `forward`, `left` (turn) and `sideways` from −1 to 1. */
  stick(forward: number, left: number, sideways = 0): void {
    for (const robot of this.all()) if (!this.refused.has(robot.name)) this.driver(robot.name).set(robot, forward, left, sideways);
  }

  press(key: string): void {
    if (this.keys.press(key)) this.stick(...this.keys.direction);
  }

  release(key: string): void {
    if (!this.keys.release(key)) return;
    if (this.keys.any) this.stick(...this.keys.direction);
    else this.letGo();
  }

  letGo(): void {
    this.keys.clear();
    for (const driver of this.drivers.values()) driver.release();
    this.drivers.clear();
    this.refused.clear();
  }
}
