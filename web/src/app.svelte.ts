// The page's heart: what it knows of the simulator, what is selected and shown, and what hands and keys bring about.

import { zipSync } from "fflate";
import {
  FASTEST,
  PAUSED,
  type BodyInfo,
  type CatalogResult,
  type DebugResult,
  type Detail,
  type InterfaceState,
  type LogEntry,
  type Model,
  type Placement,
  type Push,
  type Schema,
  type StartOffer,
  type Status as StatusMessage,
  type View,
  type Welcome,
} from "./generated/messages";
import { Driver, HeldKeys, type Robot } from "./hands/driving";
import type { Hands } from "./hands/gestures";
import { actionOf, type Action, type Simple } from "./hands/keys";
import { Connection, WRONG_TOKEN, type Ask, type Status } from "./net/connection";
import { decodeMap, NO_MAP } from "./net/frames";
import { bundle, bundleName } from "./net/bundle";
import { count, shown } from "./ui/text";
import { type Box, Camera } from "./view/camera";
import { defaultLayers, type DebugName, type LayerName, type Layers } from "./view/layers";
import { DARK, LIGHT } from "./view/palette";
import type { Drawn } from "./view/renderer";
import { World } from "./view/world";

/** Files of maps and worlds that can be sent. */
export const WORLD_FILES =
  ".map,.world,.wld,.yaml,.yml,.json,.geojson,.png,.pgm,.pbm,.ppm,.pnm,.bmp,.gif,.jpg,.jpeg,.tif,.tiff,.webp,.svg,.dxf,.zip";

export type Dialog = "none" | "start" | "add" | "map" | "help" | "about" | "sequence" | "exit" | "remove";
export type Tool = "select" | "measure" | "place";

export interface LogLine extends LogEntry {
  number: number;
}

export interface Toast {
  number: number;
  text: string;
  bad: boolean;
}

/** Values of the inspector's charts, one row a sample. */
export interface History {
  time: number[];
  v: number[];
  w: number[];
  nearest: (number | null)[];
  error: number[];
}

export interface Stage {
  drawNow(): void;
  picture(kind: "png" | "jpeg"): Promise<Blob | null>;
  renderer: string;
}

/** The simulator takes no larger uploads, bytes (MAX_UPLOAD of servers/web.py). */
export const MAX_UPLOAD = 64 * 1024 * 1024;
/** Removing more than these is asked about: nothing brings them back. */
export const ASK_ABOVE = 5;
/** Characters of a message at the edge of the window. */
const MAX_TOAST = 400;
const KEPT_LINES = 2000;
const KEPT_SAMPLES = 300;
/** Moves are sent no more often than every so many ms. */
const MOVE_PERIOD = 33;
/** Bodies in one message. */
const AT_ONCE = 300;
const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
export const COMMON_MODELS = ["p3dx", "amigo", "p3at", "peoplebot", "patrolbot-sh", "powerbot", "pioneer-lx", "seekur", "seekurjr", "box"];

export class App implements Hands {
  readonly world = new World();
  readonly camera = new Camera();
  readonly connection: Connection;
  stage: Stage | null = null;
  drawn: Drawn = { bodies: 0, fans: 0, points: 0, sonar: 0 };
  /** Main-thread time of the last pictures, ms. */
  costs: number[] = [];

  status = $state<Status>("connecting");
  reason = $state("");
  /** The token is missing or wrong: there is a field to paste it. */
  wantsToken = $state(false);
  welcome = $state<Welcome | null>(null);
  start = $state<StartOffer | null>(null);
  bodies = $state.raw<BodyInfo[]>([]);
  models = $state.raw<Model[]>([]);
  robots = $state(0);
  mapName = $state("");
  mapSource = $state("");
  busy = $state("");
  selection = $state.raw<string[]>([]);
  details = $state.raw<Detail[]>([]);
  histories = new Map<string, History>();
  historyVersion = $state(0);
  log = $state.raw<LogLine[]>([]);
  lostLines = $state(0);
  warnings = $state(0);
  info = $state.raw({ time: 0, ratio: 1, stepMs: 0, paused: false, fastest: false, speed: 1, tick: 0 });
  stats = $state.raw<StatusMessage | null>(null);
  clients = $state.raw<Record<string, string[]>>({});
  layers = $state<Layers>(defaultLayers());
  hiddenModels = $state.raw<string[]>([]);
  debug = $state<DebugName | null>(null);
  dialog = $state<Dialog>("none");
  tool = $state<Tool>("select");
  placing = $state<{ model: string; count: number; name: string } | null>(null);
  follow = $state<string | null>(null);
  pointer = $state.raw<[number, number] | null>(null);
  hoverName = $state("");
  scale = $state(1);
  showLog = $state(false);
  showSide = $state(window.innerWidth >= 800);
  showStick = $state(false);
  theme = $state<"light" | "dark">("light");
  colorBy = $state<"model" | "robot">("model");
  rendererChoice = $state<"auto" | "webgl2" | "canvas2d">("auto");
  renderer = $state("");
  toasts = $state.raw<Toast[]>([]);
  catalog = $state.raw<CatalogResult | null>(null);
  sequence = $state.raw<{ interval: number; count: number } | null>(null);

