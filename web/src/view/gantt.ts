// The chart of a run of traffic: for each robot a row with bars over time. What is drawn is found by bisection, so that a chart of many
// thousand bars costs no more than what is seen of it.

import type { ChartResult } from "../generated/messages";

/** Height of a robot's row, and of the axis above the rows, pixels. */
export const ROW = 24;
export const AXIS = 18;
/** Of a row, pixels from its top: bars of driving, of waiting, of sectors, and of permissions. */
const GOES = { top: 5, height: 6 };
const WAITS = { top: 2, height: 11 };
const SECTORS = { top: 14, height: 8 };
const GRANTS = { top: 21, height: 2 };
/** Least width of a bar with the number of its sector in it, pixels. */
const NUMBER_WIDTH = 18;
/** Least distance of two labels of the axis, pixels. */
const LABEL_WIDTH = 70;
/** Most robots that are named for which one waits. */
const MAX_HOLDERS = 5;

/** Bars of one kind in one row, sorted by start: start and end, s, and the sector. */
export interface Bars {
  begin: Float64Array;
  end: Float64Array;
  /** The latest end of a bar and all before it: bars may overlap. */
  until: Float64Array;
  sector: Int32Array;
}

/** The actions of one robot. */
export interface Row {
  name: string;
  goes: Bars;
  waits: Bars;
  sectors: Bars;
  grants: Bars;
  asks: Float64Array;
  /** Names of the robots for which it waits, by the time from which on it does, s. */
  holders: Map<number, string[]>;
  /** Times of starts and ends, each once, sorted, s. */
  changes: Float64Array;
}

export interface Colors {
  goes: string;
  waits: string;
  sector: string;
  otherSector: string;
  grant: string;
  text: string;
  soft: string;
  line: string;
  ground: string;
  selected: string;
}

/** The part of the chart that is seen: times at its left and right edge, s; where that is, pixels; first row and height, pixels. */
export interface Sight {
  first: number;
  last: number;
  left: number;
  right: number;
  scroll: number;
  width: number;
  height: number;
}

type Interval = readonly [robot: number, ...rest: number[]];

function bars(found: readonly Interval[]): Bars {
  const sorted = found.map((bar) => bar.slice(-2).concat(bar.length > 3 ? bar[1] : -1)).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let until = -Infinity;
  return {
    begin: Float64Array.from(sorted, (bar) => bar[0]),
    end: Float64Array.from(sorted, (bar) => bar[1]),
    until: Float64Array.from(sorted, (bar) => (until = Math.max(until, bar[1]))),
    sector: Int32Array.from(sorted, (bar) => bar[2]),
  };
}

function byRobot<T extends Interval>(found: readonly T[], robots: number): T[][] {
  const rows = Array.from({ length: robots }, (): T[] => []);
  for (const bar of found) rows[bar[0]]?.push(bar);
  return rows;
}

/** The rows of a chart, one for each robot. */
export function rowsOf(chart: ChartResult): Row[] {
  const n = chart.robots.length;
  const [goes, waits, sectors, grants, asks] = [chart.goes, chart.waits, chart.sectors, chart.grants, chart.asks].map((found: readonly Interval[]) =>
    byRobot(found, n),
  );
  const holders = chart.robots.map(() => new Map<number, string[]>());
  for (const [robot, begin, others] of chart.holders ?? []) holders[robot]?.set(begin, others.map((other) => chart.robots[other]));
  return chart.robots.map((name, i) => {
    const all = [...goes[i], ...waits[i], ...sectors[i], ...grants[i]].flatMap((bar) => bar.slice(-2));
    const times = asks[i].map((ask) => ask[1]);
    return {
      name,
      goes: bars(goes[i]),
      waits: bars(waits[i]),
      sectors: bars(sectors[i]),
      grants: bars(grants[i]),
      asks: Float64Array.from(times).sort(),
      holders: holders[i],
      changes: Float64Array.from(new Set([...all, ...times])).sort(),
    };
  });
}

