import { describe, expect, it } from "vitest";
import { Camera, niceStep } from "../src/view/camera";
import { SAMPLES, Trails } from "../src/view/trails";
import { inPolygon, isJump } from "../src/view/world";
import { parseMarkup } from "../src/ui/markup";

describe("the camera", () => {
  const camera = new Camera();
  camera.resize(800, 600);

  it("takes points there and back", () => {
    camera.x = 3.5;
    camera.y = -2;
    camera.scale = 37;
    for (const [x, y] of [[0, 0], [12.3, -4.5], [-100, 77]]) {
      const [bx, by] = camera.toWorld(...camera.toScreen(x, y));
      expect(bx).toBeCloseTo(x, 9);
      expect(by).toBeCloseTo(y, 9);
    }
  });

  it("keeps the point under the pointer when it zooms", () => {
    const before = camera.toWorld(120, 455);
    camera.zoomAt(120, 455, 2.7);
    const after = camera.toWorld(120, 455);
    expect(after[0]).toBeCloseTo(before[0], 9);
    expect(after[1]).toBeCloseTo(before[1], 9);
  });

  it("fits a box into the window", () => {
    camera.fit([-10, -1, 10, 1]);
    const [x0, y0, x1, y1] = camera.box();
    expect(x0).toBeLessThan(-10);
    expect(x1).toBeGreaterThan(10);
    expect(y0).toBeLessThan(-1);
    expect(y1).toBeGreaterThan(1);
  });

  it("has round steps", () => {
    expect([0.7, 1, 1.5, 4, 6, 70].map(niceStep)).toEqual([1, 1, 2, 5, 10, 100]);
  });
});

describe("trails", () => {
  it("keep the last samples, and break where a robot was put somewhere", () => {
    const trails = new Trails();
    trails.reset(1);
    for (let k = 0; k < SAMPLES + 10; k++) trails.add(k * 0.2, new Float32Array([k < SAMPLES ? k * 0.1 : 100 + k * 0.1, 0, 0]));
    const pieces = trails.pieces(0);
    expect(pieces).toHaveLength(2);
    expect(pieces[0].length + pieces[1].length).toBe(SAMPLES);
    expect(pieces[0][0][0]).toBeCloseTo(1.0, 5);
  });

  it("begin anew when time goes back", () => {
    const trails = new Trails();
    trails.reset(1);
    trails.add(5, new Float32Array([0, 0, 0]));
    trails.add(1, new Float32Array([0, 0, 0]));
    expect(trails.count).toBe(1);
  });
});

describe("shapes", () => {
  it("knows what is inside of a polygon", () => {
    const l: [number, number][] = [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]];
    expect(inPolygon(l, 0.5, 1.5)).toBe(true);
    expect(inPolygon(l, 1.5, 1.5)).toBe(false);
  });

  it("breaks an outline where ranges jump, less readily far away", () => {
    expect(isJump(1, 1.1)).toBe(false);
    expect(isJump(1, 3)).toBe(true);
    expect(isJump(7, 7.6)).toBe(false);
  });
});

describe("lines of the log", () => {
  it("show the few tags that clients use", () => {
    expect(parseMarkup('<b>bob</b> at <font color="red">stop</font>')).toMatchObject([
      { text: "bob", bold: true },
      { text: " at ", bold: false, color: "" },
      { text: "stop", color: "red" },
    ]);
  });

  it("show everything else as it is", () => {
    const line = '<img src=x onerror="alert(1)"> <script>alert(1)</script> 1 < 2 &lt;b&gt;';
    expect(parseMarkup(line).map((s) => s.text).join("")).toBe('<img src=x onerror="alert(1)"> <script>alert(1)</script> 1 < 2 <b>');
  });

  it("survives tags that are not closed, or closed twice", () => {
    expect(parseMarkup("</b></font><i>x").map((s) => s.text).join("")).toBe("x");
  });
});
