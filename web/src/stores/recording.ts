// Recordings of the run: begun and ended by a button; what is kept in memory only is saved by another one.

import type { Status } from "../generated/messages";
import type { Asks, Says } from "./ports";

export class Recording {
  constructor(
    private session: Asks & { readonly stats: Pick<Status, "recording"> | null },
    private notices: Says,
  ) {}

  toggle(): Promise<void> {
    return this.session.stats?.recording
      ? this.ask("stop_recording", "recorded: ")
      : this.ask("start_recording", "recording to ");
  }

  save(): Promise<void> {
    return this.ask("save_recording", "saved: ");
  }

  /** Ask for it, and say where the file is. */
  private async ask(type: "start_recording" | "stop_recording" | "save_recording", done: string): Promise<void> {
    const path = await this.session.ask<string>({ type });
    if (path !== undefined) this.notices.say(done + path, false, 8);
  }
}
