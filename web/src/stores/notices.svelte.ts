// Messages at the edge of the window.

import { shown } from "../text";
import type { Says } from "./ports";

export interface Toast {
  number: number;
  text: string;
  bad: boolean;
}

/** Characters of a message. */
export const MAX_TOAST = 400;
/** Messages at a time; the oldest gives way. */
export const MAX_TOASTS = 4;

export class Notices implements Says {
  toasts = $state.raw<Toast[]>([]);
  private next = 0;

  say(text: string, bad = false, seconds = bad ? 7 : 3.5): void {
    const toast = { number: this.next++, text: shown(text, MAX_TOAST), bad };
    this.toasts = [...this.toasts.slice(1 - MAX_TOASTS), toast];
    setTimeout(() => (this.toasts = this.toasts.filter((t) => t !== toast)), seconds * 1000);
  }

  fail(error: unknown): void {
    this.say(error instanceof Error ? error.message : String(error), true);
  }
}
