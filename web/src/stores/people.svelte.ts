// People at other pages, and oneself, by option. It is loaded when the panel is opened, and goes on when it is closed.

import { untrack } from "svelte";
import type { People as Message, Person } from "../generated/messages";
import { drawPeople } from "../view/people";
import type { Drawer, World } from "../view/world";
import { readKept, writeKept, type KeptValues } from "./kept";
import type { Asks, Redraw } from "./ports";

export const PERSON_KEY = "botyard-person";
/** Characters of a name. */
export const MAX_PERSON = 40;
/** The pointer is sent no more often than every so many ms. */
export const POINT_PERIOD = 100;

export class People {
  name = $state("");
  /** Whether others see this person, and are seen. */
  on = $state(false);
  others = $state.raw<readonly Person[]>([]);
  private last = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    world: Pick<World, "over">,
    private session: Asks & { readonly status: string; readonly welcome: { page?: number } | null },
    private viewpoint: { readonly pointer: [number, number] | null },
    private storage: () => KeptValues,
    private redraw: Redraw,
  ) {
    const kept = readKept(storage, PERSON_KEY);
    this.name = typeof kept === "string" ? kept.slice(0, MAX_PERSON) : "";
    world.over.add(this.draw);
    $effect.root(() => {
      $effect(() => {
        void [this.viewpoint.pointer, this.session.status]; // after a lost connection, the simulator knows nothing of it
        if (this.on) untrack(() => this.send());
      });
    });
  }

  /** Show this person to the others, or no longer. */
  set(on: boolean): void {
    this.on = on && this.name.trim() !== "";
    writeKept(this.storage, PERSON_KEY, this.name.trim());
    this.last = -Infinity;
    this.send();
    if (this.on) return;
    this.others = [];
    this.redraw();
  }

  private send(): void {
    clearTimeout(this.timer);
    const wait = this.last + POINT_PERIOD - performance.now();
    if (wait > 0) {
      this.timer = setTimeout(() => this.send(), wait);
      return;
    }
    if (this.session.status !== "open") return;
    this.last = performance.now();
    void this.session.ask({ type: "show", name: this.on ? this.name.trim() : "", pointer: this.viewpoint.pointer });
  }

  received(message: Message): void {
    if (!this.on) return; // it was on its way
    this.others = message.people.filter((p) => p.page !== this.session.welcome?.page);
    this.redraw();
  }

  private draw: Drawer = (ctx, world, camera) => drawPeople(ctx, world, camera, this.others);
}
