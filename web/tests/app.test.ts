import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { App, type Browser } from "../src/app.svelte";
import type { Push } from "../src/generated/messages";
import { WRONG_TOKEN } from "../src/net/connection";
import type { Pressed } from "../src/stores/commands";
import { detail, FakeStorage, frameBytes, mapInfo, schema, settle, welcome } from "./storefakes";

/** A simulator at the other end of the socket: it says what the test says, and answers every request with "ok". */
class FakeSocket {
  static OPEN = 1;
  static last: FakeSocket;
  readyState = 1;
  sent: { type: string; id?: number; [more: string]: unknown }[] = [];
  onopen: () => void = () => {};
  onmessage: (e: { data: string | ArrayBuffer }) => void = () => {};
  onclose: (e: { code: number; reason: string }) => void = () => {};
  constructor() {
    FakeSocket.last = this;
  }
  send(text: string) {
    const request = JSON.parse(text) as FakeSocket["sent"][number];
    this.sent.push(request);
    if (request.id && request.type !== "hello") queueMicrotask(() => this.says({ type: "ok", id: request.id!, result: null }));
  }
  close() {}
  says(message: Push) {
    this.onmessage({ data: JSON.stringify(message) });
  }
  of(type: string) {
    return this.sent.filter((s) => s.type === type);
  }
}

let repaints: (() => void)[];
let themes: string[];
let storage: FakeStorage;
let tokens: string[];
let saved: [string, string][];

const tab = new FakeStorage();

function made(more: Partial<Browser> = {}): App {
  const browser: Browser = {
    storage: () => storage,
    tabStorage: () => tab,
    prefersDark: false,
    touches: false,
    hash: "",
    width: 1000,
    nextRepaint: (paint) => void repaints.push(paint),
    fetch: () => Promise.resolve(new Response("", { status: 404 })),
    download: () => {},
    save: (url, name) => void saved.push([url, name]),
    setTheme: (theme) => void themes.push(theme),
    keepToken: (token) => void tokens.push(token),
    ...more,
  };
  return new App("ws://x/ws", "secret", browser);
}

function repaint(): void {
  for (const paint of repaints.splice(0)) paint();
}

const socket = () => FakeSocket.last;

/** A page that is open, in a world of these robots. */
function open(robots = ["r0", "r1", "r2"], more: Parameters<typeof welcome>[0] = {}): App {
  const app = made();
  app.camera.resize(100, 100);
  app.connection.open();
  socket().onopen();
  socket().says(welcome(more));
  socket().says(schema(robots));
  show(1, 1, robots.map((_, i) => [i, 0, 0] as [number, number, number])); // prettier-ignore
  return app;
}

function show(schemaNumber: number, number: number, poses: [number, number, number][]): void {
  socket().onmessage({ data: frameBytes(schemaNumber, number, poses) });
  repaint();
}

const key = (name: string, more: Partial<Pressed> = {}): Pressed => ({
  key: name, ctrl: false, shift: false, alt: false, repeat: false, elsewhere: false, onButton: false, ...more,
}); // prettier-ignore

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("window", globalThis);
  [repaints, themes, tokens, saved, storage] = [[], [], [], [], new FakeStorage()];
});

