import { describe, expect, it, vi } from "vitest";
import type { Looked, TimeLine as State } from "../src/generated/messages";
import type { Ask } from "../src/net/connection";
import { TimeLine } from "../src/stores/timeline.svelte";
import { FakeNotices, FakeSimulator, settle } from "./storefakes";

const HISTORY: State = { first: 10, last: 40, size: 1e6, problem: "", replay: "", loop: false, chart: false };

function made(state: State | null = HISTORY, now = 0) {
  const simulator = new FakeSimulator();
  const notices = new FakeNotices();
  const changed = vi.fn();
  const line = new TimeLine(simulator, notices, () => now, changed);
  line.told(state);
  return { simulator, notices, changed, line };
}

const looked = (time: number): Looked => ({ tick: 10 * time, time, missing: [], gone: [], disconnected: 0 });

describe("the time line", () => {
  it("shows the present until it is moved, and then the moment that the simulator has found", async () => {
    const { line, simulator, changed } = made();
    expect([line.isLooking, line.time, line.ago]).toEqual([false, 40, 0]);
    await line.seek(40);
    expect(simulator.asked).toEqual([]); // the bar was only touched
    simulator.answers.look = looked(19.8);
    const done = line.seek(20);
    expect([line.time, line.isLooking]).toEqual([20, false]);
    await done;
    expect([line.time, line.ago.toFixed(1), line.isLooking]).toEqual([19.8, "20.2", true]);
    expect(simulator.asked).toEqual([{ type: "look", time: 20 }]);
    line.told({ ...HISTORY, last: 50 });
    expect([line.time, line.ago.toFixed(1)]).toEqual([19.8, "30.2"]); // the world goes on meanwhile
    simulator.answers.look = null;
    await line.back();
    expect([line.isLooking, line.time, changed.mock.calls.length]).toEqual([false, 50, 2]);
    expect(simulator.asked.at(-1)).toEqual({ type: "look" });
    await line.back();
    expect(simulator.asked.length).toBe(2); // it is there
  });

  it("asks for no moment while one is under way but the last", async () => {
    const { line, simulator } = made();
    const answers: ((value: unknown) => void)[] = [];
    const asked: Ask[] = [];
    simulator.request = <T>(request: Ask): Promise<T> => {
      asked.push(request);
      return new Promise<T>((resolve) => void answers.push(resolve as (value: unknown) => void));
    };
    for (const time of [30, 29, 28, 27]) void line.seek(time);
    expect(asked).toEqual([{ type: "look", time: 30 }]);
    answers[0](looked(30));
    await settle();
    expect(asked).toEqual([{ type: "look", time: 30 }, { type: "look", time: 27 }]); // prettier-ignore
    expect(line.time).toBe(27);
    answers[1](looked(27));
    await settle();
    expect([asked.length, line.looked?.time]).toEqual([2, 27]);
  });

  it("steps back from now, and forward only from a moment", async () => {
    const { line, simulator } = made();
    simulator.answers.look = looked(39.8);
    await line.step(1);
    await line.step(-1);
    await line.step(1);
    expect(simulator.asked).toEqual([{ type: "look", by: -1 }, { type: "look", by: 1 }]); // prettier-ignore
    const none = made(null);
    await none.line.step(-1);
    await none.line.seek(3);
    expect([none.simulator.asked, none.notices.said]).toEqual([[], ["no moments are kept (--history)"]]);
  });

  it("goes on from a moment; what is refused changes nothing", async () => {
    const { line, simulator, notices } = made();
    simulator.answers.look = looked(20);
    await line.seek(20);
    simulator.answers.go_on = new Error("read-only");
    await line.goOn();
    expect(line.isLooking).toBe(true);
    simulator.answers.go_on = 20;
    await line.goOn();
    expect([line.isLooking, notices.said]).toEqual([false, ["the world goes on from 20.0 s [undo]"]]);
    simulator.answers.look = new Error("8 pages look back already");
    await line.seek(15);
    expect([line.isLooking, line.time]).toEqual([false, 40]);
  });

  it("shows the present when the connection is another one", async () => {
    const { line, simulator } = made();
    simulator.answers.look = looked(20);
    await line.seek(20);
    line.lose();
    expect([line.isLooking, line.time]).toEqual([false, 40]);
  });

  it("goes from event to event", async () => {
    const { line, simulator, notices } = made();
    line.marked([5, 12, 20, 20.1, 40.2].map((time) => ({ time, kind: "stall", text: "ann stalls" })));
    simulator.answers.look = looked(40);
    await line.toMark(-1);
    simulator.answers.look = looked(20);
    await line.toMark(-1);
    simulator.answers.look = looked(12);
    await line.toMark(-1);
    await line.toMark(-1); // what was at 5 s is forgotten
    await line.toMark(1);
    expect(simulator.of("look").map((ask) => ask.time)).toEqual([40.2, 20.1, 12, 20]);
    expect(notices.said).toEqual(["there is no event before this moment"]);
  });

  it("moves a recording for all pages, which then show that moment as their present", async () => {
    const { line, simulator } = made({ ...HISTORY, first: 0, replay: "run.mcap" }, 7.5);
    expect([line.isReplay, line.time, line.isLooking]).toEqual([true, 7.5, false]);
    const done = line.seek(40);
    expect(line.time).toBe(40);
    await done;
    await line.step(1);
    await line.toggleLoop();
    line.told({ ...HISTORY, replay: "run.mcap", loop: true });
    await line.toggleLoop();
    expect(simulator.asked).toEqual([
      { type: "look", time: 40 },
      { type: "look", by: 1 },
      { type: "loop", on: true },
      { type: "loop", on: false },
    ]);
    expect([line.isLooking, line.time]).toEqual([false, 7.5]);
  });

  it("spans a part of a recording, and goes along with it", () => {
    const state: State = { ...HISTORY, first: 0, last: 100, replay: "run.mcap" };
    let now = 50;
    const line = new TimeLine(new FakeSimulator(), new FakeNotices(), () => now, vi.fn());
    line.told(state);
    line.zoom(2, 50);
    expect([line.span, line.isZoomed]).toEqual([{ first: 25, last: 75 }, true]);
    line.zoom(2, 25);
    expect(line.span).toEqual({ first: 25, last: 50 });
    line.pan(-100);
    expect(line.span).toEqual({ first: 0, last: 25 });
    line.keepInView();
    expect(line.span).toEqual({ first: 47.5, last: 72.5 });
    now = 99;
    line.keepInView();
    expect(line.span).toEqual({ first: 75, last: 100 });
    for (let k = 0; k < 50; k++) line.zoom(2, 99);
    expect(line.span.last - line.span.first).toBeCloseTo(0.5);
    for (let k = 0; k < 50; k++) line.zoom(0.5, 99);
    expect([line.span, line.isZoomed]).toEqual([{ first: 0, last: 100 }, false]);
    line.zoom(4, 50);
    line.told({ ...state, replay: "another.mcap" });
    expect(line.isZoomed).toBe(false);
  });
});
