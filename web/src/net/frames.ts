// Binary frames and maps (layout: src/botyard/protocols/webgui/frames.py). Columns are views of the message's bytes; nothing is copied.

import { Block, BLOCK_SIZE, FRAME_MAGIC, FRAME_VERSION, HEADER_SIZE, MAP_MAGIC } from "../generated/messages";

export interface Readings {
  group: number;
  /** Row of each sensor's robot. */
  robots: Uint32Array;
  /** Ranges in units of the group, sensor after sensor. */
  ranges: Uint16Array;
  /** Places in `ranges` of what reflects brightly. */
  bright: Uint32Array;
}

export interface Frame {
  schema: number;
  flags: number;
  time: number;
  tick: number;
  number: number;
  ratio: number;
  stepMs: number;
  speed: number;
  /** x, y, th of each body, relative to the origin of the schema. */
  pose: Float32Array;
  state: Uint8Array;
  odometry: Float32Array | null;
  velocity: Float32Array | null;
  readings: Readings[];
  /** Pheromone fields, in some of the frames. */
  fields: FieldLevels[];
  /** Angle of the steered axle by the row of its robot, rad. */
  steering: Map<number, number>;
}

export interface FieldLevels {
  /** Number of the field. */
  field: number;
  rows: number;
  /** Opacity of each block of cells, row after row from the lowest one. */
  levels: Uint8Array;
}

const NONE = new Uint32Array(0);

/** Read a frame; throws an Error when it is none, or cut short. */
export function decodeFrame(buffer: ArrayBuffer): Frame {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEADER_SIZE || view.getUint32(0, true) !== FRAME_MAGIC) throw new Error("not a frame");
  const version = view.getUint16(4, true);
  if (version !== FRAME_VERSION) throw new Error(`frame of version ${version}, expected ${FRAME_VERSION}`);
  const frame: Frame = {
    schema: view.getUint32(8, true),
    flags: view.getUint32(12, true),
    time: view.getFloat64(16, true),
    tick: view.getUint32(24, true),
    number: view.getUint32(28, true),
    ratio: view.getFloat32(32, true),
    stepMs: view.getFloat32(36, true),
    speed: view.getFloat32(40, true),
    pose: new Float32Array(0),
    state: new Uint8Array(0),
    odometry: null,
    velocity: null,
    readings: [],
    fields: [],
    steering: new Map(),
  };
  let at = HEADER_SIZE;
  for (let block = view.getUint16(6, true); block > 0; block--) {
    if (at + BLOCK_SIZE > buffer.byteLength) throw new Error(`frame cut short at byte ${at}`);
    const kind = view.getUint16(at, true);
    const group = view.getUint16(at + 2, true);
    const rows = view.getUint32(at + 4, true);
    const size = view.getUint32(at + 8, true);
    at += BLOCK_SIZE;
    if (at + size > buffer.byteLength) throw new Error(`frame cut short: ${size} bytes at byte ${at}`);
    if (kind === Block.POSE) frame.pose = new Float32Array(buffer, at, size >> 2);
    else if (kind === Block.STATE) frame.state = new Uint8Array(buffer, at, size);
    else if (kind === Block.ODOMETRY) frame.odometry = new Float32Array(buffer, at, size >> 2);
    else if (kind === Block.VELOCITY) frame.velocity = new Float32Array(buffer, at, size >> 2);
    else if (kind === Block.READINGS) {
      const robots = new Uint32Array(buffer, at, rows);
      const ranges = new Uint16Array(buffer, at + 4 * rows, (size - 4 * rows) >> 1);
      frame.readings.push({ group, robots, ranges, bright: NONE });
    } else if (kind === Block.BRIGHT) {
      const last = frame.readings[frame.readings.length - 1];
      if (last) last.bright = new Uint32Array(buffer, at, size >> 2);
    } else if (kind === Block.STEERING) {
      const angles = new Float32Array(buffer, at + 4 * rows, rows);
      new Uint32Array(buffer, at, rows).forEach((row, k) => frame.steering.set(row, angles[k]));
    } else if (kind === Block.FIELD) frame.fields.push({ field: group, rows, levels: new Uint8Array(buffer, at, size) });
    at += size + (-size & 3);
  }
  return frame;
}

export interface Place {
  kind: string;
  name: string;
  pose: [number, number, number];
  heading: boolean;
}

export interface Area {
  kind: string;
  name: string;
  corners: [number, number][];
}

export interface Zone {
  name: string;
  corners: [number, number][];
  /** "": none. */
  color: string;
  slip: number | null;
  speed_limit: number | null;
  odometry_scale: number | null;
  hole: boolean;
}

export interface Field {
  name: string;
  color: string;
  area: [number, number, number, number];
  cell: number;
  rows: number;
  columns: number;
}

/** The floor, in the world's frame. */
export interface Floor {
  /** "": none of its own. */
  color: string;
  /** `bytes`: of the PNG; `image`: the decoded one, as soon as it is there. */
  picture: { pose: [number, number, number]; width: number; height: number; bytes: number; png?: Uint8Array<ArrayBuffer>; image?: ImageBitmap } | null;
  zones: Zone[];
  fields: Field[];
}

export interface WorldMap {
  name: string;
  origin: [number, number];
  bounds: [number, number, number, number] | null;
  resolution: number;
  places: Place[];
  areas: Area[];
  /** x1, y1, x2, y2 of each wall and x, y of each point, relative to `origin`. */
  walls: Float32Array;
  points: Float32Array;
  floor?: Floor;
}

/** Header before the columns of a map: the whole header, and the numbers of walls and points that follow. */
type MapHead = Omit<WorldMap, "walls" | "points"> & { walls: number; points: number };

/** Read a map; throws an Error when it is none. */
export function decodeMap(buffer: ArrayBuffer): WorldMap {
  const view = new DataView(buffer);
  if (buffer.byteLength < 8 || view.getUint32(0, true) !== MAP_MAGIC) throw new Error("not a map");
  const size = view.getUint32(4, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size))) as MapHead;
  const walls = new Float32Array(buffer, 8 + size, 4 * about.walls);
  const points = new Float32Array(buffer, 8 + size + walls.byteLength, 2 * about.points);
  const picture = about.floor?.picture;
  if (picture) picture.png = new Uint8Array(buffer, 8 + size + walls.byteLength + points.byteLength, picture.bytes);
  return { ...about, walls, points };
}

export const NO_MAP: WorldMap = {
  name: "",
  origin: [0, 0],
  bounds: null,
  resolution: 0.02,
  places: [],
  areas: [],
  walls: new Float32Array(0),
  points: new Float32Array(0),
};
