import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DriveCommand } from "../src/hands/driving";
import { Drag, MOVE_PERIOD } from "../src/stores/drag";
import { Driving } from "../src/stores/driving.svelte";
import { Fleet } from "../src/stores/fleet";
import { AT_ONCE, batches, wrap } from "../src/stores/ports";
import { Roster } from "../src/stores/roster.svelte";
import { TOGETHER, Undo } from "../src/stores/undo";
import { World } from "../src/view/world";
import { FakeNotices, FakeSimulator, frame, schema, settle } from "./storefakes";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A world of `names`, 1 m apart along x, whose origin is at (100, 200) m. */
function held(names = ["r0", "r1", "r2"]) {
  const world = new World();
  const roster = new Roster();
  const put = (some: string[], number = 1, origin: [number, number] = [100, 200]) => {
    const s = schema(some, [], number, origin);
    world.setSchema(s);
    roster.set(s);
    world.setFrame(frame(some.map((_, i) => [i, 0, 0] as [number, number, number]), { schema: number })); // prettier-ignore
  };
  put(names);
  const simulator = new FakeSimulator();
  const redraw = vi.fn();
  const notices = new FakeNotices();
  const undo = new Undo(simulator, notices);
  return { world, roster, simulator, redraw, put, notices, undo, drag: new Drag(world, roster, simulator, redraw, undo, notices) };
}

