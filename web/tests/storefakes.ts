// What stores need of others, as tests hand it to them.

import {
  Block, BLOCK_SIZE, FRAME_MAGIC, FRAME_VERSION, HEADER_SIZE, VERSION,
  type BodyInfo, type Detail, type MapInfo, type Model, type Schema, type Welcome,
} from "../src/generated/messages"; // prettier-ignore
import type { Ask } from "../src/net/connection";
import type { Frame } from "../src/net/frames";
import type { KeptValues } from "../src/stores/kept";

/** A simulator that writes down what it is asked, and answers as the test says: a value, or an Error to refuse. */
export class FakeSimulator {
  asked: Ask[] = [];
  answers: Partial<Record<Ask["type"], unknown>> = {};
  status = "open";
  readOnly = false;
  whyReadOnly = "this page may only look on";
  catalog: { models: Model[] } | null = null;
  refusal = 0;

  mayTouch(): boolean {
    return !this.readOnly && this.status === "open";
  }

  request<T = unknown>(request: Ask): Promise<T> {
    this.asked.push(request);
    const answer = this.answers[request.type];
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve((answer ?? null) as T);
  }

  async ask<T = unknown>(request: Ask): Promise<T | undefined> {
    return this.request<T>(request).catch(() => undefined);
  }

  loadCatalog(): Promise<void> {
    this.asked.push({ type: "catalog" });
    return Promise.resolve();
  }

  /** What was asked of one kind. */
  of<K extends Ask["type"]>(type: K): Extract<Ask, { type: K }>[] {
    return this.asked.filter((a): a is Extract<Ask, { type: K }> => a.type === type);
  }
}

/** Messages, as text; those that tell of something bad begin with "!". */
export class FakeNotices {
  said: string[] = [];
  say(text: string, bad = false): void {
    this.said.push(bad ? `!${text}` : text);
  }
  offer(text: string): void {
    this.say(`${text} [undo]`);
  }
  hand(done: string, path: string): void {
    this.say(`${done}${path} [download]`);
  }
  withdraw(): void {
    this.said.push("withdrawn");
  }
  fail(error: unknown): void {
    this.say(error instanceof Error ? error.message : String(error), true);
  }
}

export class FakeStorage implements KeptValues {
  values = new Map<string, string>();
  constructor(values: Record<string, string> = {}) {
    for (const [key, value] of Object.entries(values)) this.values.set(key, value);
  }
  getItem(key: string): string | null {
    return this.values.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.values.set(key, value);
  }
}

/** A browser that keeps nothing: it throws as soon as storage is named. */
export function noStorage(): KeptValues {
  throw new Error("SecurityError");
}

const SQUARE: [number, number][] = [[-0.2, -0.2], [0.2, -0.2], [0.2, 0.2], [-0.2, 0.2]]; // prettier-ignore

export function model(name: string, drives = true): Model {
  return {
    name, drives, description: "", color: "#888888", parts: [SQUARE], omni: false, lasers: [], max_v: 1, max_w: 2, problem: "", wheels: [], wheel_radius: 0,
  }; // prettier-ignore
}

export function body(name: string, which = 0, robot = true): BodyInfo {
  return { name, model: which, robot, port: 0, kind: robot ? "robot" : "thing", color: 0 };
}

/** A map whose walls are behind `url`; "": no map. */
export function mapInfo(url = "", more: Partial<MapInfo> = {}): MapInfo {
  return { url, name: url, source: "", bounds: null, view: null, ...more };
}

/** Robots of these names, then bodies of the map, which do not drive. */
export function schema(robots: string[], others: string[] = [], number = 1, origin: [number, number] = [0, 0], map = mapInfo()): Schema {
  const bodies = [...robots.map((n) => body(n)), ...others.map((n) => body(n, 1, false))];
  return { type: "schema", number, map, origin, dt: 0.1, bodies, models: [model("p3dx"), model("box", false)], robots: robots.length, groups: [] };
}

export function frame(poses: [number, number, number][], more: Partial<Frame> = {}): Frame {
  return {
    schema: 1, flags: 0, time: 1, tick: 10, number: 1, ratio: 1, stepMs: 0.1, speed: 1, pose: new Float32Array(poses.flat()),
    state: new Uint8Array(poses.length), odometry: null, velocity: null, readings: [], fields: [], steering: new Map(), ...more,
  }; // prettier-ignore
}

export function detail(name: string, v = 0, w = 0): Detail {
  return {
    name, model: "p3dx", clients: [], pose: [0, 0, 0], odometry: [0, 0, 0], odometry_error: [0.1, 0], velocity: [v, 0, w], command: [0, 0, 0],
    accel: [0, 0, 0], error: [0, 0, 0], motors: true, stalled: false, estop: false, volts: 12, charge: 80, charging: false, sensors: [],
    nearest: 1.5, gripper: "", port: 0, devices: [],
  }; // prettier-ignore
}

export function welcome(more: Partial<Welcome> = {}): Welcome {
  return { type: "welcome", version: VERSION, program: "botyard", read_only: false, audience: "", graphics: "full", page: 1, start: null, ...more };
}

/** The bytes of a frame that has poses only (layout: src/botyard/protocols/webgui/frames.py). */
export function frameBytes(schemaNumber: number, number: number, poses: [number, number, number][]): ArrayBuffer {
  const size = 12 * poses.length;
  const buffer = new ArrayBuffer(HEADER_SIZE + BLOCK_SIZE + size);
  const view = new DataView(buffer);
  view.setUint32(0, FRAME_MAGIC, true);
  view.setUint16(4, FRAME_VERSION, true);
  view.setUint16(6, 1, true);
  view.setUint32(8, schemaNumber, true);
  view.setUint32(28, number, true);
  view.setUint16(HEADER_SIZE, Block.POSE, true);
  view.setUint32(HEADER_SIZE + 4, poses.length, true);
  view.setUint32(HEADER_SIZE + 8, size, true);
  poses.flat().forEach((value, i) => view.setFloat32(HEADER_SIZE + BLOCK_SIZE + 4 * i, value, true));
  return buffer;
}

/** Let promises that are ready go on. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}