afterEach(() => {
  socket()?.onclose({ code: WRONG_TOKEN, reason: "" });
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe("the page", () => {
  it("greets with the token and with what it wants to see", () => {
    storage.setItem("botyard", '{"theme": "dark", "layers": {"laser": false, "sonar": false, "velocity": true}}');
    open();
    expect(socket().sent[0]).toMatchObject({ token: "secret", view: { readings: "none", odometry: false, velocity: true, selected: [] } });
    expect(themes).toEqual(["dark"]);
  });

  it("shows frames, whole at first, and acknowledges what it has drawn", () => {
    const app = open();
    expect([app.roster.robots, app.viewpoint.fitted, app.camera.x]).toEqual([3, true, 1]);
    expect(socket().of("ack")).toEqual([{ type: "ack", number: 1 }]);
    expect(app.painter.costs.length).toBe(1);
  });

  it("waits for the frame that a schema is about", () => {
    const app = open();
    app.selection.set(["r2"]);
    app.viewpoint.followRobot("r1");
    socket().says(schema(["r2"], [], 2, [1, 0]));
    expect(app.roster.robots).toBe(3);
    show(2, 2, [[0.5, 0, 0]]);
    expect([app.roster.robots, app.world.pose(0), [...app.world.selected], app.viewpoint.follow]).toEqual([1, [0.5, 0, 0], [0], null]);
    expect(app.camera.x).toBe(0);
  });

  it("shows another map with the bodies in it, whole, and the same map from where it was", () => {
    const app = open();
    socket().says(schema(["r0"], [], 2, [50, 20], mapInfo("map/2", { bounds: [40, 15, 60, 25] })));
    repaint();
    expect([app.maps.name, app.world.map.bounds, app.camera.x]).toEqual(["", null, 1]);
    show(2, 2, [[-3, 0, 0]]);
    expect([app.maps.name, app.world.map.bounds, app.camera.x, app.camera.y]).toEqual(["map/2", [40, 15, 60, 25], 0, 0]);
    app.viewpoint.goTo(2, 1);
    socket().says(schema(["r0", "r1"], [], 3, [50, 20], mapInfo("map/3", { name: "map/2", bounds: [40, 15, 60, 25] })));
    show(3, 3, [[-3, 0, 0], [2, 1, 0]]);
    expect([app.camera.x, app.camera.y]).toEqual([2, 1]);
    socket().says(schema(["r0", "r1"], [], 4, [0, 0], mapInfo("", { view: [-4, -4, 2, 4] })));
    show(4, 4, [[-3, 0, 0], [2, 1, 0]]);
    expect([app.maps.name, app.world.map.bounds, app.camera.x, app.camera.y]).toEqual(["", null, -1, 0]);
  });

  it("tells what is to be sent when others are selected, lets go of the robot, forgets values", () => {
    const app = open();
    app.selection.set(["r0"]);
    app.driving.stick(1, 0);
    socket().says({ type: "details", time: 1, robots: [detail("r0")] });
    app.selection.set(["r1"]);
    expect([app.driving.isDriving, app.readouts.details]).toEqual([false, []]);
    expect(socket().of("view").map((v) => (v.view as { selected: string[] }).selected)).toEqual([["r0"], ["r1"]]);
    app.settings.toggleLayer("odometry");
    expect(socket().of("view").at(-1)!.view).toMatchObject({ odometry: true });
  });

  it("marks what devices of the selected have found, and no longer when there is nothing", () => {
    const app = open();
    app.selection.set(["r0"]);
    const reading = { device: "finder", about: "", columns: ["id"], rows: [["7"]], more: 0, marks: [[1, 0.5, "7"]] as [number, number, string][], commands: [] };
    socket().says({ type: "details", time: 1, robots: [{ ...detail("r0"), devices: [reading, { ...reading, marks: [] }] }] });
    expect([...app.world.marks]).toEqual([["r0", [[1, 0.5, "7"]]]]);
    socket().says({ type: "details", time: 2, robots: [detail("r0")] });
    expect(app.world.marks.size).toBe(0);
  });

  it("holds nothing and drives nothing when the connection is lost", () => {
    const app = open();
    app.selection.set(["r0"]);
    app.driving.stick(1, 0);
    app.touch.grab(0);
    app.touch.drag(0, 0, 10, 0);
    socket().onclose({ code: 1006, reason: "" });
    expect([app.session.status, app.driving.isDriving, app.drag.isHolding, app.world.dragged.size]).toEqual(["lost", false, false, 0]);
  });

  it("shows no dialog above the reason why it was refused, and begins anew with another token", () => {
    const app = open();
    app.panels.open("help");
    socket().onclose({ code: WRONG_TOKEN, reason: "wrong" });
    expect([app.panels.dialog, app.session.wantsToken, app.session.reason]).toEqual(["none", true, "wrong"]);
    app.useToken("other");
    socket().onopen();
    expect([socket().sent[0].token, tokens]).toEqual(["other", ["other"]]);
  });

  it("asks for a world when there is none, and not those who look on", () => {
    const start = { models: [], port: 1, verbose: false, warn_unsupported: false } as never;
    const app = open(["r0"], { start });
    expect(app.panels.dialog).toBe("start");
    expect(app.notices.toasts).toEqual([]);
    socket().says({ type: "started" });
    expect([app.panels.dialog, app.session.start, app.viewpoint.fitted]).toEqual(["none", null, false]);
    expect(app.notices.toasts.length).toBe(1);
    expect(open(["r0"], { start, read_only: true }).panels.dialog).toBe("none");
  });

  it("gives its hint once in the life of a browser", () => {
    const status = { type: "status", driven: [], interfaces: [] };
    const hints = (more: object = {}) => {
      const app = open();
      socket().says({ ...status, ...more } as never);
      return app.notices.toasts.length;
    };
    expect(hints({ timeline: { first: 0, last: 1, replay: "run.mcap" } })).toBe(0); // nothing can be moved or driven there
    expect([hints(), hints()]).toEqual([1, 0]);
  });

  it("is plainer on a weak machine, unless somebody has chosen since", () => {
    const app = open(["r0"], { graphics: "lite" });
    expect([app.settings.layers.trails, app.world.layers.trails]).toEqual([false, false]);
    expect(socket().of("view").length).toBe(1); // what the simulator sends follows
    app.settings.toggleLayer("trails");
    socket().says(welcome({ graphics: "lite" }));
    expect(app.world.layers.trails).toBe(true);
  });

  it("shows what was let go where the simulator has it, as soon as a frame knows of it", async () => {
    const app = open();
    app.touch.grab(0);
    app.touch.drag(0, 0, 10, 0);
    app.touch.drop(true);
    await settle();
    expect(app.world.dragged.size).toBe(1);
    show(1, 2, [[5, 5, 0], [1, 0, 0], [2, 0, 0]]); // prettier-ignore
    expect([app.world.dragged.size, app.world.pose(0)]).toEqual([0, [5, 5, 0]]);
  });

  it("is drawn again for whatever changes it", () => {
    const app = open();
    const changes: (() => void)[] = [
      () => app.settings.setTheme("dark"),
      () => app.viewpoint.home(),
      () => app.viewpoint.pan(1, 1),
      () => app.viewpoint.zoom(2),
      () => app.viewpoint.zoomAt(1, 1, 2),
      () => app.viewpoint.goTo(1, 1),
      () => app.viewpoint.followRobot("r0"),
      () => app.selection.set(["r0"]),
      () => app.selection.hover(1),
      () => app.tools.set("measure"),
      () => void app.tools.box(0, 0, 9, 9, false),
      () => app.probe.show("grid"),
      () => app.drag.nudge([0], 0.1, 0),
    ];
    for (const change of changes) {
      repaint();
      change();
      expect([String(change), repaints.length]).toEqual([String(change), 1]);
    }
    app.probe.show(null);
  });

  it("begins trails anew when they are shown again, and only then", () => {
    const app = open(["r0"]);
    const { trails } = app.world;
    app.settings.toggleLayer("grid");
    expect(trails.count).toBe(1);
    app.settings.toggleLayer("trails");
    expect(trails.count).toBe(1);
    app.settings.toggleLayer("trails");
    expect(trails.count).toBe(0);
  });

  it("lists what was written, and lets the browser save it from the address that the simulator names", async () => {
    const app = open();
    socket().says({ type: "files", paths: ["/runs/a.mcap", "/runs/b.mp4"] });
    app.notices.hand("recorded: ", "/runs/a.mcap");
    expect([app.written.paths.length, app.notices.toasts[0].file, app.notices.toasts[0].text]).toEqual([2, "/runs/a.mcap", "recorded: /runs/a.mcap"]);
    const done = app.written.download("/runs/a.mcap");
    const { id } = socket().of("download").at(-1)!;
    socket().says({ type: "ok", id: id!, result: "file/abc" });
    await done;
    expect([saved, socket().of("download").map((d) => d.file)]).toEqual([[["file/abc", "a.mcap"]], ["/runs/a.mcap"]]);
  });

  it("takes the log, the state and a map that cannot be had", async () => {
    const app = open();
    socket().says({ type: "log", lost: 1, lines: [{ time: 0, level: "error", source: "s", text: "t" }] });
    socket().says({ type: "status", driven: [{ robot: "r0", sources: ["tcp"] }], interfaces: [] } as never);
    socket().says(schema(["r0"], [], 2, [0, 0], mapInfo("map/1")));
    show(2, 2, [[0, 0, 0]]);
    await settle();
    expect([app.log.warnings, app.session.clients.r0, app.notices.toasts.at(-1)!.text]).toEqual([1, ["tcp"], "map/1: 404"]);
    app.commands.simple("log");
    expect([app.log.warnings, app.settings.showLog]).toEqual([0, true]);
  });
});

describe("gestures", () => {
  it("move, turn and follow what is under them", () => {
    const app = open();
    const at = app.camera.toScreen(1, 0);
    const row = app.touch.pick(...at);
    expect([row, app.touch.mayTouch(), app.touch.tool]).toEqual([1, true, "select"]);
    app.touch.select([0, 1], "set");
    app.touch.grab(row);
    app.touch.drag(...at, at[0] + app.camera.scale, at[1]);
    expect([app.world.pose(0)[0], app.world.pose(1)[0], app.world.pose(2)[0]].map((x) => +x.toFixed(3))).toEqual([1, 2, 2]);
    app.touch.turnTo(...app.camera.toScreen(1, 5));
    expect(app.world.pose(0)[2]).toBeCloseTo(Math.PI / 2);
    app.touch.drop(true);
    expect(app.drag.isHolding).toBe(false);
    app.touch.turnBy(2, 0.5);
    expect(socket().of("move").at(-1)!.to).toMatchObject([{ name: "r2", th: 0.5 }]);
    app.touch.followRow(2);
    expect([app.viewpoint.follow, app.touch.isFollowing]).toEqual(["r2", true]);
  });

  it("select what is in a box, hover, measure, pan and zoom", () => {
    const app = open();
    const from = app.camera.toScreen(-0.5, 0.5);
    app.touch.box(...from, ...app.camera.toScreen(1.5, -0.5), true);
    expect([app.selection.names, app.touch.isSelected(1), app.touch.isSelected(2)]).toEqual([["r0", "r1"], true, false]);
    app.touch.hover(2);
    expect(app.selection.hoverName).toBe("r2");
    const drawn: unknown[] = [];
    app.hand = (_, to) => void drawn.push(to);
    app.tools.set("measure");
    app.touch.use(0, 0, 50, 50, true, false);
    expect(drawn).toEqual([app.camera.toWorld(50, 50)]);
    app.touch.zoomAt(50, 50, 2);
    const { x, scale } = app.camera;
    app.touch.pan(scale, 0);
    expect(app.camera.x).toBeCloseTo(x - 1);
    app.touch.use(0, 0, 0, 0, true, false); // nothing is to be placed
  });
});

describe("keys", () => {
  const asked = async (type: string) => {
    await settle();
    return socket().of(type).length;
  };

  it("do what they are for, and leave the others to the browser", async () => {
    const app = open();
    for (const [name, type] of [[" ", "pause"], [".", "step"], ["]", "speed"], ["[", "speed"]] as const) {
      const before = await asked(type);
      expect(app.commands.keyDown(key(name))).toBe(true);
      expect([name, await asked(type)]).toEqual([name, before + 1]);
    }
    for (const [name, type] of [["p", "reset"], ["r", "reload"], ["z", "undo"], ["y", "redo"]] as const) {
      app.commands.keyDown(key(name, { ctrl: true }));
      expect(await asked(type)).toBe(1);
    }
    app.commands.keyDown(key("Z", { ctrl: true, shift: true }));
    expect(await asked("redo")).toBe(2);
    expect(app.commands.keyDown(key("F7"))).toBe(false);
    expect(app.commands.keyDown(key(" ", { onButton: true }))).toBe(false);
    expect(app.commands.keyDown(key("p", { elsewhere: true }))).toBe(false);
    expect(await asked("pause")).toBe(1);
  });

  it("held do no more than once, but for steps and nudges", async () => {
    const app = open();
    app.commands.keyDown(key(" ", { repeat: true }));
    app.commands.keyDown(key(".", { repeat: true }));
    app.selection.set(["r1"]);
    app.commands.keyDown(key("w", { repeat: true }));
    expect([await asked("pause"), await asked("step"), await asked("move")]).toEqual([0, 1, 1]);
  });

  it("arrows drive who is selected, else they pan", () => {
    const app = open();
    const { x } = app.camera;
    app.commands.keyDown(key("ArrowRight"));
    expect(app.camera.x).toBeGreaterThan(x);
    app.selection.set(["r0"]);
    app.commands.keyDown(key("ArrowUp"));
    app.commands.keyDown(key("ArrowUp", { repeat: true }));
    expect(socket().of("drive").map((d) => d.on)).toEqual([true]);
    app.driving.release("ArrowUp");
    expect(socket().of("drive").map((d) => d.on)).toEqual([true, false]);
    app.driving.stick(1, 0);
    app.commands.keyDown(key("x"));
    expect(app.driving.isDriving).toBe(false);
  });

  it("Escape closes a dialog, then ends a gesture, a tool, following, the selection", () => {
    const app = open();
    let gestures = 1;
    app.painter.stage = { renderer: "x", drawNow: () => {}, settle: () => false, picture: () => Promise.resolve(null), cancelGesture: () => gestures-- > 0 };
    app.selection.set(["r0"]);
    app.viewpoint.followRobot("r0");
    app.tools.set("measure");
    app.panels.open("add");
    const state = () => [app.panels.dialog, app.tools.tool, app.viewpoint.follow, app.selection.names.length];
    const after: unknown[] = [];
    for (let i = 0; i < 5; i++) {
      app.commands.keyDown(key("Escape"));
      after.push(state());
    }
    expect(after).toEqual([
      ["none", "measure", "r0", 1],
      ["none", "measure", "r0", 1],
      ["none", "select", "r0", 1],
      ["none", "select", null, 1],
      ["none", "select", null, 0],
    ]);
    app.panels.dialog = "start"; // it is no answer to a key: the simulator waits
    app.commands.keyDown(key("Escape"));
    expect(app.panels.dialog).toBe("start");
  });

  it("show, hide and open", () => {
    const app = open();
    const layers = { ...app.settings.layers };
    app.commands.keyDown(key("g"));
    app.commands.keyDown(key("2", { alt: true }));
    app.commands.keyDown(key("j"));
    app.commands.keyDown(key("r"));
    expect([app.settings.layers.grid, app.probe.what, app.panels.side, app.tools.tool]).toEqual([!layers.grid, "clearance", false, "measure"]);
    app.commands.keyDown(key("r"));
    app.probe.show(null);
    expect(app.tools.tool).toBe("select");
    for (const [name, ctrl, dialog] of [["?", false, "help"], ["l", true, "map"], ["g", true, "sequence"], ["q", true, "exit"], ["+", false, "add"]] as const) {
      app.panels.close();
      app.commands.keyDown(key(name, { ctrl }));
      expect(app.panels.dialog).toBe(dialog);
    }
  });

  it("select, follow, clone and remove; removing many is asked about", async () => {
    const app = open(["a", "b", "c", "d", "e", "f"]);
    app.commands.keyDown(key("c"));
    expect(app.viewpoint.follow).toBe(null);
    app.commands.keyDown(key("a", { ctrl: true }));
    app.commands.keyDown(key("c"));
    expect([app.selection.names.length, app.viewpoint.follow]).toEqual([6, "a"]);
    app.commands.keyDown(key("h"));
    expect(app.viewpoint.follow).toBe(null);
    app.commands.keyDown(key("d", { ctrl: true }));
    expect(await asked("clone")).toBe(1);
    app.selection.set(["a", "b", "c", "d", "e", "f"]);
    app.commands.keyDown(key("Delete"));
    expect([app.panels.dialog, await asked("remove")]).toEqual(["remove", 0]);
    app.panels.close();
    app.selection.set(["a", "b", "c", "d", "e"]);
    app.commands.keyDown(key("Delete"));
    expect([app.panels.dialog, await asked("remove")]).toEqual(["none", 1]);
    app.selection.set([]);
    app.commands.keyDown(key("Delete"));
    expect(await asked("remove")).toBe(1);
  });
});

it("a map that was taken closes the dialog of maps, one that was not leaves it open", async () => {
  const answers = [new Response("no map", { status: 422 }), new Response("ok")];
  const app = made({ fetch: () => Promise.resolve(answers.shift()!) });
  app.panels.dialog = "map";
  await app.upload([new File(["x"], "a.map")]);
  expect(app.panels.dialog).toBe("map");
  await app.upload([new File(["x"], "a.map")]);
  expect(app.panels.dialog).toBe("none");
});