  private driver: Driver;
  private keys = new HeldKeys();
  private grabbed: { rows: number[]; row: number; from: Map<number, [number, number, number]> } | null = null;
  private lastMove = 0;
  private nudges = 0;
  private hinted = false;
  private release: number | null = null;
  private moveTimer = 0;
  private serial = 0;
  private fitted = false;
  private firstView: Box | null = null;
  /** Whether a hand has chosen another part of the world to look at. */
  private moved = false;
  private mapUrl: string | null = null;
  private pendingSchema: Schema | null = null;
  private waiting = false;
  private lastInfo = 0;
  private debugTimer = 0;
  private sequenceTimer = 0;
  private pictures: Record<string, Uint8Array<ArrayBuffer>> = {};
  private settleTimer = 0;
  private drawAgain = false;

  constructor(
    url: string,
    token: string,
    private keepToken: (token: string) => void = () => {},
  ) {
    this.connection = new Connection(url, token, {
      status: (status, reason) => this.connected(status, reason),
      message: (message) => this.receive(message),
      frame: () => this.redraw(),
    });
    this.driver = new Driver((command) => {
      this.connection.request({ type: "drive", ...command }).catch((e: Error) => {
        this.letGo();
        this.fail(e);
      });
    });
    this.restore();
    this.connection.view = this.view();
  }

  get readOnly(): boolean {
    return this.welcome?.read_only ?? true;
  }

  get interfaces(): InterfaceState[] {
    return this.stats?.interfaces ?? [];
  }

  // -- settings that stay

  private restore(): void {
    let saved: Record<string, unknown> = {};
    try {
      saved = JSON.parse(localStorage.getItem("botyard") ?? "{}");
    } catch {
      // nothing was kept
    }
    const dark = window.matchMedia?.("(prefers-color-scheme: dark)").matches;
    this.theme = saved.theme === "dark" || (!saved.theme && dark) ? "dark" : "light";
    this.layers = { ...defaultLayers(), ...((saved.layers as Layers) ?? {}) };
    if (saved.colorBy === "robot") this.colorBy = "robot";
    if (saved.renderer === "webgl2" || saved.renderer === "canvas2d") this.rendererChoice = saved.renderer;
    if (typeof saved.log === "boolean") this.showLog = saved.log;
    this.hinted = saved.hinted === true;
    this.apply();
  }

  private keep(): void {
    const kept = { theme: this.theme, layers: this.layers, colorBy: this.colorBy, renderer: this.rendererChoice, log: this.showLog, hinted: this.hinted };
    try {
      localStorage.setItem("botyard", JSON.stringify(kept));
    } catch {
      // private windows have no storage
    }
  }

  /** Settings take effect. */
  private apply(): void {
    const { world } = this;
    world.layers = { ...this.layers };
    world.palette = this.theme === "dark" ? DARK : LIGHT;
    world.colorBy = this.colorBy;
    world.hidden = new Set(this.hiddenModels);
    world.paletteVersion++;
    document.documentElement.dataset.theme = this.theme;
    this.redraw();
  }

  setTheme(theme: "light" | "dark"): void {
    this.theme = theme;
    this.apply();
    this.keep();
  }

  setColors(by: "model" | "robot"): void {
    this.colorBy = by;
    this.apply();
    this.keep();
  }

  setRenderer(choice: "auto" | "webgl2" | "canvas2d"): void {
    this.rendererChoice = choice;
    this.keep();
  }

  toggleLayer(name: LayerName): void {
    this.layers[name] = !this.layers[name];
    this.apply();
    this.keep();
    this.tellView();
    if (name === "trails" && this.layers.trails) this.world.trails.clear();
  }

  toggleModel(name: string): void {
    const hidden = new Set(this.hiddenModels);
    if (!hidden.delete(name)) hidden.add(name);
    this.hiddenModels = [...hidden];
    this.apply();
  }

  toggleLog(): void {
    this.showLog = !this.showLog;
    this.warnings = 0;
    this.keep();
  }

  // -- the simulator's side

  private connected(status: Status, reason: string): void {
    this.status = status;
    this.reason = reason;
    this.wantsToken = status === "refused" && this.connection.refusal === WRONG_TOKEN;
    if (status === "refused") this.dialog = "none"; // what is said about it must not lie under one
    if (status !== "open") {
      this.letGo();
      this.grabbed = null;
      this.world.dragged.clear();
    }
  }

