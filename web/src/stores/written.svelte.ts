// Files that this run has written for clients: recordings, movies, pictures. Whoever may have them written may download them.

import { shown } from "../text";
import type { Asks, Fetched } from "./ports";

export class Written {
  /** Their paths, the newest last. */
  paths = $state.raw<string[]>([]);

  constructor(
    private session: Asks,
    private fetched: Fetched,
  ) {}

  /** Let the browser save a file. */
  async download(path: string): Promise<void> {
    const url = await this.session.ask<string>({ type: "download", file: path });
    if (url !== undefined) this.fetched(url, nameOf(path));
  }
}

/** The last part of a path. */
export function nameOf(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}

/** The last part of a path as it may be shown. */
export function shownName(path: string): string {
  return shown(nameOf(path), 100);
}
