// Entries of menus, as data: a menu, a toolbar and tests read the same list.

export interface Entry {
  label: string;
  icon?: string;
  /** The key that does the same, as text. */
  key?: string;
  act: () => unknown;
  off?: boolean;
  /** Whether it is switched on; without it, it is no switch. */
  on?: boolean;
}

/** A line between groups of entries. */
export const LINE = "line";
export type Item = Entry | typeof LINE;
