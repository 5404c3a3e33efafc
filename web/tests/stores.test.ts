import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FASTEST, PAUSED, type LogEntry } from "../src/generated/messages";
import { WRONG_TOKEN } from "../src/net/connection";
import { Clock, INFO_PERIOD, SPEEDS } from "../src/stores/clock.svelte";
import { Log, MAX_LINES } from "../src/stores/log.svelte";
import { MAX_TOAST, MAX_TOASTS, Notices } from "../src/stores/notices.svelte";
import { Painter, type Stage } from "../src/stores/painter.svelte";
import { Panels } from "../src/stores/panels.svelte";
import { Probe } from "../src/stores/probe.svelte";
import { MAX_HISTORIES, MAX_SAMPLES, Readouts } from "../src/stores/readouts.svelte";
import { Roster } from "../src/stores/roster.svelte";
import { Selection } from "../src/stores/selection.svelte";
import { Session } from "../src/stores/session.svelte";
import { Tools, type Uses } from "../src/stores/tools.svelte";
import { Viewpoint } from "../src/stores/viewpoint.svelte";
import { Camera } from "../src/view/camera";
import { World } from "../src/view/world";
import { detail, FakeNotices, FakeSimulator, frame, model, schema, settle, welcome } from "./storefakes";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A world of robots r0, r1 and r2 and a box, 1 m apart, and a camera that shows 100 × 100 pixels around the origin, 10 to a metre. */
function world() {
  const world = new World();
  const roster = new Roster();
  const s = schema(["r0", "r1", "r2"], ["box"]);
  world.setSchema(s);
  roster.set(s);
  world.setFrame(frame([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])); // prettier-ignore
  const camera = new Camera();
  camera.resize(100, 100);
  camera.scale = 10;
  return { world, roster, camera, redraw: vi.fn() };
}

describe("notices", () => {
  it("come, are cut, and go by themselves; bad ones later", () => {
    const notices = new Notices();
    notices.say("good");
    notices.fail(new Error("bad\u202e"));
    notices.fail("a text");
    notices.say("x".repeat(2 * MAX_TOAST), false, 60);
    expect(notices.toasts.map((t) => [t.text.slice(0, 9), t.bad])).toEqual([["good", false], ["bad\\u202e", true], ["a text", true], ["xxxxxxxxx", false]]); // prettier-ignore
    expect(notices.toasts[3].text.length).toBe(MAX_TOAST);
    vi.advanceTimersByTime(4000);
    expect(notices.toasts.length).toBe(3);
    vi.advanceTimersByTime(4000);
    expect(notices.toasts.length).toBe(1);
  });

  it("offer to take back what was done last, and only that", () => {
    const notices = new Notices();
    notices.offer("two removed");
    notices.say("beside it");
    notices.offer("three moved");
    expect(notices.toasts.map((t) => [t.text, t.undo])).toEqual([["beside it", false], ["three moved", true]]); // prettier-ignore
    notices.withdraw();
    expect(notices.toasts.map((t) => t.text)).toEqual(["beside it"]);
  });

  it("are few: the oldest gives way", () => {
    const notices = new Notices();
    for (let i = 0; i < 9; i++) notices.say(String(i));
    expect(notices.toasts.map((t) => t.text)).toEqual(["5", "6", "7", "8"]);
    expect(notices.toasts.length).toBe(MAX_TOASTS);
  });
});

describe("the log", () => {
  const line = (level: LogEntry["level"]): LogEntry => ({ time: 0, level, source: "s", text: "t" });

  it("counts warnings while it is not shown", () => {
    const setting = { showLog: false, toggleLog: () => void (setting.showLog = !setting.showLog) };
    const log = new Log(setting);
    log.add([line("info"), line("warning"), line("error")], 2);
    expect([log.lines.length, log.lost, log.warnings]).toEqual([3, 2, 2]);
    log.toggle();
    log.add([line("error")], 1);
    expect([log.lines.length, log.lost, log.warnings]).toEqual([4, 3, 0]);
    log.clear();
    expect(log.lines).toEqual([]);
  });

  it("keeps the newest lines, each with a number of its own", () => {
    const log = new Log({ showLog: true, toggleLog: () => {} });
    for (let i = 0; i < 3; i++) log.add(Array.from({ length: MAX_LINES / 2 }, () => line("info")), 0);
    expect(log.lines.length).toBe(MAX_LINES);
    expect([log.lines[0].number, log.lines[MAX_LINES - 1].number]).toEqual([MAX_LINES / 2, 1.5 * MAX_LINES - 1]);
  });
});

