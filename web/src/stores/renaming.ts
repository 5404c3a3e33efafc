// New names for the selected robots. It is loaded with its dialog.

import { count, shown } from "../text";
import type { Asks, Says } from "./ports";

/** All whom a new name is about. */
export interface Named {
  readonly session: Asks;
  readonly selection: { readonly names: string[]; set(names: string[]): void };
  readonly viewpoint: { readonly follow: string | null; followRobot(name: string | null): void };
  readonly notices: Says & { offer(text: string): void };
  readonly undo: { group(): number };
}

/** The new name of each: of several, "#" stands for their number. */
export function newNames(pattern: string, number: number): string[] {
  const name = pattern.trim();
  if (number === 1) return [name];
  const parts = (name.includes("#") ? name : `${name}_#`).split("#");
  const width = `${number}`.length;
  return Array.from({ length: number }, (_, k) => parts.join(`${k + 1}`.padStart(width, "0")));
}

/** The name that the field has at first. */
export function firstPattern(names: readonly string[]): string {
  if (names.length === 1) return names[0];
  let same = names[0];
  for (const name of names) while (!name.startsWith(same)) same = same.slice(0, -1);
  return `${same.replace(/\d+$/, "") || "robot_"}#`;
}

/** Rename robots; whether it is done. They stay selected, and followed. */
export async function rename({ session, selection, viewpoint, notices, undo }: Named, names: readonly string[], to: readonly string[]): Promise<boolean> {
  const now = new Map(names.map((name, k) => [name, to[k]]));
  const { follow } = viewpoint;
  const chosen = selection.names;
  if ((await session.ask({ type: "rename", names: [...now], group: undo.group() })) === undefined) return false;
  selection.set(chosen.map((name) => now.get(name) ?? name));
  if (follow && now.has(follow)) viewpoint.followRobot(now.get(follow)!);
  notices.offer(names.length === 1 ? `${shown(names[0])} is ${shown(to[0])} now` : `${count(names.length, "robot")} renamed`);
  return true;
}