/** Index of the first number that is not below another one. */
export function bisect(numbers: Float64Array, value: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sectors of the bars at a time, oldest first. */
export function sectorsAt(bars: Bars, time: number): number[] {
  const found: number[] = [];
  for (let k = bisect(bars.until, time); k < bars.begin.length && bars.begin[k] <= time; k++)
    if (bars.end[k] > time) found.push(bars.sector[k]);
  return found;
}

/** The bar at a time: its index; −1: there is none. */
export function barAt(bars: Bars, time: number): number {
  for (let k = bisect(bars.until, time); k < bars.begin.length && bars.begin[k] <= time; k++) if (bars.end[k] > time) return k;
  return -1;
}

/** The action of a robot at a time, in words. */
export function doing(row: Row, time: number): string {
  const said: string[] = [];
  for (const [bars, word] of [[row.waits, "waits"], [row.goes, "drives"]] as const) {
    const k = barAt(bars, time);
    if (k < 0) continue;
    const others = bars === row.waits ? (row.holders.get(bars.begin[k]) ?? []) : [];
    const names = others.slice(0, MAX_HOLDERS).join(", ") + (others.length > MAX_HOLDERS ? " …" : "");
    said.push(`${word}${names && ` for ${names}`} from ${bars.begin[k].toFixed(1)} s to ${bars.end[k].toFixed(1)} s`);
  }
  const sectors = sectorsAt(row.sectors, time);
  if (sectors.length) said.push(`in sector ${sectors.join(" and ")}`);
  const grants = sectorsAt(row.grants, time);
  if (grants.length) said.push(`may enter ${grants.join(" and ")}`);
  return said.join(", ") || "has finished";
}

/** A distance of labels on the axis, s: 1, 2 or 5 times a power of ten. */
export function tick(seconds: number, labels: number): number {
  const least = seconds / Math.max(labels, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((n) => n * power >= least) ?? 10);
}

/** Draw what is seen. Returns how many bars were drawn: no more than there are columns of pixels for each kind and row. */
export function drawChart(context: CanvasRenderingContext2D, rows: readonly Row[], sight: Sight, colors: Colors, selected: ReadonlySet<string>): number {
  const { first, last, left, right, scroll, width, height } = sight;
  const scale = (right - left) / Math.max(last - first, 1e-9);
  const x = (time: number) => left + (time - first) * scale;
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  let drawn = 0;

  function strip(bars: Bars, top: number, tall: number, fill: (k: number) => string, numbers = false): void {
    let painted = -1; // up to where there are bars
    for (let k = bisect(bars.until, first); k < bars.begin.length && bars.begin[k] <= last; k++) {
      const from = Math.max(x(bars.begin[k]), left);
      const to = Math.min(x(bars.end[k]), right);
      if (to <= left || (to - from < 1 && to <= painted)) continue;
      painted = Math.max(to, from + 1);
      context.fillStyle = fill(k);
      context.fillRect(from, top, Math.max(to - from, 1), tall);
      drawn++;
      if (numbers && to - from >= NUMBER_WIDTH) {
        context.fillStyle = colors.text;
        context.fillText(String(bars.sector[k]), from + 3, top + tall / 2 + 0.5);
      }
    }
  }

  const distance = tick(last - first, (right - left) / LABEL_WIDTH);
  const labels = Array.from({ length: Math.floor(last / distance) - Math.ceil(first / distance) + 1 }, (_, n) => (Math.ceil(first / distance) + n) * distance);
  context.fillStyle = colors.line;
  for (const time of labels) context.fillRect(x(time), AXIS, 1, height);

  const end = Math.min(rows.length, Math.ceil((scroll + height - AXIS) / ROW));
  for (let i = Math.max(0, Math.floor(scroll / ROW)); i < end; i++) {
    const row = rows[i];
    const top = AXIS + i * ROW - scroll;
    if (selected.has(row.name)) {
      context.fillStyle = colors.selected;
      context.fillRect(0, top, width, ROW);
    }
    context.fillStyle = colors.line;
    context.fillRect(left, top + ROW - 1, right - left, 1);
    context.font = "8px system-ui, sans-serif";
    context.textAlign = "left";
    strip(row.goes, top + GOES.top, GOES.height, () => colors.goes);
    strip(row.waits, top + WAITS.top, WAITS.height, () => colors.waits);
    strip(row.sectors, top + SECTORS.top, SECTORS.height, (k) => (row.sectors.sector[k] % 2 ? colors.otherSector : colors.sector), true);
    strip(row.grants, top + GRANTS.top, GRANTS.height, () => colors.grant);
    context.fillStyle = colors.text;
    for (let k = bisect(row.asks, first); k < row.asks.length && row.asks[k] <= last; k++) {
      context.fillRect(x(row.asks[k]) - 0.5, top + WAITS.top, 1, WAITS.height);
      k = Math.max(k, bisect(row.asks, row.asks[k] + 1 / scale) - 1); // one in a column of pixels is enough
    }
    label(row, top);
  }

  function label(row: Row, top: number): void {
    const room = left - 14;
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colors.text;
    if (room >= 50) {
      context.textAlign = "right";
      context.fillText(shortened(context, row.name, room), left - 8, top + ROW / 2);
    } else {
      // no room at the side: over the bars
      context.textAlign = "left";
      const text = shortened(context, row.name, right - left - 8);
      context.fillStyle = colors.ground;
      context.globalAlpha = 0.75;
      context.fillRect(left, top + 1, context.measureText(text).width + 6, 12);
      context.globalAlpha = 1;
      context.fillStyle = colors.text;
      context.fillText(text, left + 3, top + 8);
    }
  }

  // above rows that are half seen
  context.fillStyle = colors.ground;
  context.fillRect(0, 0, width, AXIS);
  context.font = "10px system-ui, sans-serif";
  context.textAlign = "center";
  context.fillStyle = colors.soft;
  for (const time of labels) context.fillText(`${Number(time.toFixed(6))} s`, x(time), AXIS / 2);
  return drawn;
}

/** As much of a text as has room. */
function shortened(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (context.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 1 && context.measureText(`${text.slice(0, n)}…`).width > room) n--;
  return `${text.slice(0, n)}…`;
}
