// Undo and redo of what this page did. The simulator knows how; the page says what belongs together.

import type { Asks, Says } from "./ports";

/** Changes of one kind by keys count as one step while they come no later than so many ms after each other. */
export const TOGETHER = 1000;

export class Undo {
  private last = 0;
  private keys = { about: "", at: -Infinity, group: 0 };

  constructor(
    private session: Asks,
    private notices: Says & { withdraw(): void },
  ) {}

  /** A number for requests that are to be one step. */
  group = (): number => ++this.last;

  /** The same for changes by keys, which come one by one: those about the same things in quick succession are one step. */
  groupOfKeys = (about: string, now: number): number => {
    const { keys } = this;
    const same = keys.about === about && now - keys.at < TOGETHER;
    this.keys = { about, at: now, group: same ? keys.group : this.group() };
    return this.keys.group;
  };

  undo(): Promise<void> {
    return this.ask("undo");
  }

  redo(): Promise<void> {
    return this.ask("redo");
  }

  private async ask(type: "undo" | "redo"): Promise<void> {
    this.notices.withdraw();
    this.keys.at = -Infinity;
    const done = await this.session.ask<string>({ type });
    if (done) this.notices.say(done, false, 5);
  }
}