describe("the session", () => {
  const made = () => {
    const simulator = new FakeSimulator();
    const notices = new FakeNotices();
    return { simulator, notices, session: new Session(simulator, notices) };
  };

  it("may touch nothing before it is welcome, on a page that looks on, or without a connection", () => {
    const { session } = made();
    expect([session.readOnly, session.mayTouch()]).toEqual([true, false]);
    session.connected("open", "");
    expect(session.mayTouch()).toBe(false);
    expect(session.welcomed(welcome())).toBe(true);
    expect(session.mayTouch()).toBe(true);
    session.connected("lost", "why");
    expect([session.mayTouch(), session.reason]).toEqual([false, "why"]);
    session.connected("open", "");
    session.told({ driven: [], timeline: { first: 0, last: 1, size: 0, problem: "", replay: "run.mcap", loop: false } } as never);
    expect([session.isReplay, session.isOnlooker, session.readOnly, session.mayTouch()]).toEqual([true, false, true, false]);
    expect(session.whyReadOnly).toBe("a recording is shown and cannot be changed");
    session.told({ driven: [] } as never);
    expect([session.readOnly, session.mayTouch()]).toEqual([false, true]);
    expect(session.welcomed(welcome({ read_only: true }))).toBe(false);
    expect(session.mayTouch()).toBe(false);
  });

  it("wants a token only if it was the token", () => {
    const { session, simulator } = made();
    session.connected("refused", "");
    expect(session.wantsToken).toBe(false);
    simulator.refusal = WRONG_TOKEN;
    session.connected("refused", "");
    expect(session.wantsToken).toBe(true);
    session.connected("open", "");
    expect(session.wantsToken).toBe(false);
  });

  it("asks, and says what was done or what was refused", async () => {
    const { session, simulator, notices } = made();
    simulator.answers.step = 3;
    expect(await session.ask({ type: "step", count: 1 }, "done")).toBe(3);
    simulator.answers.reload = new Error("no map");
    expect(await session.ask({ type: "reload" }, "done")).toBe(undefined);
    expect(notices.said).toEqual(["done", "!no map"]);
  });

  it("keeps the catalogue that it has when another is refused", async () => {
    const { session, simulator } = made();
    simulator.answers.catalog = { models: [], maps: [] };
    await session.loadCatalog();
    simulator.answers.catalog = new Error("busy");
    await session.loadCatalog();
    expect(session.catalog).toEqual({ models: [], maps: [] });
  });

  it("knows who commands whom, whatever they are called", () => {
    const { session } = made();
    session.told({ driven: [{ robot: "__proto__", sources: ["page"] }, { robot: "r", sources: ["tcp"] }] } as never); // prettier-ignore
    expect(Object.entries(session.clients)).toEqual([["__proto__", ["page"]], ["r", ["tcp"]]]); // prettier-ignore
    expect(session.interfaces).toEqual([]);
  });
});

describe("the roster", () => {
  it("tells robots from obstacles, and who drives", () => {
    const { roster } = world();
    expect(roster.robotNames).toEqual(["r0", "r1", "r2"]);
    expect(roster.drivable(["box", "r1", "nobody"])).toEqual(["r1"]);
    expect(roster.robot("r1")).toEqual({ name: "r1", maxV: 1, maxW: 2, omni: false });
    expect([roster.robot("box"), roster.robot("nobody"), roster.name(3), roster.name(9), roster.name(-1)]).toEqual([null, null, "box", "", ""]);
  });
});