  useToken(token: string): void {
    this.keepToken(token);
    this.connection.useToken(token);
  }

  private receive(message: Push): void {
    if (message.type === "welcome") this.welcomed(message);
    else if (message.type === "started") {
      this.start = null;
      if (this.dialog === "start") this.dialog = "none";
      this.fitted = false;
      this.hint();
    } else if (message.type === "schema") {
      // it counts from the first frame on that bears its number: until then the old one explains what is shown
      this.pendingSchema = message;
      if (!this.world.frame) this.setSchema(message);
    } else if (message.type === "map") void this.fetchMap(message.url, message.name, message.source, message.view ?? null);
    else if (message.type === "status") {
      this.stats = message;
      this.clients = Object.fromEntries(message.driven.map((c) => [c.robot, c.sources]));
    } else if (message.type === "details") this.detailed(message.time, message.robots);
    else if (message.type === "log") this.logged(message.lines, message.lost);
  }

  private welcomed(message: Welcome): void {
    const first = this.welcome === null;
    this.welcome = message;
    this.log = [];
    this.start = message.start;
    if (message.start && !message.read_only) {
      this.dialog = "start";
      void this.loadCatalog();
    } else {
      if (this.dialog === "start") this.dialog = "none";
      this.hint();
    }
    if (first && message.graphics === "lite") {
      this.layers = defaultLayers(true);
      this.apply();
    }
  }

  private setSchema(schema: Schema): void {
    const [ox, oy] = this.world.schema?.origin ?? schema.origin;
    const grabbed = this.grabbed;
    const held = new Map(grabbed?.rows.map((row) => [this.bodies[row].name, grabbed.from.get(row)!]));
    const main = grabbed ? this.bodies[grabbed.row].name : "";
    this.camera.x += ox - schema.origin[0];
    this.camera.y += oy - schema.origin[1];
    this.world.setSchema(schema);
    const before = new Set(this.bodies.map((b) => b.name));
    this.bodies = schema.bodies;
    this.models = schema.models;
    this.robots = schema.robots;
    const names = new Set(schema.bodies.map((b) => b.name));
    // a name that nobody had before may be that of a robot that was just added
    this.setSelection(this.selection.filter((n) => names.has(n) || !before.has(n)));
    if (grabbed) this.regrab(main, held, ox - schema.origin[0], oy - schema.origin[1]);
    this.hover(-1);
    if (this.follow && !names.has(this.follow)) this.follow = null;
  }

  /** Other robots came or went while a hand holds some: it goes on holding those, under their new numbers. */
  private regrab(main: string, held: Map<string, [number, number, number]>, dx: number, dy: number): void {
    const row = this.world.rows.get(main);
    const from = new Map<number, [number, number, number]>();
    for (const [name, [x, y, th]] of held) {
      const now = this.world.rows.get(name);
      if (now !== undefined) from.set(now, [x + dx, y + dy, th]);
    }
    this.grabbed = row === undefined ? null : { rows: [...from.keys()], row, from };
    if (!this.grabbed) void this.hold([...from.keys()].map((r) => this.bodies[r].name), false);
  }

  private async fetchMap(url: string, name: string, source: string, view: Box | null): Promise<void> {
    this.firstView = view;
    this.mapUrl = url;
    this.mapName = url ? name : "";
    this.mapSource = source;
    if (!url) {
      this.world.setMap(NO_MAP);
      this.fitted = false;
      this.redraw();
      return;
    }
    this.busy = `loading ${shown(name)}`;
    try {
      const answer = await fetch(url, { headers: { authorization: `Bearer ${this.connection.token}` } });
      if (!answer.ok) throw new Error(await answer.text());
      const map = decodeMap(await answer.arrayBuffer());
      if (url !== this.mapUrl) return; // another one was put in place meanwhile
      this.world.setMap(map);
      this.fitted = false;
      this.redraw();
    } catch (error) {
      this.fail(error as Error);
    } finally {
      this.busy = "";
    }
  }

  private detailed(time: number, robots: Detail[]): void {
    this.details = robots;
    for (const r of robots) {
      let h = this.histories.get(r.name);
      if (!h || (h.time.length && time < h.time[h.time.length - 1])) {
        h = { time: [], v: [], w: [], nearest: [], error: [] };
        this.histories.set(r.name, h);
      }
      if (time === h.time[h.time.length - 1]) continue;
      h.time.push(time);
      h.v.push(Math.hypot(r.velocity[0], r.velocity[1]) * (r.velocity[0] < 0 ? -1 : 1));
      h.w.push((r.velocity[2] * 180) / Math.PI);
      h.nearest.push(r.nearest);
      h.error.push(r.odometry_error[0]);
      if (h.time.length > KEPT_SAMPLES) for (const list of Object.values(h)) (list as unknown[]).shift();
    }
    this.historyVersion++;
  }

