// Looking into the engine: its cells, its clearances, the walk of its rays.

import type { DebugResult } from "../generated/messages";
import type { Camera } from "../view/camera";
import type { DebugName } from "../view/layers";
import type { World } from "../view/world";
import type { Asks, Redraw } from "./ports";

/** Data of robots is requested more often than data of the map, ms. */
const PERIOD: Record<DebugName, number> = { rays: 300, candidates: 300, grid: 2000, clearance: 2000 };
/** Requests about a robot, not about the map. */
const OF_ROBOT: ReadonlySet<DebugName> = new Set(["rays", "candidates"]);

export class Probe {
  what = $state<DebugName | null>(null);
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private world: Pick<World, "debug" | "schema">,
    private camera: Pick<Camera, "box">,
    private session: Asks & { readonly status: string },
    /** The robot whose rays are shown; "": none. */
    private robot: () => string,
    private redraw: Redraw,
  ) {}

  show(what: DebugName | null): void {
    this.what = what;
    clearInterval(this.timer);
    this.world.debug = null;
    this.redraw();
    if (!what) return;
    void this.look();
    this.timer = setInterval(() => void this.look(), PERIOD[what]);
  }

  /** Show it, or no longer; what is asked of a robot does nothing while there is none. */
  toggle(what: DebugName): void {
    if (this.what === what) this.show(null);
    else if (this.robot() || !OF_ROBOT.has(what)) this.show(what);
  }

  private async look(): Promise<void> {
    const { what } = this;
    if (!what || this.session.status !== "open") return;
    const name = this.robot();
    if (!name && OF_ROBOT.has(what)) {
      this.world.debug = null; // a box was selected meanwhile
      this.redraw();
      return;
    }
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const [x0, y0, x1, y1] = this.camera.box();
    const request = { type: "debug", what, name, x0: x0 + ox, y0: y0 + oy, x1: x1 + ox, y1: y1 + oy } as const;
    const result = await this.session.ask<DebugResult>(request);
    if (this.what !== what) return; // something else is looked at meanwhile
    if (!result) this.show(null);
    else {
      this.world.debug = result;
      this.redraw();
    }
  }
}