describe("the selection", () => {
  const made = () => {
    const w = world();
    const changed = vi.fn();
    return { ...w, changed, selection: new Selection(w.world, w.roster, changed, w.redraw) };
  };

  it("is set, added to and toggled by row, and tells only changes", () => {
    const { selection, world, changed } = made();
    selection.select([1], "set");
    selection.select([1], "set");
    selection.select([0, 1], "add");
    selection.select([1, 3], "toggle");
    expect(selection.names).toEqual(["r0", "box"]);
    expect([...world.selected]).toEqual([0, 3]);
    expect([selection.isSelected(3), selection.isSelected(1)]).toEqual([true, false]);
    expect(changed.mock.calls).toEqual([[["r1"]], [["r1", "r0"]], [["r0", "box"]]]);
  });

  it("is taken along by a hand on one of it", () => {
    const { selection } = made();
    selection.set(["r0", "r2"]);
    expect([selection.with(2), selection.with(1)]).toEqual([[0, 2], [1]]);
  });

  it("goes with names when rows change; who is gone is not selected, who is just coming is", () => {
    const { selection, world, roster } = made();
    selection.set(["r2", "r0", "new"]);
    selection.hover(2);
    const before = new Set(roster.bodies.map((b) => b.name));
    const s = schema(["r2", "other"], [], 2);
    world.setSchema(s);
    roster.set(s);
    selection.renumber(before);
    expect(selection.names).toEqual(["r2", "new"]);
    expect([...world.selected]).toEqual([0]);
    expect([world.hovered, selection.hoverName]).toEqual([-1, ""]);
  });

  it("tells what is under the pointer", () => {
    const { selection, redraw } = made();
    selection.hover(3);
    selection.hover(3);
    expect([selection.hoverName, redraw.mock.calls.length]).toEqual(["box", 1]);
    selection.hover(-1);
    expect(selection.hoverName).toBe("");
  });
});

describe("readouts", () => {
  it("keep a course that is short, begins anew with time, and has one sample a moment", () => {
    const readouts = new Readouts();
    readouts.receive(1, [detail("a", -0.5, Math.PI)]);
    readouts.receive(1, [detail("a", 1)]);
    expect(readouts.histories.get("a")).toEqual({ time: [1], v: [-0.5], w: [180], nearest: [1.5], error: [0.1] });
    for (let t = 2; t < MAX_SAMPLES + 10; t++) readouts.receive(t, [detail("a")]);
    expect(readouts.histories.get("a")!.time.length).toBe(MAX_SAMPLES);
    expect(readouts.histories.get("a")!.v.length).toBe(MAX_SAMPLES);
    readouts.receive(0.5, [detail("a")]);
    expect(readouts.histories.get("a")!.time).toEqual([0.5]);
  });

  it("forget the robot that was looked at longest ago", () => {
    const readouts = new Readouts();
    for (let i = 0; i < MAX_HISTORIES; i++) readouts.receive(i, [detail(`r${i}`)]);
    readouts.receive(900, [detail("r0")]);
    readouts.receive(901, [detail("new")]);
    expect(readouts.histories.size).toBe(MAX_HISTORIES);
    expect([readouts.histories.has("r0"), readouts.histories.has("r1"), readouts.histories.has("new")]).toEqual([true, false, true]);
  });

  it("go at once when others are selected", () => {
    const readouts = new Readouts();
    readouts.receive(1, [detail("a"), detail("b")]);
    readouts.keepOnly(["b"]);
    expect(readouts.details.map((d) => d.name)).toEqual(["b"]);
  });
});

describe("the viewpoint", () => {
  const made = () => {
    const w = world();
    return { ...w, viewpoint: new Viewpoint(w.camera, w.world, w.redraw) };
  };

  it("shows all once it has come, and does not move by itself after that", () => {
    const { viewpoint, camera, world } = made();
    viewpoint.update();
    expect([camera.x, viewpoint.fitted]).toEqual([1.5, true]);
    viewpoint.refit([10, 10, 20, 20]);
    viewpoint.update();
    expect([camera.x, camera.y, viewpoint.fitted]).toEqual([15, 15, true]);
    viewpoint.pan(-camera.scale, 0);
    viewpoint.update();
    expect(camera.x).toBeCloseTo(16);
    viewpoint.resized();
    expect(camera.x).toBeCloseTo(16);
    viewpoint.home();
    viewpoint.resized();
    expect(camera.x).toBe(15);
    viewpoint.refit(null);
    world.frame = null;
    viewpoint.update();
    expect([camera.x, viewpoint.fitted]).toEqual([15, false]);
  });

  it("follows a body; a hand or its end ends that", () => {
    const { viewpoint, camera } = made();
    viewpoint.update();
    viewpoint.followRobot("r2");
    viewpoint.update();
    expect([camera.x, camera.y]).toEqual([2, 0]);
    viewpoint.zoomAt(0, 0, 2);
    expect([camera.x, camera.y]).toEqual([2, 0]); // what it follows stays in the middle
    viewpoint.forget(() => true);
    expect(viewpoint.isFollowing).toBe(true);
    viewpoint.forget((name) => name !== "r2");
    expect(viewpoint.isFollowing).toBe(false);
    viewpoint.followRobot("r1");
    viewpoint.pan(1, 1);
    expect(viewpoint.follow).toBe(null);
    viewpoint.zoomAt(0, 0, 2);
    expect(camera.x).not.toBe(2);
  });

  it("goes to a point, near enough, and stays there", () => {
    const { viewpoint, camera } = made();
    viewpoint.update();
    viewpoint.followRobot("r2");
    camera.scale = 1;
    viewpoint.goTo(7, 8);
    viewpoint.resized();
    viewpoint.update();
    expect([camera.x, camera.y, camera.scale]).toEqual([7, 8, 40]);
    viewpoint.zoom(2);
    expect(camera.scale).toBe(80);
  });

  it("shows the same when the origin moves", () => {
    const { viewpoint, camera } = made();
    [camera.x, camera.y] = [5, 6];
    viewpoint.shift(2, -3);
    expect([camera.x, camera.y]).toEqual([3, 9]);
  });
});