describe("bodies in hand", () => {
  it("are held, shown where the hand is, and put there; frames from before the answer do not pull them back", async () => {
    const { drag, world, simulator } = held();
    drag.grab([0, 1], 0);
    drag.moveTo(0.5, 1);
    expect(simulator.asked).toEqual([
      { type: "hold", names: ["r0", "r1"], on: true },
      { type: "move", to: [{ name: "r0", x: 100.5, y: 201, th: 0 }, { name: "r1", x: 101.5, y: 201, th: 0 }], group: 1 },
    ]); // prettier-ignore
    world.setFrame(frame([[0, 0, 0], [1, 0, 0], [2, 0, 0]])); // prettier-ignore
    expect([world.pose(0), world.pose(2)]).toEqual([[0.5, 1, 0], [2, 0, 0]]); // prettier-ignore
    simulator.answers.move = 7;
    drag.drop(true);
    expect(drag.isHolding).toBe(false);
    await settle();
    expect(simulator.asked.at(-1)).toEqual({ type: "hold", names: ["r0", "r1"], on: false });
    drag.framed(7);
    expect(world.dragged.size).toBe(2);
    drag.framed(8);
    expect(world.dragged.size).toBe(0);
  });

  it("are let go when another person holds one of them", async () => {
    const { drag, world, simulator } = held();
    simulator.answers.hold = new Error("r0: bob holds it");
    drag.grab([0, 1], 0);
    drag.moveTo(0.5, 1);
    await settle();
    expect([drag.isHolding, world.dragged.size]).toEqual([false, 0]);
    expect(simulator.asked.at(-1)).toEqual({ type: "hold", names: ["r0", "r1"], on: false });
    const moves = simulator.of("move").length;
    drag.moveTo(2, 2);
    drag.drop(true);
    expect(simulator.of("move").length).toBe(moves);
  });

  it("send few moves, and the last one for certain", () => {
    const { drag, simulator } = held();
    drag.grab([0], 0);
    for (let i = 1; i <= 5; i++) drag.moveTo(i, 0);
    expect(simulator.of("move").map((m) => m.to[0].x)).toEqual([101]);
    vi.advanceTimersByTime(MOVE_PERIOD + 1);
    expect(simulator.of("move").map((m) => m.to[0].x)).toEqual([101, 105]);
    drag.moveTo(6, 0);
    drag.drop(true); // what waited to be sent is sent now, and not again
    vi.advanceTimersByTime(10 * MOVE_PERIOD);
    expect(simulator.of("move").map((m) => m.to[0].x)).toEqual([101, 105, 106]);
  });

  it("go back when the hand gives up", async () => {
    const { drag, world, simulator } = held();
    drag.grab([1], 1);
    drag.moveTo(3, 3);
    drag.drop(false);
    await settle();
    expect(simulator.of("move").at(-1)!.to).toEqual([{ name: "r1", x: 101, y: 200, th: 0 }]);
    expect(world.dragged.get(1)).toEqual([1, 0, 0]);
  });

  it("turn together, each where it stands", () => {
    const { drag, simulator } = held();
    drag.turnTo(0, 5);
    expect(simulator.asked).toEqual([]);
    drag.grab([0, 1], 0);
    drag.turnTo(0, 5);
    for (const [i, to] of simulator.of("move")[0].to.entries()) {
      expect([to.x, to.y]).toEqual([100 + i, 200]);
      expect(to.th).toBeCloseTo(Math.PI / 2);
    }
  });

  it("keep their names when others go, and when the origin moves", () => {
    const { drag, world, put } = held();
    drag.grab([1, 2], 2);
    const before = drag.held();
    put(["r2", "r1"], 2, [90, 200]);
    drag.regrab(before, -10, 0);
    drag.moveTo(0, 1);
    expect([world.dragged.get(0), world.dragged.get(1)]).toEqual([[12, 1, 0], [11, 1, 0]]); // prettier-ignore
  });

  it("are let go when the one under the pointer is gone", () => {
    const { drag, simulator, put } = held();
    drag.grab([1, 2], 2);
    const before = drag.held();
    put(["r0", "r1"], 2);
    drag.regrab(before, 0, 0);
    expect([drag.isHolding, simulator.asked.at(-1)]).toEqual([false, { type: "hold", names: ["r1"], on: false }]);
    drag.regrab(drag.held(), 0, 0);
    expect(simulator.asked.length).toBe(2);
  });

  it("are nobody's when the connection is lost: nothing more is sent", () => {
    const { drag, simulator, world } = held();
    drag.grab([0], 0);
    drag.moveTo(1, 0);
    drag.moveTo(2, 0);
    const sent = simulator.asked.length;
    drag.lose();
    vi.advanceTimersByTime(10 * MOVE_PERIOD);
    drag.drop(true);
    expect([simulator.asked.length, world.dragged.size]).toEqual([sent, 0]);
  });

  it("are nudged along their heading, from where the last nudge put them", async () => {
    const { drag, world, simulator } = held();
    world.frame!.pose.set([0, 0, Math.PI / 2], 0);
    drag.nudge([0], 0.1, 0);
    drag.nudge([0], 0.1, Math.PI);
    const to = simulator.of("move")[1].to[0];
    expect([to.x, to.y, to.th].map((v) => +v.toFixed(4))).toEqual([100, 200.2, -1.5708]);
    simulator.readOnly = true;
    drag.nudge([0], 0.1, 0);
    await settle();
    expect(simulator.of("move").length).toBe(2);
  });

  it("wait for the answer to the last nudge, not for the first", async () => {
    const { drag, world, simulator } = held();
    simulator.answers.move = 5;
    drag.nudge([0], 0.1, 0);
    simulator.answers.move = 9;
    drag.nudge([0], 0.1, 0);
    await settle();
    drag.framed(6);
    expect(world.dragged.size).toBe(1);
    drag.framed(10);
    expect(world.dragged.size).toBe(0);
  });

  it("are put back in one step: all moves of a drag, and nudges that come quickly one after the other", () => {
    const { drag, simulator, notices } = held();
    drag.grab([0, 1], 0);
    for (let i = 1; i < 4; i++) {
      drag.moveTo(i, 0);
      vi.advanceTimersByTime(2 * MOVE_PERIOD);
    }
    drag.drop(true);
    drag.grab([0], 0);
    drag.moveTo(1, 0);
    drag.drop(true);
    for (const wait of [10, TOGETHER, 10]) {
      drag.nudge([0], 0.1, 0);
      vi.advanceTimersByTime(wait);
    }
    const groups = simulator.of("move").map((m) => m.group);
    expect([...new Set(groups)]).toEqual([1, 2, 3, 4]);
    expect(groups.at(-3)).toBe(groups.at(-2));
    expect(notices.said).toEqual(["2 moved [undo]"]);
  });

  it("many are several messages", async () => {
    const { drag, simulator } = held(Array.from({ length: AT_ONCE + 1 }, (_, i) => `r${i}`));
    drag.grab([...Array(AT_ONCE + 1).keys()], 0);
    drag.moveTo(1, 1);
    await settle();
    expect(simulator.of("move").map((m) => m.to.length)).toEqual([AT_ONCE, 1]);
    expect(simulator.of("hold").map((m) => m.names.length)).toEqual([AT_ONCE, 1]);
  });
});

