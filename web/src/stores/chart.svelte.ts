// The chart of a recorded run of traffic, below the time line.

import type { ChartResult } from "../generated/messages";
import { bisect, rowsOf, type Row } from "../view/gantt";
import type { Asks } from "./ports";

export class Chart {
  /** Subject of the chart; null: no chart. */
  result = $state.raw<ChartResult | null>(null);
  rows = $state.raw<Row[]>([]);
  shown = $state(true);
  /** The row that keys are about. */
  row = $state(0);
  private asked = false;

  constructor(private session: Asks) {}

  /** Whether the recording that is shown has a chart. */
  async told(exists: boolean): Promise<void> {
    if (!exists) {
      this.lose();
      return;
    }
    if (this.asked) return;
    this.asked = true;
    const result = await this.session.ask<ChartResult | null>({ type: "chart" });
    if (!this.asked) return; // it was lost meanwhile
    this.result = result ?? null;
    this.rows = result ? rowsOf(result) : [];
    this.row = Math.min(this.row, Math.max(0, this.rows.length - 1));
  }

  /** Another recording may be shown next. */
  lose(): void {
    this.asked = false;
    this.result = null;
    this.rows = [];
  }

  /** Time, s, of the next start or end in the row of the keys, before or after a time; null: none. */
  change(time: number, by: 1 | -1, nearer: number): number | null {
    const times = this.rows[this.row]?.changes;
    if (!times) return null;
    const k = by > 0 ? bisect(times, time + nearer) : bisect(times, time - nearer) - 1;
    return times[k] ?? null;
  }
}