describe("tools", () => {
  const made = () => {
    const w = world();
    const models = [model("p3dx")];
    const added: unknown[][] = [];
    const sent: unknown[][] = [];
    const areas: unknown[][] = [];
    const drawn: unknown[][] = [];
    const pointed: unknown[] = [];
    const uses: Uses = {
      model: (name) => models.find((m) => m.name === name),
      add: (...all) => void added.push(all),
      send: (...all) => void sent.push(all),
      estimate: (...all) => void sent.push(all),
      area: (...all) => void areas.push(all),
      hand: (...all) => void drawn.push(all),
      point: (at) => void pointed.push(at),
    };
    return { ...w, added, sent, areas, drawn, pointed, tools: new Tools(w.world, w.camera, uses, w.redraw) };
  };

  it("select what is in a box, from whichever corner", () => {
    const { tools, world } = made();
    expect(tools.box(72, 55, 45, 45, false)).toBe(null);
    expect(world.boxSelect).toEqual({ from: [2.2, -0.5], to: [-0.5, 0.5] });
    expect(tools.box(72, 55, 45, 45, true)).toEqual([0, 1, 2]);
    expect(world.boxSelect).toBe(null);
    expect(tools.box(0, 0, 0, 0, true)).toBe(null);
  });

  it("measure and edit by a hand, in the world's frame", () => {
    const { tools, world, drawn } = made();
    world.schema!.origin = [100, 200];
    tools.set("measure");
    tools.use(50, 50, 80, 50, false);
    tools.set("edit");
    tools.use(50, 50, 80, 50, true);
    expect(drawn).toEqual([[[100, 200], [103, 200], false], [[100, 200], [103, 200], true]]); // prettier-ignore
  });

  it("place a body where the hand was, pointing where it went", () => {
    const { tools, world, added } = made();
    world.schema!.origin = [100, 200];
    tools.startPlacing({ model: "p3dx", count: 2, name: "n" });
    tools.use(60, 40, 60, 20, false);
    expect(world.preview!.poses).toEqual([[1, 1, Math.PI / 2]]);
    tools.use(60, 40, 60, 20, true);
    expect(added).toEqual([[{ model: "p3dx", count: 2, name: "n" }, [101, 201, Math.PI / 2]]]);
    expect([world.preview, tools.tool, tools.placing]).toEqual([null, "select", null]);
  });

  it("place nothing of which the model is not known, and do not turn for a trembling hand", () => {
    const { tools, added, world } = made();
    tools.place(1, 1, 1, 1, true);
    tools.startPlacing({ model: "unknown", count: 1, name: "" });
    tools.place(1, 1, 1, 1, true);
    expect(added).toEqual([]);
    world.goal = { at: [0, 0], th: null };
    tools.startPlacing({ model: "p3dx", count: 1, name: "" });
    expect([tools.tool, world.goal]).toEqual(["place", null]);
    tools.place(50, 50, 50, 45, true);
    expect((added[0][1] as number[])[2]).toBe(0);
  });

  it("send robots to goals: a click for any heading, a drag for one, Shift for one more", () => {
    const { tools, world, sent } = made();
    world.schema!.origin = [100, 200];
    tools.set("goal");
    tools.use(60, 40, 60, 40, true);
    tools.use(60, 40, 90, 40, true, true);
    expect(sent).toEqual([[[101, 201], null, false], [[101, 201], 0, true]]); // prettier-ignore
    expect(tools.tool).toBe("goal");
  });

  it("are worked by keys alone: a cross is moved, Enter presses, A and D turn", () => {
    const { tools, world, added, areas, drawn, pointed } = made();
    expect(tools.key("ArrowUp", false)).toBe(false);
    tools.startPlacing({ model: "p3dx", count: 1, name: "" });
    for (const key of ["ArrowRight", "ArrowUp", "a", "a", "d"]) expect(tools.key(key, false)).toBe(true);
    expect([world.cross, tools.key("q", false)]).toEqual([[1.2, 1.2], false]);
    tools.key("ArrowLeft", true);
    tools.key("Enter", false);
    expect((added[0][1] as number[]).map((v) => Number(v.toFixed(3)))).toEqual([1.1, 1.2, 0.087]);
    expect([tools.tool, world.cross]).toEqual(["select", null]);
    tools.set("measure");
    for (const key of ["Enter", "ArrowRight", "Enter"]) tools.key(key, false);
    const at = (x: number, done: boolean) => [[x, 0], [x, 0], done]; // prettier-ignore
    expect(drawn).toEqual([at(0, true), at(1.2, false), at(1.2, true)]); // each press is a click
    expect(pointed.at(-1)).toEqual([1.2, 0]);
    tools.set("area");
    for (const key of ["Enter", "ArrowRight", "ArrowDown", "Enter"]) tools.key(key, false);
    expect(areas).toEqual([[[0, 0], [1.2, -1.2]]]); // prettier-ignore
  });
});

