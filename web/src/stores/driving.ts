// Driving the selected robot, by held keys or the joystick on the screen.

import { Driver, HeldKeys, type DriveCommand, type Robot } from "../hands/driving";
import type { Says } from "./ports";
import type { Roster } from "./roster.svelte";

export class Driving {
  private driver: Driver;
  private keys = new HeldKeys();

  constructor(
    private selection: { readonly names: readonly string[] },
    private roster: Pick<Roster, "robot">,
    private session: { readonly readOnly: boolean; readonly looksBack?: boolean },
    notices: Says,
    send: (command: DriveCommand) => Promise<unknown>,
  ) {
    this.driver = new Driver((command) => {
      send(command).catch((error: unknown) => {
        this.letGo(); // else it would be refused ten times a second
        notices.fail(error);
      });
    });
  }

  /** The selected robot, if it is one alone and can be driven from here. */
  driven(): Robot | null {
    if (this.selection.names.length !== 1 || this.session.readOnly || this.session.looksBack) return null;
    return this.roster.robot(this.selection.names[0]);
  }

  get isDriving(): boolean {
    return this.driver.driving !== null;
  }

  /** Drive: `forward`, `left` (turn) and `sideways` from −1 to 1. */
  stick(forward: number, left: number, sideways = 0): void {
    const robot = this.driven();
    if (robot) this.driver.set(robot, forward, left, sideways);
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
    this.driver.release();
  }
}
