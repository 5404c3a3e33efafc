// Small interfaces between stores, and to the browser: a test passes its own.

import type { Ask } from "../net/connection";

/** Asks the simulator for something. When it refuses, that is shown, and the answer is undefined. */
export interface Asks {
  ask<T = unknown>(request: Ask, done?: string): Promise<T | undefined>;
}

/** Shows messages at the edge of the window. */
export interface Says {
  say(text: string, bad?: boolean, seconds?: number): void;
  /** Say something that can be taken back, with a button for that. */
  offer(text: string): void;
  fail(error: unknown): void;
}

/** Shows messages that hand something over. */
export interface Tells extends Says {
  /** Say that a file was written, with a button that downloads it. */
  hand(done: string, path: string): void;
}

/** Draw the world soon. */
export type Redraw = () => void;

/** HTTP requests, as `fetch` makes them. */
export type Fetch = (url: string, init?: RequestInit) => Promise<Response>;

/** Give a file to whoever sits at the browser. */
export type Download = (blob: Blob, name: string) => void;

/** Let the browser fetch an address and save what comes under a name. */
export type Fetched = (url: string, name: string) => void;

export type Pose = [x: number, y: number, th: number];

export function wrap(angle: number): number {
  return Math.atan2(Math.sin(angle), Math.cos(angle));
}

/** Bodies in one request: messages have a limit. */
export const AT_ONCE = 300;

/** Parts of a list that fit into one request each. */
export function* batches<T>(list: readonly T[]): Generator<T[]> {
  for (let i = 0; i < list.length; i += AT_ONCE) yield list.slice(i, i + AT_ONCE);
}
