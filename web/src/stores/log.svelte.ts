// Lines of the simulator's log.

import type { LogEntry } from "../generated/messages";

export interface LogLine extends LogEntry {
  number: number;
}

export const MAX_LINES = 2000;

/** Whether the log is shown is a setting that stays. */
export interface LogSetting {
  readonly showLog: boolean;
  toggleLog(): void;
}

export class Log {
  lines = $state.raw<LogLine[]>([]);
  /** Lines that the simulator left out: too many came at once. */
  lost = $state(0);
  /** Warnings and errors that came while the log was not shown. */
  warnings = $state(0);
  private next = 0;

  constructor(private setting: LogSetting) {}

  add(lines: readonly LogEntry[], lost: number): void {
    this.lost += lost;
    const fresh = lines.map((line) => ({ ...line, number: this.next++ }));
    this.lines = [...this.lines, ...fresh].slice(-MAX_LINES);
    if (!this.setting.showLog) this.warnings += lines.filter((l) => l.level === "warning" || l.level === "error").length;
  }

  clear(): void {
    this.lines = [];
  }

  toggle(): void {
    this.setting.toggleLog();
    this.warnings = 0;
  }
}