  private logged(lines: LogEntry[], lost: number): void {
    this.lostLines += lost;
    const fresh = lines.map((line) => ({ ...line, number: this.serial++ }));
    this.log = [...this.log, ...fresh].slice(-KEPT_LINES);
    if (!this.showLog) this.warnings += lines.filter((l) => l.level === "warning" || l.level === "error").length;
  }

  /** Ask the simulator for something and say so when it refuses. */
  async ask<T = unknown>(request: Ask, done = ""): Promise<T | undefined> {
    try {
      const result = await this.connection.request<T>(request);
      if (done) this.say(done);
      return result;
    } catch (error) {
      this.fail(error as Error);
      return undefined;
    }
  }

  say(text: string, bad = false, seconds = bad ? 7 : 3.5): void {
    const toast = { number: this.serial++, text: shown(text, MAX_TOAST), bad };
    this.toasts = [...this.toasts.slice(-3), toast];
    window.setTimeout(() => (this.toasts = this.toasts.filter((t) => t !== toast)), seconds * 1000);
  }

  /** Once in the life of a browser. */
  private hint(): void {
    if (this.hinted || this.readOnly) return;
    this.hinted = true;
    this.keep();
    this.say("Click a robot to see what it senses, drag it to move it, drive it with the arrow keys. ? shows all keys.", false, 10);
  }

  fail(error: Error): void {
    this.say(error.message, true);
  }

  async loadCatalog(): Promise<void> {
    this.catalog = (await this.ask<CatalogResult>({ type: "catalog" })) ?? this.catalog;
  }

  // -- drawing

