// Movies of a part of the run, which the simulator makes: of the recording that is shown, or of what is kept of a running one.

import type { Status } from "../generated/messages";
import type { Ask } from "../net/connection";
import type { Asks, Tells } from "./ports";

export type Wish = Omit<Extract<Ask, { type: "write_movie" }>, "type">;
/** Seconds of a running simulation that a movie shows unless others are chosen: the last ones. */
export const LAST_S = 30;

export class Movie {
  constructor(
    private session: Asks & { readonly stats: Pick<Status, "movie" | "drawn"> | null },
    private notices: Tells,
  ) {}

  /** The part that a movie shows unless another one is chosen, s: what the time line spans, or the last seconds. */
  static part(span: { first: number; last: number }, isWhole: boolean): { begin: number; end: number } {
    return { begin: isWhole ? span.first : Math.max(span.first, span.last - LAST_S), end: span.last };
  }

  /** Have one made, and say where it is when it is finished. */
  async make(wish: Wish): Promise<void> {
    const path = await this.session.ask<string>({ type: "write_movie", ...wish });
    if (path !== undefined) this.notices.hand("the simulator has written ", path);
  }

  async cancel(): Promise<void> {
    await this.session.ask({ type: "cancel_movie" });
  }
}