describe("the clock", () => {
  it("shows numbers now and then, and a pause at once", () => {
    const clock = new Clock(new FakeSimulator());
    clock.framed(frame([], { time: 1 }), 1000);
    clock.framed(frame([], { time: 2 }), 1000 + INFO_PERIOD);
    expect(clock.info.time).toBe(1);
    clock.framed(frame([], { time: 3, flags: PAUSED | FASTEST }), 1001 + INFO_PERIOD / 2);
    expect(clock.info).toMatchObject({ time: 3, paused: true, fastest: true });
    clock.framed(frame([], { time: 4, flags: PAUSED }), 1100 + 2 * INFO_PERIOD);
    expect(clock.info).toMatchObject({ time: 4, fastest: false });
    clock.framed(frame([], { time: 5, flags: PAUSED }), 1101 + 2 * INFO_PERIOD);
    expect(clock.info.time).toBe(5); // a recording was moved: nothing comes after it
  });

  it.each([
    [1, false, 1, 2],
    [1, false, -1, 0.5],
    [0.1, false, -1, 0.1],
    [100, false, 1, 0],
    [3, true, -1, 100],
    [3, true, 1, 0],
    [3, false, 1, 10],
    [1000, false, -1, 100],
  ] as const)("speed %d (fastest: %j) %d: %d", async (speed, fastest, by, wanted) => {
    const simulator = new FakeSimulator();
    const clock = new Clock(simulator);
    clock.info = { ...clock.info, speed, fastest };
    await clock.changeSpeed(by);
    expect(simulator.asked).toEqual([{ type: "speed", factor: wanted }]);
    expect(SPEEDS.includes(wanted) || wanted === 0).toBe(true);
  });

  it("pauses and goes on", async () => {
    const simulator = new FakeSimulator();
    const clock = new Clock(simulator);
    await clock.togglePause();
    clock.framed(frame([], { flags: PAUSED }), 0);
    await clock.togglePause();
    await clock.step();
    expect(simulator.asked).toEqual([{ type: "pause" }, { type: "run" }, { type: "step", count: 1 }]);
  });
});

