// Which dialog is open, and which panels are shown.

import type { Says } from "./ports";

export type Dialog = "none" | "start" | "add" | "map" | "help" | "about" | "sequence" | "exit" | "remove" | "reset" | "goOn" | "movie" | "record"
  | "share" | "downloads" | "rename"; // prettier-ignore

/** Parts of the page that a key shows and hides. */
export type Panel = "table" | "clients" | "traffic" | "inset" | "values" | "heat" | "people";

/** Dialogs that change nothing. */
const OF_ALL: ReadonlySet<Dialog> = new Set(["help", "about", "share"]);
/** Windows of at least so many pixels show the side bar. */
export const WIDE = 800;

export class Panels {
  dialog = $state<Dialog>("none");
  side = $state(true);
  stick = $state(false);
  /** The table of the fleet, below the world. */
  table = $state(false);
  /** The panel of clients and topics, below the world. */
  clients = $state(false);
  /** The run of traffic, below the world. */
  traffic = $state(false);
  /** The whole world in a corner. */
  inset = $state(false);
  /** A heat map. */
  heat = $state(false);
  /** Who else is here. */
  people = $state(false);
  /** Values under the pointer. */
  values = $state(false);
  /** Words that the rows of clients and topics have. */
  clientWords = $state("");

  constructor(
    width: number,
    private session: { readonly readOnly: boolean; readonly whyReadOnly: string; loadCatalog(): Promise<void> },
    private notices: Says,
  ) {
    this.side = width >= WIDE;
  }

  open(dialog: Dialog): void {
    if (this.session.readOnly && !OF_ALL.has(dialog)) {
      this.notices.say(this.session.whyReadOnly, true);
      return;
    }
    this.dialog = dialog;
    if (dialog === "add" || dialog === "map" || dialog === "start") void this.session.loadCatalog();
  }

  close(dialog: Dialog = this.dialog): void {
    if (this.dialog === dialog) this.dialog = "none";
  }
}
