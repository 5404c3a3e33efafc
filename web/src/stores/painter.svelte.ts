// When the world is drawn: once for all that changes between two repaints of the window, and once more when the view has come to rest.

import type { Drawn } from "../view/renderer";
import type { Redraw } from "./ports";

/** The renderer while it exists. */
export interface Stage {
  renderer: string;
  drawNow(): void;
  picture(kind: "png" | "jpeg"): Promise<Blob | null>;
  /** The view has come to rest; whether it is to be drawn again, finer. */
  settle(): boolean;
  /** Undo a gesture that is going on; whether there was one. */
  cancelGesture(): boolean;
}

/** The view has come to rest when nothing was drawn for so long, ms. */
const REST = 80;
const KEPT_COSTS = 200;

export class Painter {
  stage: Stage | null = null;
  drawn: Drawn = { bodies: 0, fans: 0, points: 0, sonar: 0 };
  /** Labels of the last picture, with their rectangles: left, top, right, bottom, pixels. */
  labels: [string, [number, number, number, number]][] = [];
  /** The present renderer. */
  renderer = $state("");
  /** Main-thread time of the last pictures that showed a new frame, ms. */
  costs: number[] = [];
  private waiting = false;
  private again = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** Calls back before the window is next repainted. */
    private nextRepaint: (paint: () => void) => void,
    /** Brings everything up to date and draws it; whether there was a new frame. */
    private paint: () => boolean,
  ) {}

  /** Draw soon: at the next repaint of the window. */
  redraw: Redraw = () => {
    if (this.waiting) {
      this.again = true;
      return;
    }
    this.waiting = true;
    this.nextRepaint(() => {
      this.waiting = false;
      this.again = false;
      this.now();
    });
  };

  private now(): void {
    const began = performance.now();
    if (this.paint()) {
      this.costs.push(performance.now() - began);
      if (this.costs.length > KEPT_COSTS) this.costs.shift();
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.stage?.settle()) this.redraw();
    }, REST);
    if (this.again) this.redraw();
  }
}
