// Messages at the edge of the window.

import { shown } from "../text";
import type { Tells } from "./ports";

export interface Toast {
  number: number;
  text: string;
  bad: boolean;
  /** A button next to the notice undoes the reported change. */
  undo: boolean;
  /** The reported file, which a button downloads; "": none. */
  file: string;
}

/** Characters of a message. */
export const MAX_TOAST = 400;
/** Messages at a time; the oldest gives way. */
export const MAX_TOASTS = 4;

/** Seconds for which a message offers to take something back. */
export const OFFERED = 8;
/** Seconds for which a message offers a file. */
export const HANDED = 30;

export class Notices implements Tells {
  toasts = $state.raw<Toast[]>([]);
  private next = 0;

  say(text: string, bad = false, seconds = bad ? 7 : 3.5, undo = false, file = ""): void {
    if (undo) this.withdraw(); // undo takes back what was done last
    const toast = { number: this.next++, text: shown(text, MAX_TOAST), bad, undo, file };
    this.toasts = [...this.toasts.filter((t) => t.text !== toast.text).slice(1 - MAX_TOASTS), toast];
    setTimeout(() => (this.toasts = this.toasts.filter((t) => t !== toast)), seconds * 1000);
  }

  /** Say something that can be taken back. */
  offer(text: string): void {
    this.say(text, false, OFFERED, true);
  }

  /** Say that a file was written, with a button that downloads it. */
  hand(done: string, path: string): void {
    this.say(done + path, false, HANDED, false, path);
  }

  /** The next undo is another one now: remove notices that offer the old one. */
  withdraw(): void {
    if (this.toasts.some((t) => t.undo)) this.toasts = this.toasts.filter((t) => !t.undo);
  }

  fail(error: unknown): void {
    this.say(error instanceof Error ? error.message : String(error), true);
  }
}
