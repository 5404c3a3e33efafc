import { deflateSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { Heat, unpacked } from "../src/stores/heat.svelte";
import { colorAt, pixels, shareOf, valueAt, type HeatMap } from "../src/view/heat";
import { World } from "../src/view/world";
import { FakeSimulator } from "./storefakes";

const values = Float32Array.from([0, 1, 2, 0.5, 0, 0]);
const map: HeatMap = { x: 1, y: 2, edge: 0.5, rows: 2, columns: 3, most: 2, values };

describe("the scale of a heat map", () => {
  it("goes from dark to light, and back to the value", () => {
    expect([colorAt(0), colorAt(1), colorAt(-1), colorAt(2)]).toEqual([[68, 1, 84], [253, 231, 37], [68, 1, 84], [253, 231, 37]]); // prettier-ignore
    for (const log of [false, true]) for (const share of [0, 0.3, 1]) expect(shareOf(valueAt(share, 7, log), 7, log)).toBeCloseTo(share);
    expect([shareOf(5, 0, false), shareOf(0.02, 2, true) > 0.3]).toEqual([0, true]);
  });

  it("colours cells with a value, the highest row first", () => {
    const data = pixels(map, false);
    const at = (row: number, column: number) => [...data.slice(4 * (3 * row + column), 4 * (3 * row + column) + 4)];
    expect([at(1, 2), at(1, 0), at(0, 1)]).toEqual([[253, 231, 37, 255], [0, 0, 0, 0], [0, 0, 0, 0]]); // prettier-ignore
    expect(at(0, 0)[3]).toBe(255);
  });
});

describe("a heat map", () => {
  it("is asked for, unpacked, read at a point and written as a table", async () => {
    const packed = deflateSync(Buffer.from(values.buffer)).toString("base64");
    expect([...(await unpacked(packed))]).toEqual([...values]);
    const simulator = new FakeSimulator();
    const heat = new Heat(new World(), simulator, vi.fn());
    expect(heat.at([1, 2])).toBe(null);
    heat.result = { ...map, what: "time", total: 3.5, duration: 9, share: null, area: 1, free: 2 } as unknown as NonNullable<typeof heat.result>;
    heat.quantity = "time";
    expect([heat.at([1.6, 2.1]), heat.at([1.1, 2.6]), heat.at([0, 0]), heat.words([2.4, 2.1])]).toEqual([1, 0.5, 0, "2 s"]);
    expect(heat.csv()).toBe("x_m,y_m,time_s\n1.75,2.25,1\n2.25,2.25,2\n1.25,2.75,0.5\n");
  });

  it("leaves the beams of an earlier moment", async () => {
    const simulator = new FakeSimulator();
    const heat = new Heat(new World(), simulator, vi.fn());
    heat.quantity = "seen";
    simulator.answers.heat = new Error("earlier moments have no beams");
    await heat.look();
    expect([heat.quantity, heat.result]).toEqual(["visited", null]);
  });
});
