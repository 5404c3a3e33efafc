// State of the simulator: connection, permission, the status that comes twice a second, and answers.

import type { CatalogResult, InterfaceState, StartOffer, Status as StatusMessage, Welcome } from "../generated/messages";
import { WRONG_TOKEN, type Ask, type Status } from "../net/connection";
import type { Asks, Says } from "./ports";

/** The needed part of the connection. */
export interface Line {
  /** The code with which the simulator refused this page for good; 0: it did not. */
  readonly refusal: number;
  request<T = unknown>(request: Ask): Promise<T>;
}

export class Session implements Asks {
  status = $state<Status>("connecting");
  reason = $state("");
  /** The token is missing or wrong: there is a field to paste it. */
  wantsToken = $state(false);
  welcome = $state.raw<Welcome | null>(null);
  /** The simulator waits for the choice of a world. */
  start = $state.raw<StartOffer | null>(null);
  stats = $state.raw<StatusMessage | null>(null);
  /** Who commands each robot. */
  clients = $state.raw<Record<string, string[]>>({});
  catalog = $state.raw<CatalogResult | null>(null);
  /** When the shown world was received, on the clock of `performance`, ms; 0: never. */
  received = 0;
  /** The same for a world that is shown although the connection is lost. */
  heard = $state(0);
  /** The page shows an earlier moment. */
  looksBack = $state(false);

  constructor(
    private line: Line,
    private notices: Says,
  ) {}

  /** This page may only look on. */
  get isOnlooker(): boolean {
    return this.welcome?.read_only ?? true;
  }

  /** A recording is shown. */
  get isReplay(): boolean {
    return !!this.stats?.timeline?.replay;
  }

  /** Nothing in the world can be changed from here. */
  get readOnly(): boolean {
    return this.isOnlooker || this.isReplay;
  }

  /** Why nothing can. */
  get whyReadOnly(): string {
    return this.isReplay ? "a recording is shown and cannot be changed" : "this page may only watch";
  }

  get interfaces(): InterfaceState[] {
    return this.stats?.interfaces ?? [];
  }

  /** Whether bodies may be moved from here. */
  mayTouch(): boolean {
    return !this.readOnly && this.status === "open" && !this.looksBack;
  }

  connected(status: Status, reason: string): void {
    this.status = status;
    this.reason = reason;
    if (status !== "open") this.heard = this.received;
    this.wantsToken = status === "refused" && this.line.refusal === WRONG_TOKEN;
  }

  /** Whether it is the first welcome of this page. */
  welcomed(message: Welcome): boolean {
    const first = this.welcome === null;
    this.welcome = message;
    this.start = message.start;
    return first;
  }

  started(): void {
    this.start = null;
  }

  told(message: StatusMessage): void {
    this.stats = message;
    // a robot may be called __proto__: an entry of its own all the same
    this.clients = Object.fromEntries(message.driven.map((c) => [c.robot, c.sources]));
  }

  /** Ask the simulator for something; rejects with its reason. */
  request<T>(request: Ask): Promise<T> {
    return this.line.request<T>(request);
  }

  /** Ask the simulator for something and say so when it refuses. */
  async ask<T = unknown>(request: Ask, done = ""): Promise<T | undefined> {
    try {
      const result = await this.line.request<T>(request);
      if (done) this.notices.say(done);
      return result;
    } catch (error) {
      this.notices.fail(error);
      return undefined;
    }
  }

  async loadCatalog(): Promise<void> {
    this.catalog = (await this.ask<CatalogResult>({ type: "catalog" })) ?? this.catalog;
  }
}
