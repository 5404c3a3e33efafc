import { describe, expect, it } from "vitest";
import type { ChartResult } from "../src/generated/messages";
import { Chart } from "../src/stores/chart.svelte";
import { AXIS, barAt, bisect, doing, drawChart, ROW, rowsOf, sectorsAt, tick, type Colors, type Sight } from "../src/view/gantt";
import { FakeSimulator, settle } from "./storefakes";

const RESULT: ChartResult = {
  title: "completed", end: 10, robots: ["a", "b"], goes: [[0, 6, 10], [0, 0, 4], [1, 0, 10]], waits: [[0, 4, 6]],
  sectors: [[0, 2, 5.5, 10], [0, 1, 0, 6], [1, 0, 0, 10]], grants: [[0, 2, 5, 5.5]], asks: [[0, 3]], holders: [[0, 4, [1]]], left_out: 0,
}; // prettier-ignore

const COLORS: Colors = {
  goes: "goes", waits: "waits", sector: "even", otherSector: "odd", grant: "grant", text: "text", soft: "soft", line: "line", ground: "ground", selected: "selected",
}; // prettier-ignore

const SIGHT: Sight = { first: 0, last: 10, left: 100, right: 600, scroll: 0, width: 700, height: AXIS + 5 * ROW };

/** What is drawn: filled rectangles by their colours, and texts. */
class Paper {
  fillStyle = "";
  rects: [string, number, number, number, number][] = [];
  texts: string[] = [];
  clearRect(): void {
    this.rects = [];
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    this.rects.push([this.fillStyle, x, y, w, h]);
  }
  fillText(text: string): void {
    this.texts.push(text);
  }
  measureText(text: string): { width: number } {
    return { width: 6 * text.length };
  }
  of(color: string): [string, number, number, number, number][] {
    return this.rects.filter(([c]) => c === color);
  }
  draw(rows: ReturnType<typeof rowsOf>, sight: Sight): number {
    return drawChart(this as unknown as CanvasRenderingContext2D, rows, sight, COLORS, new Set());
  }
}

describe("the chart", () => {
  const rows = rowsOf(RESULT);

  it("knows what a robot does at a time", () => {
    expect([...rows[0].goes.begin]).toEqual([0, 6]);
    expect([...rows[0].changes]).toEqual([0, 3, 4, 5, 5.5, 6, 10]);
    expect([sectorsAt(rows[0].sectors, 5.7), sectorsAt(rows[0].sectors, 6), barAt(rows[0].waits, 3.9)]).toEqual([[1, 2], [2], -1]);
    expect(doing(rows[0], 5.2)).toBe("waits for b from 4.0 s to 6.0 s, in sector 1, may enter 2");
    expect(doing(rows[1], 10)).toBe("has finished");
  });

  it("finds places by bisection", () => {
    const numbers = Float64Array.from([1, 2, 2, 5]);
    expect([0, 1, 2, 3, 6].map((n) => bisect(numbers, n))).toEqual([0, 0, 1, 3, 4]);
    expect([tick(10, 10), tick(134, 13), tick(0.3, 5), tick(7, 0)]).toEqual([1, 20, 0.1, 10]);
  });

  it("draws bars where their times are", () => {
    const paper = new Paper();
    expect(paper.draw(rows, SIGHT)).toBe(8);
    expect(paper.of("waits")).toEqual([["waits", 300, AXIS + 2, 100, 11]]);
    expect(paper.of("goes").map(([, x, , w]) => [x, w])).toEqual([[100, 200], [400, 200], [100, 500]]); // prettier-ignore
    paper.draw(rows, { ...SIGHT, first: 5, last: 6 });
    expect(paper.of("waits")[0].slice(1, 4)).toEqual([100, AXIS + 2, 500]); // as far as it is seen
    paper.draw(rows, { ...SIGHT, scroll: ROW });
    expect(paper.of("waits")).toEqual([["waits", 300, AXIS + 2 - ROW, 100, 11]].slice(1)); // the row is above what is seen
  });

  it("draws no more of a hundred thousand bars than there are columns", () => {
    const goes = Array.from({ length: 100_000 }, (_, k): [number, number, number] => [0, k / 10_000, k / 10_000 + 5e-5]);
    const many = rowsOf({ ...RESULT, robots: ["a"], goes, waits: [], sectors: [], grants: [], asks: goes.map(([i, t]): [number, number] => [i, t]) });
    const paper = new Paper();
    const drawn = paper.draw(many, SIGHT);
    expect(drawn).toBeGreaterThan(490);
    expect(drawn).toBeLessThanOrEqual(501);
    expect(paper.rects.length).toBeLessThan(1100);
  });

  it("is asked for once, and forgotten with the connection", async () => {
    const simulator = new FakeSimulator();
    simulator.answers.chart = RESULT;
    const chart = new Chart(simulator);
    void chart.told(false);
    void chart.told(true);
    void chart.told(true);
    await settle();
    expect([simulator.asked.length, chart.rows.length]).toEqual([1, 2]);
    expect([chart.change(4, 1, 0.1), chart.change(4, -1, 0.1), chart.change(10, 1, 0.1)]).toEqual([5, 3, null]);
    chart.lose();
    expect([chart.result, chart.rows]).toEqual([null, []]);
    void chart.told(true);
    chart.lose(); // before the answer has come
    await settle();
    expect([simulator.asked.length, chart.result]).toEqual([2, null]);
  });
});