it("angles stay within half a turn", () => {
  expect(wrap(3 * Math.PI)).toBeCloseTo(Math.PI);
  expect(wrap(-0.5)).toBeCloseTo(-0.5);
  expect([...batches([])]).toEqual([]);
});

describe("driving", () => {
  const made = (names = ["r0"]) => {
    const roster = new Roster();
    roster.set(schema(["r0", "r1"], ["box"]));
    const session = { readOnly: false };
    const selection = { names };
    const notices = new FakeNotices();
    const sent: DriveCommand[] = [];
    const refuse: { with: Error | null } = { with: null };
    const send = (c: DriveCommand) => {
      sent.push(c);
      return refuse.with ? Promise.reject(refuse.with) : Promise.resolve();
    };
    return { session, selection, notices, sent, refuse, driving: new Driving(selection, roster, session, notices, send) };
  };

  it("is for one robot that drives, on a page that may", () => {
    const { driving, session, selection } = made();
    expect(driving.driven()?.name).toBe("r0");
    for (const names of [[], ["box"], ["r0", "r1"], ["nobody"]]) {
      selection.names = names;
      expect(driving.driven()).toBe(null);
    }
    selection.names = ["r1"];
    session.readOnly = true;
    driving.stick(1, 0);
    expect([driving.driven(), driving.isDriving]).toEqual([null, false]);
  });

  it("goes as keys are held, and stops with the last", () => {
    const { driving, sent } = made();
    driving.press("ArrowUp");
    driving.press("ArrowLeft");
    driving.press("x");
    driving.release("ArrowUp");
    driving.release("x");
    expect(driving.isDriving).toBe(true);
    driving.release("ArrowLeft");
    expect(sent.map((c) => [Math.sign(c.v), Math.sign(c.w), c.on])).toEqual([[1, 0, true], [1, 1, true], [0, 1, true], [0, 0, false]]); // prettier-ignore
    expect(driving.isDriving).toBe(false);
  });

  it("ends when it is refused, and says so once", async () => {
    const { driving, notices, refuse, sent } = made();
    refuse.with = new Error("somebody else drives it");
    driving.stick(1, 0);
    await settle();
    const after = sent.length;
    vi.advanceTimersByTime(1000);
    expect([driving.isDriving, sent.length]).toEqual([false, after]);
    expect(new Set(notices.said)).toEqual(new Set(["!somebody else drives it"]));
  });
});

describe("undo", () => {
  it("asks the simulator, says what it has done, and ends what is offered", async () => {
    const simulator = new FakeSimulator();
    const notices = new FakeNotices();
    const undo = new Undo(simulator, notices);
    simulator.answers.undo = "undone: moving r0";
    simulator.answers.redo = new Error("nothing to redo");
    await undo.undo();
    await undo.redo();
    expect(simulator.asked.map((a) => a.type)).toEqual(["undo", "redo"]);
    expect(notices.said).toEqual(["withdrawn", "undone: moving r0", "withdrawn"]);
    const first = undo.groupOfKeys("nudge r0", 0);
    expect([undo.groupOfKeys("nudge r0", 900), undo.groupOfKeys("nudge r1", 950)]).toEqual([first, first + 1]);
    await undo.undo();
    expect(undo.groupOfKeys("nudge r1", 960)).toBe(first + 2); // not a part of what was just undone
  });
});