  /** Draw soon: at the next repaint of the window. */
  redraw(): void {
    if (this.waiting) {
      this.drawAgain = true;
      return;
    }
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawAgain = false;
      this.frame();
    });
  }

  private frame(): void {
    const began = performance.now();
    const { world, camera, connection } = this;
    const frame = connection.takeFrame();
    if (frame && this.release !== null && frame.number > this.release && !this.grabbed) {
      this.release = null;
      world.dragged.clear();
    }
    const next = this.pendingSchema;
    if (frame && next?.number === frame.schema) {
      this.pendingSchema = null;
      this.setSchema(next);
    }
    if (frame) world.setFrame(frame);
    if (!this.fitted && world.frame) {
      camera.fit(this.whole());
      this.moved = false;
      this.fitted = world.frame !== null && (this.mapUrl === "" || world.map !== NO_MAP);
    }
    const row = this.follow !== null ? world.rows.get(this.follow) : undefined;
    if (row !== undefined && world.frame) [camera.x, camera.y] = world.pose(row);
    this.stage?.drawNow();
    if (frame) {
      connection.acknowledge(frame.number);
      this.costs.push(performance.now() - began);
      if (this.costs.length > 200) this.costs.shift();
      const now = performance.now();
      const paused = (frame.flags & PAUSED) !== 0;
      if (now - this.lastInfo > 90 || paused !== this.info.paused) {
        this.lastInfo = now;
        const { time, ratio, stepMs, tick } = frame;
        this.info = { time, ratio, stepMs, tick, paused, fastest: (frame.flags & FASTEST) !== 0, speed: frame.speed };
      }
    }
    this.scale = camera.scale;
    window.clearTimeout(this.settleTimer);
    this.settleTimer = window.setTimeout(() => this.settled?.() && this.redraw(), 80);
    if (this.drawAgain) this.redraw();
  }

  /** Set by the stage: the view has come to rest; whether it wants to draw again. */
  settled: (() => boolean) | null = null;

  /** The window has another size: what was shown whole stays so. */
  resized(): void {
    if (!this.moved && this.fitted) this.camera.fit(this.whole());
  }

  /** What is shown at first: what the world file says, else all of it. */
  private whole(): Box {
    return this.firstView ?? this.world.bounds();
  }

  home(): void {
    this.follow = null;
    this.moved = false;
    this.camera.fit(this.whole());
    this.redraw();
  }

  zoom(factor: number): void {
    this.moved = true;
    this.camera.zoom(factor);
    this.redraw();
  }

  // -- selection

  private view(): View {
    return {
      readings: this.layers.laser || this.layers.sonar ? (this.layers.selectedOnly ? "selected" : "all") : "none",
      odometry: this.layers.odometry,
      velocity: this.layers.velocity,
      selected: this.selection.slice(0, 50),
    };
  }

  private tellView(): void {
    this.connection.setView(this.view());
  }

  setSelection(names: string[], quiet = false): void {
    const changed = names.length !== this.selection.length || names.some((n, i) => n !== this.selection[i]);
    this.selection = names;
    this.world.selected = new Set(names.flatMap((n) => this.world.rows.get(n) ?? []));
    if (changed) {
      this.details = this.details.filter((d) => names.includes(d.name));
      this.letGo();
      if (!quiet) this.tellView();
    }
    this.redraw();
  }

  isSelected(row: number): boolean {
    return this.world.selected.has(row);
  }

  select(rows: number[], mode: "set" | "add" | "toggle"): void {
    const names = rows.map((r) => this.bodies[r].name);
    if (mode === "set") this.setSelection(names);
    else if (mode === "add") this.setSelection([...new Set([...this.selection, ...names])]);
    else {
      const now = new Set(this.selection);
      for (const name of names) if (!now.delete(name)) now.add(name);
      this.setSelection([...now]);
    }
  }

  // -- hands

  mayTouch(): boolean {
    return !this.readOnly && this.status === "open";
  }

  pick(x: number, y: number): number {
    return this.world.pick(...this.camera.toWorld(x, y), 6 / this.camera.scale);
  }

  hover(row: number): void {
    if (row === this.world.hovered) return;
    this.world.hovered = row;
    this.hoverName = row >= 0 ? (this.bodies[row]?.name ?? "") : "";
    this.redraw();
  }

  grab(row: number): void {
    const rows = this.world.selected.has(row) ? [...this.world.selected] : [row];
    this.grabbed = { rows, row, from: new Map(rows.map((r) => [r, this.world.pose(r)])) };
    void this.hold(rows.map((r) => this.bodies[r].name), true);
  }

  private async hold(names: string[], on: boolean): Promise<void> {
    for (let i = 0; i < names.length; i += AT_ONCE) await this.ask({ type: "hold", names: names.slice(i, i + AT_ONCE), on });
  }

  drag(fromX: number, fromY: number, x: number, y: number): void {
    const [ax, ay] = this.camera.toWorld(fromX, fromY);
    const [bx, by] = this.camera.toWorld(x, y);
    this.place_grabbed((px, py, th) => [px + bx - ax, py + by - ay, th]);
  }

  turnTo(x: number, y: number): void {
    if (!this.grabbed) return;
    const [px, py, th] = this.grabbed.from.get(this.grabbed.row)!;
    const [wx, wy] = this.camera.toWorld(x, y);
    const turn = Math.atan2(wy - py, wx - px) - th;
    this.place_grabbed((qx, qy, heading) => [qx, qy, wrap(heading + turn)]);
  }

  private place_grabbed(to: (x: number, y: number, th: number) => [number, number, number]): void {
    if (!this.grabbed) return;
    for (const [row, from] of this.grabbed.from) this.world.dragged.set(row, to(...from));
    const pose = this.world.frame?.pose;
    if (pose) for (const [row, at] of this.world.dragged) pose.set(at, 3 * row);
    this.redraw();
    const wait = this.lastMove + MOVE_PERIOD - performance.now();
    window.clearTimeout(this.moveTimer);
    if (wait <= 0) this.sendMoves();
    else this.moveTimer = window.setTimeout(() => this.sendMoves(), wait);
  }

  private placements(): Placement[] {
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    return [...this.world.dragged].map(([row, [x, y, th]]) => ({ name: this.bodies[row].name, x: x + ox, y: y + oy, th }));
  }

  private sendMoves(): void {
    // many bodies are many messages, and come less often
    const to = this.placements();
    this.lastMove = performance.now() + (to.length / AT_ONCE) * MOVE_PERIOD;
    void this.move(to);
  }

  /** Put bodies somewhere; messages have a limit, so there may be several. The number of the last answer's frame. */
  private async move(to: Placement[]): Promise<number | undefined> {
    let number: number | undefined;
    for (let i = 0; i < to.length; i += AT_ONCE) number = await this.ask<number>({ type: "move", to: to.slice(i, i + AT_ONCE) });
    return number;
  }

  drop(keep: boolean): void {
    const grabbed = this.grabbed;
    if (!grabbed) return;
    this.grabbed = null;
    window.clearTimeout(this.moveTimer);
    if (!keep) for (const [row, from] of grabbed.from) this.world.dragged.set(row, from);
    const to = this.placements();
    const names = grabbed.rows.map((row) => this.bodies[row].name);
    this.moveAndRelease(to);
    void this.hold(names, false);
  }

  turnBy(row: number, angle: number): void {
    const rows = this.world.selected.has(row) ? [...this.world.selected] : [row];
    this.moveBy(rows, 0, angle);
  }

  /** Move bodies forward and turn them where they are. */
  private moveBy(rows: number[], forward: number, turn: number): void {
    if (!this.mayTouch() || !this.world.frame) return;
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const to = rows.map((row) => {
      const [x, y, th] = this.world.dragged.get(row) ?? this.world.pose(row);
      const at: [number, number, number] = [x + forward * Math.cos(th), y + forward * Math.sin(th), wrap(th + turn)];
      this.world.frame!.pose.set(at, 3 * row);
      this.world.dragged.set(row, at); // frames on their way do not know of it yet
      return { name: this.bodies[row].name, x: at[0] + ox, y: at[1] + oy, th: at[2] };
    });
    this.redraw();
    this.moveAndRelease(to);
  }

  /** Put bodies somewhere. Frames after the answer's show them there; until then, or until the next such move, the hand's word counts. */
  private moveAndRelease(to: Placement[]): void {
    const serial = ++this.nudges;
    this.release = null;
    void this.move(to).then((number) => {
      if (serial !== this.nudges) return;
      this.release = number ?? -1;
      this.redraw();
    });
  }

  pan(dx: number, dy: number): void {
    this.moved = true;
    this.follow = null;
    this.camera.pan(dx, dy);
    this.redraw();
  }

  get isFollowing(): boolean {
    return this.follow !== null;
  }

  zoomAt(x: number, y: number, factor: number): void {
    this.moved = true;
    if (this.isFollowing) this.camera.zoom(factor); // what it follows stays in the middle
    else this.camera.zoomAt(x, y, factor);
    this.redraw();
  }

  box(fromX: number, fromY: number, x: number, y: number, done: boolean): void {
    const from = this.camera.toWorld(fromX, fromY);
    const to = this.camera.toWorld(x, y);
    this.world.boxSelect = done ? null : { from, to };
    if (done && (fromX !== x || fromY !== y)) {
      const rows = this.world.within([Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])]);
      this.select(rows, "add");
    }
    this.redraw();
  }

  measure(fromX: number, fromY: number, x: number, y: number, done: boolean): void {
    const same = Math.hypot(x - fromX, y - fromY) < 3;
    this.world.measure = done && same ? null : { from: this.camera.toWorld(fromX, fromY), to: this.camera.toWorld(x, y) };
    this.redraw();
  }

  place(x: number, y: number, toX: number, toY: number, done: boolean): void {
    const placing = this.placing;
    const model = this.catalog?.models.find((m) => m.name === placing?.model);
    if (!placing || !model) return;
    const [wx, wy] = this.camera.toWorld(x, y);
    const th = Math.hypot(toX - x, toY - y) > 8 ? Math.atan2(y - toY, toX - x) : 0;
    this.world.preview = done ? null : { model, x: wx, y: wy, th };
    if (done) {
      const [ox, oy] = this.world.schema?.origin ?? [0, 0];
      const { name, count } = placing;
      void this.ask<string[]>({ type: "add", model: model.name, name, count, x: wx + ox, y: wy + oy, th }).then((names) => {
        if (names) this.say(`${names.map((n) => shown(n)).join(", ")} added`);
      });
      this.cancelTool();
    }
    this.redraw();
  }

  followRobot(name: string | null): void {
    this.moved = true;
    this.follow = name;
    this.redraw();
  }

  // the gestures call it by row
  followRow(row: number): void {
    this.followRobot(this.bodies[row].name);
  }

  cancelTool(): void {
    this.tool = "select";
    this.placing = null;
    this.world.preview = null;
    this.world.measure = null;
    this.redraw();
  }

  setTool(tool: Tool): void {
    this.cancelTool();
    this.tool = tool;
  }

  // -- driving

  /** The selected robot, if it can be driven. */
  driven(): Robot | null {
    const row = this.selection.length === 1 ? this.world.rows.get(this.selection[0]) : undefined;
    if (row === undefined || !this.world.schema || this.readOnly) return null;
    const model = this.world.model(row);
    return model.drives ? { name: this.selection[0], maxV: model.max_v, maxW: model.max_w, omni: model.omni } : null;
  }

  stick(forward: number, left: number, sideways = 0): void {
    const robot = this.driven();
    if (robot) this.driver.set(robot, forward, left, sideways);
  }

  letGo(): void {
    this.keys.clear();
    this.driver.release();
  }

  get isDriving(): boolean {
    return this.driver.driving !== null;
  }

  // -- keys

  keyDown(event: KeyboardEvent): void {
    // some dialogs are no answer to a key or button: the simulator asks
    if (isTyping(event.target) || this.dialog !== "none" || document.querySelector("dialog[open]")) {
      if (event.key === "Escape" && this.dialog !== "none" && this.dialog !== "start") this.dialog = "none";
      return;
    }
    const key = { key: event.key, ctrl: event.ctrlKey || event.metaKey, shift: event.shiftKey, alt: event.altKey };
    const action = actionOf(key, this.selection.length > 0, this.driven() !== null);
    if (!action) return;
    if (event.target instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter")) return;
    event.preventDefault();
    this.act(action, event.repeat);
  }

  keyUp(event: KeyboardEvent): void {
    if (!this.keys.release(event.key)) return;
    if (this.keys.any) this.stick(...this.keys.direction);
    else this.letGo();
  }

  private act(action: Action, repeat: boolean): void {
    if (action.do === "layer") this.toggleLayer(action.layer);
    else if (action.do === "debug") this.setDebug(this.debug === action.debug ? null : action.debug);
    else if (action.do === "nudge") this.moveBy([...this.world.selected], action.forward, action.turn);
    else if (action.do === "pan") this.pan(-action.x, -action.y);
    else if (action.do === "zoom") this.zoom(action.factor);
    else if (action.do === "arrow") {
      if (!repeat && this.keys.press(action.key)) this.stick(...this.keys.direction);
    } else if (!repeat || action.do === "step") this.simple(action.do);
  }

  simple(what: Simple): void {
    const names = this.selection;
    if (what === "pause") void this.ask({ type: this.info.paused ? "run" : "pause" });
    else if (what === "step") void this.ask({ type: "step", count: 1 });
    else if (what === "faster") this.changeSpeed(1);
    else if (what === "slower") this.changeSpeed(-1);
    else if (what === "home") this.home();
    else if (what === "follow") this.followRobot(this.follow ? null : (names[0] ?? null));
    else if (what === "cancel") this.cancel();
    else if (what === "remove") {
      if (names.length > ASK_ABOVE) this.openDialog("remove");
      else if (names.length) void this.removeAll([...names]);
    } else if (what === "clone") {
      const robots = new Set(this.bodies.slice(0, this.robots).map((b) => b.name));
      const some = names.filter((n) => robots.has(n));
      if (some.length < names.length) this.say(`${names.length - some.length} of ${names.length} are of the map: only robots are cloned`, !some.length);
      if (some.length) void this.ask<string[]>({ type: "clone", names: some }).then((added) => added && this.setSelection(added));
    } else if (what === "selectAll") this.setSelection(this.bodies.slice(0, this.robots).map((b) => b.name));
    else if (what === "help") this.dialog = "help";
    else if (what === "load") this.openDialog("map");
    else if (what === "reset") void this.ask({ type: "reset", names: null }, "all back to where they started");
    else if (what === "reload") void this.ask({ type: "reload" }, "map read again");
    else if (what === "snapshot") void this.savePicture("png");
    else if (what === "save") void this.saveWorld();
    else if (what === "sequence") this.dialog = "sequence";
    else if (what === "exit") this.dialog = "exit";
    else if (what === "add") this.openDialog("add");
    else if (what === "measure") this.setTool(this.tool === "measure" ? "select" : "measure");
    else if (what === "log") this.toggleLog();
    else if (what === "sidebar") this.showSide = !this.showSide;
    else if (what === "stop") {
      this.letGo();
      const robots = this.drivable;
      for (const name of robots) void this.ask({ type: "drive", name, on: true }).then(() => this.ask({ type: "drive", name, on: false }));
      if (robots.length > 1) this.say(`stop: ${count(robots.length, "robot")}`);
    }
  }

  async removeAll(names: string[]): Promise<void> {
    let gone = 0;
    for (let i = 0; i < names.length; i += AT_ONCE) {
      const some = names.slice(i, i + AT_ONCE);
      if ((await this.ask({ type: "remove", names: some })) !== undefined) gone += some.length;
    }
    if (gone) this.say(gone === 1 ? `${shown(names[0])} removed` : `${gone} removed`);
  }

  /** Those of the selection that drive: what stops and motors are about. */
  get drivable(): string[] {
    const robots = new Map(this.bodies.slice(0, this.robots).map((b) => [b.name, b.model]));
    return this.selection.filter((n) => {
      const model = robots.get(n);
      return model !== undefined && this.models[model]?.drives;
    });
  }

  /** Press the red buttons of all selected robots, or pull them out; their motors. It says of how many. */
  async switchAll(what: "estop" | "enable", on: boolean): Promise<void> {
    const names = this.drivable;
    let done = 0;
    let failed = "";
    for (let i = 0; i < names.length; i += AT_ONCE) {
      const some = names.slice(i, i + AT_ONCE);
      try {
        await this.connection.request({ type: what, names: some, on });
        done += some.length;
      } catch (error) {
        failed ||= (error as Error).message; // the others all the same: this may be an emergency
      }
    }
    const word = what === "enable" ? (on ? "motors on" : "motors off") : on ? "emergency stop" : "emergency stop released";
    if (failed) this.say(failed, true);
    if (done) this.say(`${word}: ${names.length === 1 ? shown(names[0]) : count(done, "robot")}`);
  }

  /** Set by the stage: undoes a gesture that is going on; whether there was one. */
  cancelGesture: (() => boolean) | null = null;

  private cancel(): void {
    if (this.cancelGesture?.()) return;
    if (this.tool !== "select") this.cancelTool();
    else if (this.follow) this.follow = null;
    else this.setSelection([]);
    this.redraw();
  }

  openDialog(dialog: Dialog): void {
    if (this.readOnly && dialog !== "help" && dialog !== "about") {
      this.say("this page may only look on", true);
      return;
    }
    this.dialog = dialog;
    if (dialog === "add" || dialog === "map" || dialog === "start") void this.loadCatalog();
  }

  changeSpeed(by: number): void {
    const { speed, fastest } = this.info;
    const index = fastest ? SPEEDS.length : SPEEDS.findIndex((s) => s >= speed - 1e-6);
    this.setSpeed(index + by >= SPEEDS.length ? 0 : SPEEDS[Math.max(0, index + by)]);
  }

  setSpeed(factor: number): void {
    void this.ask({ type: "speed", factor });
  }

  // -- maps and pictures

  /** Send a map or world: one file, or several that belong together, as one .zip. */
  async upload(files: readonly File[]): Promise<void> {
    const name = bundleName(files.map((f) => f.name));
    this.busy = `sending ${shown(name)}`;
    try {
      const size = files.reduce((sum, f) => sum + f.size, 0);
      if (size > MAX_UPLOAD) throw new Error(`${name}: ${(size / 2 ** 20).toFixed(0)} MiB; at most ${MAX_UPLOAD / 2 ** 20} MiB are taken`);
      const file = files.length === 1 ? files[0] : await bundle(files);
      const answer = await fetch(`upload?name=${encodeURIComponent(name)}`, {
        method: "POST",
        headers: { authorization: `Bearer ${this.connection.token}` },
        body: file,
      });
      if (!answer.ok) throw new Error(await answer.text());
      this.say(`${name} loaded`);
      if (this.dialog === "map") this.dialog = "none";
    } catch (error) {
      this.fail(error as Error);
    } finally {
      this.busy = "";
    }
  }

  /** Download the world as it is now: a scenario and its map. */
  async saveWorld(): Promise<void> {
    try {
      const answer = await fetch("scenario.zip", { headers: { authorization: `Bearer ${this.connection.token}` } });
      if (!answer.ok) throw new Error(await answer.text());
      download(await answer.blob(), `${this.mapName || "world"}-${stamp(this.info.time)}.zip`);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  async savePicture(kind: "png" | "jpeg"): Promise<void> {
    const blob = await this.stage?.picture(kind);
    if (blob) download(blob, `botyard-${stamp(this.info.time)}.${kind === "png" ? "png" : "jpg"}`);
  }

  startSequence(interval: number): void {
    this.pictures = {};
    this.sequence = { interval, count: 0 };
    const take = async () => {
      const blob = await this.stage?.picture("png");
      if (!blob || !this.sequence) return;
      const count = this.sequence.count + 1;
      this.pictures[`botyard-${String(count).padStart(5, "0")}.png`] = new Uint8Array(await blob.arrayBuffer());
      this.sequence = { interval, count };
      if (count >= 2000) this.stopSequence();
    };
    void take();
    this.sequenceTimer = window.setInterval(() => void take(), interval * 1000);
  }

  stopSequence(): void {
    window.clearInterval(this.sequenceTimer);
    const count = this.sequence?.count ?? 0;
    this.sequence = null;
    if (count) download(new Blob([zipSync(this.pictures, { level: 0 })], { type: "application/zip" }), "botyard-pictures.zip");
    this.pictures = {};
  }

  // -- looking into the engine

  setDebug(what: DebugName | null): void {
    this.debug = what;
    window.clearInterval(this.debugTimer);
    this.world.debug = null;
    this.redraw();
    if (!what) return;
    void this.look();
    this.debugTimer = window.setInterval(() => void this.look(), what === "rays" || what === "candidates" ? 300 : 2000);
  }

  private async look(): Promise<void> {
    const what = this.debug;
    if (!what || this.status !== "open") return;
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const [x0, y0, x1, y1] = this.camera.box();
    const name = this.selection[0] ?? this.bodies[0]?.name ?? "";
    const result = await this.ask<DebugResult>({ type: "debug", what, name, x0: x0 + ox, y0: y0 + oy, x1: x1 + ox, y1: y1 + oy });
    if (!result) this.setDebug(null);
    else if (this.debug === what) {
      this.world.debug = result;
      this.redraw();
    }
  }
}

export function wrap(angle: number): number {
  return Math.atan2(Math.sin(angle), Math.cos(angle));
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function stamp(time: number): string {
  return `${time.toFixed(1)}s`;
}

export function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