describe("the probe", () => {
  const made = () => {
    const w = world();
    w.world.schema!.origin = [10, 20];
    const simulator = new FakeSimulator();
    simulator.answers.debug = { names: ["r0"] };
    return { ...w, simulator, probe: new Probe(w.world, w.camera, simulator, () => "r0", w.redraw) };
  };

  it("asks again and again for what is in view, until it is taken away", async () => {
    const { probe, simulator, world } = made();
    probe.toggle("rays");
    await settle();
    expect(simulator.asked[0]).toEqual({ type: "debug", what: "rays", name: "r0", x0: 5, y0: 15, x1: 15, y1: 25 });
    expect(world.debug).toEqual({ names: ["r0"] });
    await vi.advanceTimersByTimeAsync(900);
    expect(simulator.asked.length).toBe(4);
    probe.toggle("rays");
    await vi.advanceTimersByTimeAsync(900);
    expect([simulator.asked.length, world.debug, probe.what]).toEqual([4, null, null]);
  });

  it("ends when it is refused, waits while there is no connection", async () => {
    const { probe, simulator } = made();
    simulator.status = "lost";
    probe.show("grid");
    await settle();
    expect([simulator.asked.length, probe.what]).toEqual([0, "grid"]);
    simulator.status = "open";
    simulator.answers.debug = new Error("no");
    await vi.advanceTimersByTimeAsync(2000);
    expect(probe.what).toBe(null);
  });

  it("asks robots for what robots have, and nobody while a box is selected", async () => {
    const { world, camera, redraw, roster } = made();
    const simulator = new FakeSimulator();
    simulator.answers.debug = { names: ["r0"] };
    let names = ["box"];
    const probe = new Probe(world, camera, simulator, () => roster.firstRobot(names), redraw);
    probe.toggle("rays");
    probe.toggle("candidates");
    expect([probe.what, simulator.asked.length]).toEqual([null, 0]);
    names = ["box", "r2"];
    probe.toggle("rays");
    await settle();
    names = ["box"];
    await vi.advanceTimersByTimeAsync(1000);
    expect([probe.what, world.debug, simulator.of("debug").map((d) => d.name)]).toEqual(["rays", null, ["r2"]]);
    names = [];
    await vi.advanceTimersByTimeAsync(300);
    expect([world.debug, simulator.of("debug").at(-1)!.name]).toEqual([{ names: ["r0"] }, "r0"]);
    probe.toggle("rays");
    probe.toggle("grid");
    names = ["box"];
    await vi.advanceTimersByTimeAsync(2000);
    expect([probe.what, simulator.of("debug").at(-1)!.what]).toEqual(["grid", "grid"]);
    probe.show(null);
    roster.robots = 0;
    names = [];
    probe.toggle("candidates");
    expect(probe.what).toBe(null);
  });

  it("drops an answer to what nobody looks at any more, good or bad", async () => {
    const { probe, world, simulator } = made();
    simulator.answers.debug = new Error("no");
    probe.show("grid");
    simulator.answers.debug = { names: ["new"] };
    probe.show("rays");
    await settle();
    expect([probe.what, world.debug]).toEqual(["rays", { names: ["new"] }]);
  });
});

describe("panels", () => {
  it("open dialogs only where they may be used, and fetch what they show", () => {
    const simulator = new FakeSimulator();
    const notices = new FakeNotices();
    const panels = new Panels(1000, simulator, notices);
    panels.open("add");
    expect([panels.dialog, simulator.of("catalog").length]).toEqual(["add", 1]);
    panels.close("map");
    expect(panels.dialog).toBe("add");
    panels.close();
    simulator.readOnly = true;
    panels.open("map");
    expect([panels.dialog, notices.said]).toEqual(["none", ["!this page may only look on"]]);
    panels.open("help");
    expect(panels.dialog).toBe("help");
  });

  it("leave small windows to the world", () => {
    expect(new Panels(799, new FakeSimulator(), new FakeNotices()).side).toBe(false);
    expect(new Panels(800, new FakeSimulator(), new FakeNotices()).side).toBe(true);
  });
});

describe("the painter", () => {
  it("paints once for all that changes between two repaints, and again for what changes meanwhile", () => {
    const repaints: (() => void)[] = [];
    let during: (() => void) | null = null;
    const paint = vi.fn(() => (during?.(), true));
    const painter = new Painter((p) => void repaints.push(p), paint);
    painter.redraw();
    painter.redraw();
    expect(repaints.length).toBe(1);
    during = () => painter.redraw();
    repaints.shift()!();
    expect([paint.mock.calls.length, repaints.length]).toEqual([1, 1]);
    during = null;
    repaints.shift()!();
    expect([paint.mock.calls.length, repaints.length, painter.costs.length]).toEqual([2, 0, 2]);
  });

  it("paints once more, finer, when the view has come to rest", () => {
    const repaints: (() => void)[] = [];
    const painter = new Painter((p) => void repaints.push(p), () => false);
    const settles = vi.fn(() => settles.mock.calls.length === 1);
    painter.stage = { renderer: "x", drawNow: () => {}, picture: () => Promise.resolve(null), settle: settles, cancelGesture: () => false } satisfies Stage;
    painter.redraw();
    repaints.shift()!();
    vi.advanceTimersByTime(100);
    expect([settles.mock.calls.length, repaints.length, painter.costs.length]).toEqual([1, 1, 0]);
    repaints.shift()!();
    vi.advanceTimersByTime(1000);
    expect([settles.mock.calls.length, repaints.length]).toEqual([2, 0]);
  });
});

