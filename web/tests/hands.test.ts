import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Driver, HeldKeys, type DriveCommand } from "../src/hands/driving";
import { Gestures, type Hands, type Pointer } from "../src/hands/gestures";
import { actionOf } from "../src/hands/keys";

function at(x: number, y: number, more: Partial<Pointer> = {}): Pointer {
  return { id: 1, x, y, button: 0, shift: false, ctrl: false, alt: false, ...more };
}

/** Hands that write down what they are told. A body (row 0) is where x < 100. */
function recorder(tool: Hands["tool"] = "select", touch = true, isFollowing = false) {
  const calls: string[] = [];
  const selected = new Set<number>();
  const note = (name: string) => (...args: unknown[]) => void calls.push(`${name} ${args.join(" ")}`.trim());
  const hands: Hands = {
    tool,
    isFollowing,
    mayTouch: () => touch,
    pick: (x) => (x < 100 ? 0 : -1),
    isSelected: (row) => selected.has(row),
    select: (rows, mode) => {
      if (mode === "set") selected.clear();
      rows.forEach((r) => selected.add(r));
      calls.push(`select ${rows.join()} ${mode}`);
    },
    hover: () => {},
    grab: note("grab"),
    drag: note("drag"),
    turnTo: note("turnTo"),
    turnBy: note("turnBy"),
    drop: note("drop"),
    pan: note("pan"),
    zoomAt: note("zoom"),
    box: note("box"),
    use: (...args) => note(tool)(...args.slice(0, 5)),
    followRow: note("follow"),
  };
  return { gestures: new Gestures(hands), calls };
}

function drag(g: Gestures, from: [number, number], to: [number, number], more: Partial<Pointer> = {}): void {
  g.down(at(...from, more));
  g.move(at(...to, more));
  g.up(at(...to, more), 0);
}

describe("the wheel", () => {
  it("turns a selected body, and zooms elsewhere", () => {
    const { gestures, calls } = recorder();
    gestures.wheel(50, 50, 100);
    drag(gestures, [50, 50], [50, 50]);
    gestures.wheel(50, 50, 100);
    gestures.wheel(150, 50, 100);
    expect(calls.map((c) => c.split(" ")[0])).toEqual(["zoom", "select", "turnBy", "zoom"]);
  });

  it("zooms over a selected body that the view follows", () => {
    const { gestures, calls } = recorder("select", true, true);
    drag(gestures, [50, 50], [50, 50]);
    gestures.wheel(50, 50, 100);
    expect(calls.map((c) => c.split(" ")[0])).toEqual(["select", "zoom"]);
  });
});

describe("gestures", () => {
  it("move a body with the left button", () => {
    const { gestures, calls } = recorder();
    drag(gestures, [50, 50], [60, 70]);
    expect(calls).toEqual(["select 0 set", "grab 0", "drag 50 50 60 70", "drop true"]);
  });

  it.each([{ button: 2 }, { shift: true }, { ctrl: true }])("turn a body with %o", (how) => {
    const { gestures, calls } = recorder();
    drag(gestures, [50, 50], [60, 70], how);
    expect(calls).toEqual(["select 0 set", "grab 0", "turnTo 60 70", "drop true"]);
  });

  it.each([{}, { button: 2 }, { ctrl: true }])("pan beside bodies with %o", (how) => {
    const { gestures, calls } = recorder();
    drag(gestures, [150, 50], [160, 70], how);
    expect(calls).toEqual(["pan 10 20"]);
  });

  it.each([{ button: 1 }, { alt: true }])("zoom with %o", (how) => {
    const { gestures, calls } = recorder();
    drag(gestures, [150, 50], [150, 20], how);
    expect(calls[0]).toMatch(/^zoom 150 50 1\.3/);
  });

  it("select what is in a box, with Shift", () => {
    const { gestures, calls } = recorder();
    drag(gestures, [150, 50], [250, 90], { shift: true });
    expect(calls).toEqual(["box 150 50 250 90 false", "box 150 50 250 90 true"]);
  });

  it("click to select, twice to follow, beside to select nothing", () => {
    const { gestures, calls } = recorder();
    for (const time of [0, 200]) {
      gestures.down(at(50, 50));
      gestures.up(at(51, 50), time);
    }
    gestures.down(at(150, 50));
    gestures.up(at(150, 50), 300);
    expect(calls).toEqual(["select 0 set", "select 0 set", "follow 0", "select  set"]);
  });

  it("put a body back on Escape", () => {
    const { gestures, calls } = recorder();
    gestures.down(at(50, 50));
    gestures.move(at(80, 50));
    gestures.cancel();
    gestures.up(at(80, 50), 0);
    expect(calls.at(-1)).toBe("drop false");
  });

  it("move nothing for those who only look on", () => {
    const { gestures, calls } = recorder("select", false);
    drag(gestures, [50, 50], [60, 70]);
    gestures.wheel(50, 50, 100);
    expect(calls[0]).toBe("pan 10 20");
    expect(calls[1]).toMatch(/^zoom/);
  });

  it("turn a selected body by the wheel, and zoom elsewhere", () => {
    const { gestures, calls } = recorder();
    gestures.wheel(50, 50, 100);
    drag(gestures, [50, 50], [50, 50]);
    gestures.wheel(50, 50, 100);
    expect(calls[0]).toMatch(/^zoom 50 50 0\.8/);
    expect(calls.at(-1)).toMatch(/^turnBy 0 -0\.087/);
  });

  it("zoom with two fingers, and let go of what one had grabbed", () => {
    const { gestures, calls } = recorder();
    gestures.down(at(50, 50));
    gestures.move(at(60, 50));
    gestures.down(at(200, 50, { id: 2 }));
    gestures.move(at(300, 50, { id: 2 }));
    expect(calls).toContain("drop false");
    expect(calls.at(-1)).toMatch(/^zoom/);
  });
});

