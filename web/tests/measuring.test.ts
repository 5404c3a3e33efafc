import { beforeEach, describe, expect, it, vi } from "vitest";
import { Measuring } from "../src/stores/measuring.svelte";
import { Camera } from "../src/view/camera";
import { angleOf, areaOf, edgeOf, type Point } from "../src/view/measures";
import { distance, nearestEnd, nearestWall } from "../src/view/near";
import { World } from "../src/view/world";
import { NO_MAP } from "../src/net/frames";
import { frame, schema } from "./storefakes";

const SQUARE: Point[] = [[0, 0], [2, 0], [2, 2], [0, 2]]; // prettier-ignore
const MAP = { ...NO_MAP, origin: [10, 20] as [number, number], walls: Float32Array.from([0, 0, 4, 0]), points: Float32Array.from([0, 3]) };

describe("figures", () => {
  it("have angles, areas and edges, whichever way around", () => {
    expect(angleOf([[1, 0], [0, 0], [0, 1]])).toBeCloseTo(Math.PI / 2); // prettier-ignore
    expect(angleOf([[-1, -0.1], [0, 0], [-1, 0.1]])).toBeCloseTo(0.19934, 4); // prettier-ignore
    expect([areaOf(SQUARE), areaOf([...SQUARE].reverse()), edgeOf(SQUARE)]).toEqual([4, 4, 8]);
  });
});

describe("walls", () => {
  it("are near by their nearest point", () => {
    expect([distance([1, 1], [0, 0, 4, 0]), distance([5, 0], [0, 0, 4, 0]), distance([1, 2], [1, 1, 1, 1])]).toEqual([1, 1, 1]);
    expect([nearestWall(MAP, 12, 21), nearestWall(MAP, 10, 22.5), nearestWall(NO_MAP, 0, 0)]).toEqual([1, 0.5, null]);
    expect([nearestEnd(MAP, [14.05, 20], 0.1), nearestEnd(MAP, [12, 20], 0.1)]).toEqual([[14, 20], null]);
  });
});

describe("measuring", () => {
  let world: World;
  let measuring: Measuring;
  const put = (x: number, y: number) => world.setFrame(frame([[x, y, 0]]));
  beforeEach(() => {
    world = new World();
    world.setMap(MAP);
    world.setSchema(schema(["ann"], [], 1, [10, 20]));
    put(1, 1);
    measuring = new Measuring(world, Object.assign(new Camera(), { scale: 100 }), vi.fn());
  });
  const words = () => measuring.rows.map((r) => `${r.number} ${r.kind} ${r.words}`);
  const click = (x: number, y: number) => measuring.use([x, y], [x, y], true);

  it("draws several rulers by drags or clicks, and deletes each alone", () => {
    measuring.use([0, 0], [3, 4], false);
    measuring.use([0, 0], [3, 4], true);
    click(0, 1);
    click(2, 1);
    expect(words()).toEqual(["1 length 5.000 m, 53.1°", "2 length 2.000 m, 0.0°"]);
    measuring.remove(1);
    click(0, 0);
    click(0, 1);
    expect(words()).toEqual(["2 length 2.000 m, 0.0°", "3 length 1.000 m, 90.0°"]);
    measuring.clear();
    expect(words()).toEqual([]);
  });

  it("snaps to ends of walls and to bodies, with which its ends go", async () => {
    measuring.use([14.05, 19.97], [11.1, 21.1], true);
    expect(words()).toEqual(["1 length 3.162 m, 161.6°"]);
    put(4, 1);
    for (const draw of world.over) draw(...([new Proxy({}, { get: () => () => ({ width: 1 }), set: () => true }), world, new Camera()] as unknown as Parameters<typeof draw>));
    await Promise.resolve();
    expect(words()).toEqual(["1 length 1.000 m, 90.0°"]);
    measuring.snaps = false;
    measuring.use([14.05, 20], [12.05, 20], true);
    expect(words()[1]).toBe("2 length 2.000 m, 180.0°");
  });

  it("takes three points for an angle, and closes an area by hand", () => {
    measuring.setKind("angle");
    for (const [x, y] of [[1, 0], [0, 0], [0, 1]]) click(x, y); // prettier-ignore
    measuring.setKind("area");
    click(0, 0);
    click(2, 0);
    measuring.close();
    expect(words()).toEqual(["1 angle 90.0°"]);
    click(2, 2);
    click(0, 2);
    click(0.05, 0);
    expect(words()).toEqual(["1 angle 90.0°", "2 area 4.000 m², edge 8.00 m"]);
    click(5, 5);
    measuring.setKind("length");
    expect([measuring.begun, words().length]).toEqual([0, 2]);
  });
});
