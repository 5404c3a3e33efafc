// Which bodies are selected, and over which one the pointer is.

import type { World } from "../view/world";
import type { Redraw } from "./ports";
import type { Roster } from "./roster.svelte";

export class Selection {
  /** Names, not rows: rows change when others come or go. */
  names = $state.raw<string[]>([]);
  hoverName = $state("");

  constructor(
    private world: Pick<World, "rows" | "selected" | "hovered">,
    private roster: Pick<Roster, "name" | "namesOf" | "bodies">,
    /** Others are selected now. */
    private changed: (names: string[]) => void,
    private redraw: Redraw,
  ) {}

  set(names: string[]): void {
    const changed = names.length !== this.names.length || names.some((n, i) => n !== this.names[i]);
    this.names = names;
    this.world.selected = new Set(names.flatMap((n) => this.world.rows.get(n) ?? []));
    if (changed) this.changed(names);
    this.redraw();
  }

  /** Rows of what is selected. */
  get rows(): number[] {
    return [...this.world.selected];
  }

  isSelected(row: number): boolean {
    return this.world.selected.has(row);
  }

  select(rows: number[], mode: "set" | "add" | "toggle"): void {
    const names = this.roster.namesOf(rows);
    if (mode === "set") this.set(names);
    else if (mode === "add") this.set([...new Set([...this.names, ...names])]);
    else {
      const now = new Set(this.names);
      for (const name of names) if (!now.delete(name)) now.add(name);
      this.set([...now]);
    }
  }

  /** The selected rows, if a row is one of them, else that row alone: what a hand on it takes along. */
  with(row: number): number[] {
    return this.world.selected.has(row) ? this.rows : [row];
  }

  hover(row: number): void {
    if (row === this.world.hovered) return;
    this.world.hovered = row;
    this.hoverName = row >= 0 ? this.roster.name(row) : "";
    this.redraw();
  }

  /** Bodies came or went. A new name may belong to a robot that was just added: it stays selected. */
  renumber(before: ReadonlySet<string>): void {
    const now = new Set(this.roster.bodies.map((b) => b.name));
    this.set(this.names.filter((n) => now.has(n) || !before.has(n)));
    this.world.hovered = -1;
    this.hoverName = "";
  }
}