describe("driving", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const robot = { name: "bob", maxV: 3, maxW: 5, omni: false };

  it("repeats the command while it is held, and stops at the end", () => {
    const sent: DriveCommand[] = [];
    const driver = new Driver((c) => sent.push(c));
    driver.set(robot, 1, 0.5);
    vi.advanceTimersByTime(350);
    driver.release();
    vi.advanceTimersByTime(1000);
    expect(sent).toHaveLength(5);
    expect(sent[0]).toEqual({ name: "bob", v: 0.8, w: 0.6, vy: 0, on: true });
    expect(sent.at(-1)).toEqual({ name: "bob", v: 0, w: 0, vy: 0, on: false });
  });

  it("lets go of one robot before it drives another", () => {
    const sent: DriveCommand[] = [];
    const driver = new Driver((c) => sent.push(c));
    driver.set(robot, 1, 0);
    driver.set({ ...robot, name: "eve" }, 1, 0);
    expect(sent.map((c) => [c.name, c.on])).toEqual([["bob", true], ["bob", false], ["eve", true]]);
    driver.release();
  });

  it("turns the way the nose goes when it drives backwards", () => {
    const keys = new HeldKeys();
    keys.press("ArrowDown");
    keys.press("ArrowLeft");
    expect(keys.direction).toEqual([-1, -1]);
    keys.release("ArrowDown");
    expect(keys.direction).toEqual([0, 1]);
  });
});

describe("keys", () => {
  const key = (k: string, more = {}) => ({ key: k, ctrl: false, shift: false, alt: false, ...more });

  it("are AMRISim's", () => {
    expect(actionOf(key("g"), false, false)).toEqual({ do: "layer", layer: "grid" });
    expect(actionOf(key("d"), false, false)).toEqual({ do: "layer", layer: "bodies" });
    expect(actionOf(key("d"), true, true)).toMatchObject({ do: "nudge" });
    expect(actionOf(key("p"), false, false)).toEqual({ do: "pause" });
    expect(actionOf(key("l", { ctrl: true }), false, false)).toEqual({ do: "load" });
    expect(actionOf(key("1", { alt: true }), false, false)).toEqual({ do: "debug", debug: "grid" });
  });

  it("drive with arrows when a robot is selected, else pan", () => {
    expect(actionOf(key("ArrowUp"), true, true)).toEqual({ do: "arrow", key: "ArrowUp" });
    expect(actionOf(key("ArrowUp"), false, false)).toMatchObject({ do: "pan" });
    expect(actionOf(key("ArrowUp", { shift: true }), true, true)).toMatchObject({ do: "zoom" });
  });
});
