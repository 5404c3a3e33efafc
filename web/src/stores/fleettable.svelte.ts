// The fleet as rows: sorted, filtered, selected together with the world.

import type { Fleet as FleetMessage } from "../generated/messages";
import type { Conditions } from "./conditions.svelte";
import type { Roster } from "./roster.svelte";
import type { Trips } from "./trips.svelte";

export interface Row {
  name: string;
  model: string;
  /** Row of the world. */
  row: number;
  state: string;
  bad: boolean;
  clients: string;
  /** Charge, %; NaN: not known yet, as all numbers. */
  charge: number;
  speed: number;
  /** Share of the time in which it was stalled. */
  stalled: number;
  goal: string;
  /** Length of the path to the goal, m; −1: none. */
  left: number;
  commander: string;
  pose: readonly [number, number, number] | null;
  waits: boolean;
  estop: boolean;
}

export const COLUMNS = {
  name: "Robot", state: "State", clients: "Client", charge: "Battery", speed: "Speed", stalled: "Stalled", goal: "Goal", commander: "Last command", pose: "Pose",
} as const; // prettier-ignore
export type ColumnName = keyof typeof COLUMNS;

export const FILTERS = {
  estop: "emergency stop", stalled: "stalled", waiting: "waiting", battery: "low battery", client: "no client", selected: "selected",
} as const; // prettier-ignore
export type Filter = keyof typeof FILTERS;

/** Charge below which a battery is low, %. */
export const LOW = 20;
/** Slower than this, m/s, a robot with a goal waits. */
const STILL = 0.01;

export class FleetTable {
  sort = $state<ColumnName>("name");
  descending = $state(false);
  words = $state("");
  filters = $state.raw<ReadonlySet<Filter>>(new Set());
  private message = $state.raw<FleetMessage | null>(null);

  constructor(
    private roster: Pick<Roster, "bodies" | "models">,
    private conditions: Pick<Conditions, "stopped" | "stalled" | "unpowered">,
    private trips: Pick<Trips, "all">,
    private session: { readonly clients: Record<string, string[]> },
    private selection: { readonly names: string[] },
  ) {}

  received(message: FleetMessage): void {
    this.message = message;
  }

  toggle(filter: Filter): void {
    const filters = new Set(this.filters);
    if (!filters.delete(filter)) filters.add(filter);
    this.filters = filters;
  }

  sortBy(column: ColumnName): void {
    this.descending = this.sort === column && !this.descending;
    this.sort = column;
  }

  /** All robots. */
  get all(): Row[] {
    const { message } = this;
    const at = new Map(message?.names.map((name, k) => [name, k]));
    return this.roster.bodies.flatMap((b, row) => (b.kind === "robot" ? [this.rowOf(b.name, row, this.roster.models[b.model].name, at.get(b.name) ?? -1)] : []));
  }

  private rowOf(name: string, row: number, model: string, k: number): Row {
    const m = this.message;
    const trip = this.trips.all.get(name);
    const number = (list: number[] | undefined) => (k >= 0 ? (list?.[k] ?? NaN) : NaN);
    const [speed, left] = [number(m?.speed), number(m?.left)];
    const estop = this.conditions.stopped.has(name);
    const stalls = this.conditions.stalled.has(name);
    const blocked = trip?.state === "blocked" || trip?.state === "no path";
    const waits = trip !== undefined && (blocked || trip.state === "paused" || speed < STILL);
    const state = estop ? "emergency stop" : stalls ? "stalled" : this.conditions.unpowered.has(name) ? "motors off" : trip ? trip.state : speed > STILL ? "drives" : "stands";
    const goal = trip?.goals[0];
    return {
      name, row, model, state, bad: estop || stalls || blocked, clients: this.session.clients[name]?.join(", ") ?? "",
      charge: number(m?.charge), speed, stalled: number(m?.stalled), left,
      goal: goal ? `${goal[0].toFixed(1)}, ${goal[1].toFixed(1)}${left > 0 ? `, ${left.toFixed(1)} m to go` : ""}` : "",
      commander: k >= 0 ? (m?.commander[k] ?? "") : "", pose: k >= 0 ? (m?.pose[k] ?? null) : null, waits, estop,
    }; // prettier-ignore
  }

  /** The rows that are shown, in their order. */
  get rows(): Row[] {
    const wanted = this.words.trim().toLowerCase();
    const selected = new Set(this.selection.names);
    const tests: Record<Filter, (r: Row) => boolean> = {
      estop: (r) => r.estop,
      stalled: (r) => r.state === "stalled",
      waiting: (r) => r.waits,
      battery: (r) => r.charge < LOW,
      client: (r) => r.clients === "",
      selected: (r) => selected.has(r.name),
    };
    const active = [...this.filters].map((f) => tests[f]);
    const rows = this.all.filter((r) => active.every((test) => test(r)) && (!wanted || `${r.name} ${r.model} ${r.state} ${r.clients} ${r.commander}`.toLowerCase().includes(wanted)));
    const sign = this.descending ? -1 : 1;
    return rows.sort((a, b) => sign * compare(keyOf(a, this.sort), keyOf(b, this.sort)) || a.row - b.row);
  }

  /** The shown rows as a table for other programs. */
  csv(): string {
    const head = ["robot", "model", "state", "clients", "battery_percent", "speed_m_s", "stalled_share", "goal", "last_command", "x_m", "y_m", "th_rad"];
    const cell = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = this.rows.map((r) => [r.name, r.model, r.state, r.clients, String(r.charge), String(r.speed), String(r.stalled), r.goal, r.commander, ...(r.pose ?? ["", "", ""]).map(String)].map(cell).join()); // prettier-ignore
    return [head.join(), ...lines].join("\n") + "\n";
  }
}

function keyOf(r: Row, column: ColumnName): string | number {
  if (column === "pose") return r.pose?.[0] ?? Infinity;
  if (column === "goal") return r.goal ? r.left : Infinity;
  return r[column];
}

/** By number, or by text in which numbers count: r2 before r10. */
const collator = new Intl.Collator("en", { numeric: true });
function compare(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a === b ? 0 : a - b;
  return collator.compare(String(a), String(b));
}