describe("all that is selected", () => {
  const made = (names: string[], robots = ["r0", "r1", "r2"]) => {
    const roster = new Roster();
    roster.set(schema(robots, ["box"]));
    const selection = { names, set: (next: string[]) => void (selection.names = next) };
    const simulator = new FakeSimulator();
    const notices = new FakeNotices();
    return { selection, simulator, notices, fleet: new Fleet(selection, roster, simulator, notices, (r) => simulator.request(r), () => 7) };
  };

  it("is cloned, if it is a robot, and the clones are selected", async () => {
    const { fleet, simulator, selection, notices } = made(["r0", "box"]);
    simulator.answers.clone = ["r3"];
    await fleet.clone();
    expect(simulator.asked).toEqual([{ type: "clone", names: ["r0"] }]);
    expect([selection.names, notices.said]).toEqual([["r3"], ["1 of 2 are of the map: only robots are cloned"]]);
    selection.names = ["box"];
    await fleet.clone();
    expect([simulator.asked.length, notices.said[1]]).toEqual([1, "!1 of 1 are of the map: only robots are cloned"]);
  });

  it("is removed, and what could not be is not counted", async () => {
    const many = Array.from({ length: AT_ONCE + 2 }, (_, i) => `r${i}`);
    const { fleet, simulator, notices } = made(many, many);
    await fleet.removeAll(many);
    await fleet.removeAll(["r0"]);
    simulator.answers.remove = new Error("no");
    await fleet.removeAll(["r1"]);
    expect(simulator.of("remove").map((r) => r.names.length)).toEqual([AT_ONCE, 2, 1, 1]);
    expect(simulator.of("remove").every((r) => r.group === 7)).toBe(true);
    expect(notices.said).toEqual([`${AT_ONCE + 2} removed [undo]`, "r0 removed [undo]"]);
  });

  it("commands an actuator, and sends no empty field", async () => {
    const { fleet, simulator } = made(["r0"]);
    await fleet.command("r0", "gripper", "lift", 0.5);
    await fleet.command("r0", "gripper", "lift", NaN);
    expect(simulator.asked).toEqual([{ type: "command", name: "r0", device: "gripper", command: "lift", value: 0.5 }]);
  });

  it("stops: taken over and let go again", async () => {
    const { fleet, simulator, notices } = made(["r0", "box", "r2"]);
    await fleet.stop();
    expect(simulator.of("drive").map((d) => [d.name, d.on])).toEqual([["r0", true], ["r2", true], ["r0", false], ["r2", false]]); // prettier-ignore
    expect(notices.said).toEqual(["stop: 2 robots"]);
  });

  it("is switched, the others all the same when some cannot be", async () => {
    const many = Array.from({ length: AT_ONCE + 2 }, (_, i) => `r${i}`);
    const { fleet, simulator, notices, selection } = made(many, many);
    const refusals = [new Error("the first"), null];
    const request = simulator.request.bind(simulator);
    simulator.request = <T>(r: Parameters<typeof request>[0]) => {
      simulator.answers.estop = refusals.shift() ?? null;
      return request<T>(r);
    };
    await fleet.switchAll("estop", true);
    expect(simulator.of("estop").map((e) => e.names.length)).toEqual([AT_ONCE, 2]);
    expect(notices.said).toEqual(["!the first", "emergency stop: 2 robots"]);
    selection.names = ["r1"];
    await fleet.switchAll("enable", false);
    await fleet.switchAll("enable", true);
    await fleet.switchAll("estop", false);
    expect(notices.said.slice(2)).toEqual(["motors off: r1", "motors on: r1", "emergency stop released: r1"]);
  });
});
