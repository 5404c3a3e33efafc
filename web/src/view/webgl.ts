// The back-end for machines with a graphics processor: ranges and poses go to it as they come from the socket, and its programs do
// the geometry (webgui.md §3.1). A frame costs a few uploads and draw calls, however many robots there are.

import earcut from "earcut";
import type { Group } from "../generated/messages";
import type { Readings } from "../net/frames";
import type { Camera } from "./camera";
import { FloorImages, floorZones, type FloorImage } from "./floor";
import { gridLines } from "./grid";
import { rgba } from "./palette";
import { choose, type Drawn, type Renderer } from "./renderer";
import { headingMark, isLine } from "./shape";
import { JUMP, SAMPLES } from "./trails";
import { MAX_FILLED, type World } from "./world";

/** Texture units: poses 0, ranges 1, rays of a sonar ring 2, trails 3, and one for making textures. */
const SCRATCH = 7;
/** Texels in a row of the pose texture. */
const ROW = 256;

const COMMON = `#version 300 es
precision highp float; precision highp int; precision highp usampler2D; precision highp sampler2D;
uniform vec2 eye, zoom, turn; // turn: cosine and sine
vec4 place(vec2 p) { vec2 d = p - eye; return vec4(vec2(turn.x * d.x - turn.y * d.y, turn.y * d.x + turn.x * d.y) * zoom, 0.0, 1.0); }
const vec4 NOWHERE = vec4(2.0, 2.0, 2.0, 1.0);
`;

const POSES = `
uniform sampler2D poses;
vec4 pose_of(uint row) { return texelFetch(poses, ivec2(int(row) % ${ROW}, int(row) / ${ROW}), 0); }
vec2 turned(float th, vec2 p) { float c = cos(th), s = sin(th); return vec2(c * p.x - s * p.y, s * p.x + c * p.y); }
`;

const RANGES = `
uniform usampler2D ranges; uniform int count; uniform float unit, angle0, angle_step, range_max; uniform vec3 mount;
layout(location = 0) in uvec2 who; // row of the robot, row of the texture
float range_of(int j) { uint r = texelFetch(ranges, ivec2(j, int(who.y)), 0).r; return r >= 65534u ? 0.0 : float(r) * unit; }
vec2 hit(vec4 body, int j, float r) {
  float a = angle0 + float(j) * angle_step + mount.z;
  return body.xy + turned(body.z, mount.xy + r * vec2(cos(a), sin(a)));
}
`;

const COLOR = `#version 300 es
precision mediump float; in vec4 color; out vec4 result; void main() { result = vec4(color.rgb * color.a, color.a); }`;

const SHADERS = {
  flat: [
    `${COMMON} layout(location = 0) in vec2 at; uniform vec4 tint; uniform float size; out vec4 color;
     void main() { gl_Position = place(at); gl_PointSize = size; color = tint; }`,
    COLOR,
  ],
  cells: [
    // a scan point is a square of the map's resolution with its corner at the point
    `${COMMON} layout(location = 0) in vec2 at; uniform vec4 tint; uniform float size, half_size; out vec4 color;
     void main() { gl_Position = place(at + half_size); gl_PointSize = size; color = tint; }`,
    COLOR,
  ],
  image: [
    // a square of size 1, turned and scaled to where the image lies
    `${COMMON} layout(location = 0) in vec2 at; uniform vec4 axes; uniform vec2 corner; out vec2 uv;
     void main() { uv = vec2(at.x, 1.0 - at.y); gl_Position = place(corner + at.x * axes.xy + at.y * axes.zw); }`,
    `#version 300 es
     precision mediump float; uniform sampler2D picture; in vec2 uv; out vec4 result; void main() { result = texture(picture, uv); }`,
  ],
  body: [
    `${COMMON}${POSES} layout(location = 0) in vec3 at; layout(location = 1) in uint row; layout(location = 2) in vec3 paint;
     uniform vec4 outline, stalled; uniform bool edges, filled, is_line; out vec4 color;
     void main() {
       vec4 body = pose_of(row); int state = int(body.w);
       gl_Position = place(body.xy + turned(body.z, at.xy));
       bool is_stalled = (state & 1) != 0;
       if (edges || at.z > 0.5) color = is_stalled ? stalled : is_line ? vec4(paint, 1.0) : outline;
       else { color = vec4(paint, 1.0); if (!filled || (state & 16) != 0) gl_Position = NOWHERE; }
     }`,
    COLOR,
  ],
  fan: [
    `${COMMON}${POSES}${RANGES} uniform vec4 tint; out vec4 color;
     void main() {
       vec4 body = pose_of(who.x); int j = gl_VertexID / 3, corner = gl_VertexID % 3; color = tint;
       vec2 p = corner == 0 ? body.xy + turned(body.z, mount.xy) : hit(body, j + corner - 1, range_of(j + corner - 1));
       gl_Position = place(p);
     }`,
    COLOR,
  ],
  edge: [
    `${COMMON}${POSES}${RANGES} uniform vec4 tint; out vec4 color;
     void main() {
       vec4 body = pose_of(who.x); int j = gl_VertexID / 2; color = tint;
       float a = range_of(j), b = range_of(j + 1);
       int k = j + gl_VertexID % 2;
       gl_Position = abs(a - b) > 0.3 + 0.08 * min(a, b) ? NOWHERE : place(hit(body, k, k == j ? a : b));
     }`,
    COLOR,
  ],
  hits: [
    `${COMMON}${POSES}${RANGES} uniform vec4 tint; uniform float size; out vec4 color;
     void main() {
       vec4 body = pose_of(who.x); int j = gl_VertexID; float r = range_of(j); color = tint; gl_PointSize = size;
       gl_Position = r <= 0.0 || r >= range_max - unit ? NOWHERE : place(hit(body, j, r));
     }`,
    COLOR,
  ],
  sonar: [
    `${COMMON}${POSES}${RANGES} uniform sampler2D rays; uniform vec4 tint; out vec4 color;
     void main() {
       vec4 body = pose_of(who.x); int j = gl_VertexID / 2; vec3 ray = texelFetch(rays, ivec2(j, 0), 0).xyz; color = tint;
       float r = gl_VertexID % 2 == 0 ? 0.0 : range_of(j);
       gl_Position = place(body.xy + turned(body.z, ray.xy + r * vec2(cos(ray.z), sin(ray.z))));
     }`,
    COLOR,
  ],
  trail: [
    `${COMMON} uniform sampler2D trails; uniform int head, count; uniform float jump;
     layout(location = 1) in uint row; layout(location = 2) in vec3 paint; out vec4 color;
     vec2 sample_of(int k) { return texelFetch(trails, ivec2((head - count + k + 2 * ${SAMPLES}) % ${SAMPLES}, int(row)), 0).xy; }
     void main() {
       int j = gl_VertexID / 2; vec2 a = sample_of(j), b = sample_of(j + 1);
       float age = float(j + ${SAMPLES} - count) / float(${SAMPLES});
       color = vec4(paint, 0.1 + 0.7 * age);
       bool apart = !(distance(a, b) < jump);
       gl_Position = apart ? NOWHERE : place(gl_VertexID % 2 == 0 ? a : b);
     }`,
    COLOR,
  ],
} as const;

type ProgramName = keyof typeof SHADERS;

interface Program {
  program: WebGLProgram;
  at: Map<string, WebGLUniformLocation>;
}

interface Mesh {
  fill: WebGLVertexArrayObject;
  lines: WebGLVertexArrayObject;
  fillCount: number;
  lineCount: number;
  rows: number[];
  isLine: boolean;
}

/** Whether a WebGL context is drawn by the CPU, for which the other back-end is better. */
export function isSoftware(gl: WebGL2RenderingContext): boolean {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

export function getContext(canvas: HTMLCanvasElement): WebGL2RenderingContext | null {
  return canvas.getContext("webgl2", { antialias: true, alpha: false, powerPreference: "high-performance" });
}

export class WebGL implements Renderer {
  readonly name = "webgl2";
  private programs = new Map<ProgramName, Program>();
  private ratio = 1;
  private poses: WebGLTexture;
  private poseRows = 0;
  private poseData = new Float32Array(0);
  private trails: WebGLTexture;
  private trailVersion = -1;
  private trailRobots = -1;
  private ranges = new Map<number, { texture: WebGLTexture; who: WebGLBuffer; array: WebGLVertexArrayObject; size: string }>();
  private rays = new Map<number, WebGLTexture>();
  private walls: WebGLVertexArrayObject | null = null;
  private points: WebGLVertexArrayObject | null = null;
  private mapVersion = -1;
  private grid: { array: WebGLVertexArrayObject; buffer: WebGLBuffer };
  private spots: { array: WebGLVertexArrayObject; buffer: WebGLBuffer };
  private meshes: Mesh[] = [];
  private owned: (WebGLBuffer | null)[] = [];
  private trailArray: WebGLVertexArrayObject | null = null;
  private meshKey = "";
  private floor = new FloorImages();
  private images = new Map<string, { texture: WebGLTexture; version: number }>();
  private square: WebGLVertexArrayObject;
  private zones: { array: WebGLVertexArrayObject; count: number; fill: [number, number, number, number]; edge: string; edges: WebGLVertexArrayObject; corners: number }[] = [];
  private zoneVersion = -1;

  constructor(
    readonly canvas: HTMLCanvasElement,
    private gl: WebGL2RenderingContext,
  ) {
    for (const name of Object.keys(SHADERS) as ProgramName[]) this.programs.set(name, this.link(name));
    this.poses = this.texture();
    this.trails = this.texture();
    this.grid = this.dynamic();
    this.spots = this.dynamic();
    this.square = gl.createVertexArray();
    gl.bindVertexArray(this.square);
    this.vertices(new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), 2);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 2);
  }

  dispose(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  settle(): boolean {
    return false;
  }

  resize(width: number, height: number, ratio: number): void {
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.gl.viewport(0, 0, this.canvas.width, this.canvas.height);
  }

  // -- small things

  private link(name: ProgramName): Program {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [
      [gl.VERTEX_SHADER, SHADERS[name][0]],
      [gl.FRAGMENT_SHADER, SHADERS[name][1]],
    ] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`${name}: ${gl.getShaderInfoLog(shader)}`);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`${name}: ${gl.getProgramInfoLog(program)}`);
    const at = new Map<string, WebGLUniformLocation>();
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const uniform = gl.getActiveUniform(program, i)!;
      at.set(uniform.name, gl.getUniformLocation(program, uniform.name)!);
    }
    return { program, at };
  }

  private use(name: ProgramName, camera: Camera): (uniform: string) => WebGLUniformLocation | null {
    const { gl } = this;
    const { program, at } = this.programs.get(name)!;
    gl.useProgram(program);
    const get = (uniform: string) => at.get(uniform) ?? null;
    gl.uniform2f(get("eye"), camera.x, camera.y);
    gl.uniform2f(get("turn"), Math.cos(camera.angle), Math.sin(camera.angle));
    gl.uniform2f(get("zoom"), (2 * camera.scale) / camera.width, (2 * camera.scale) / camera.height);
    return get;
  }

  private texture(): WebGLTexture {
    const { gl } = this;
    const texture = gl.createTexture();
    this.bind(SCRATCH, texture); // not in the place of one that is in use
    for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
    return texture;
  }

  private bind(unit: number, texture: WebGLTexture): void {
    this.gl.activeTexture(this.gl.TEXTURE0 + unit);
    this.gl.bindTexture(this.gl.TEXTURE_2D, texture);
  }

  private vertices(data: Float32Array, size: number, location = 0): WebGLBuffer {
    const { gl } = this;
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, size, gl.FLOAT, false, 0, 0);
    return buffer;
  }

  private dynamic(): { array: WebGLVertexArrayObject; buffer: WebGLBuffer } {
    const { gl } = this;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    return { array, buffer };
  }

  private color(location: WebGLUniformLocation | null, color: string): void {
    this.gl.uniform4f(location, ...rgba(color));
  }

  // -- a picture

  draw(world: World, camera: Camera): Drawn {
    const { gl } = this;
    const drawn: Drawn = { bodies: 0, fans: 0, points: 0, sonar: 0 };
    const [r, g, b] = rgba(world.palette.ground);
    gl.clearColor(r, g, b, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (world.layers.grid) this.drawGrid(world, camera);
    if (world.layers.floor) this.drawFloor(world, camera); // paint hides the grid, whose colours suit the plain ground alone
    if (world.layers.pheromones) for (const image of this.floor.fields(world)) this.drawImage(image, camera);
    if (world.frame && world.schema) {
      this.uploadPoses(world);
      this.drawReadings(world, camera, drawn);
    }
    if (world.layers.map) this.drawMap(world, camera);
    if (world.frame && world.schema) {
      this.buildMeshes(world);
      if (world.layers.trails) this.drawTrails(world, camera);
      if (world.layers.bodies) this.drawBodies(world, camera, drawn);
    }
    return drawn;
  }

  private drawFloor(world: World, camera: Camera): void {
    const { gl } = this;
    const color = world.map.floor?.color;
    if (color) {
      const [r, g, b] = rgba(color);
      gl.clearColor(r, g, b, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
    }
    const picture = this.floor.picture(world);
    if (picture) this.drawImage(picture, camera);
    this.buildZones(world);
    const get = this.use("flat", camera);
    for (const zone of this.zones) {
      gl.uniform4f(get("tint"), ...zone.fill);
      gl.bindVertexArray(zone.array);
      gl.drawArrays(gl.TRIANGLES, 0, zone.count);
      if (!zone.edge) continue;
      this.color(get("tint"), zone.edge);
      gl.bindVertexArray(zone.edges);
      gl.drawArrays(gl.LINE_LOOP, 0, zone.corners);
    }
  }

  private buildZones(world: World): void {
    if (this.zoneVersion === world.mapVersion) return;
    const { gl } = this;
    this.zoneVersion = world.mapVersion;
    for (const zone of this.zones) for (const array of [zone.array, zone.edges]) gl.deleteVertexArray(array);
    this.zones = floorZones(world).map(({ corners, fill, edge }) => {
      const flat = corners.flat();
      const triangles = earcut(flat).flatMap((i) => [flat[2 * i], flat[2 * i + 1]]);
      const make = (data: number[]) => {
        const array = gl.createVertexArray();
        gl.bindVertexArray(array);
        this.vertices(new Float32Array(data), 2);
        return array;
      };
      return { array: make(triangles), count: triangles.length / 2, fill, edge, edges: make(flat), corners: corners.length };
    });
  }

  private drawImage(image: FloorImage, camera: Camera): void {
    const { gl } = this;
    let kept = this.images.get(image.key);
    if (!kept) {
      kept = { texture: this.texture(), version: -1 };
      this.images.set(image.key, kept);
    }
    this.bind(SCRATCH, kept.texture);
    if (kept.version !== image.version) {
      kept.version = image.version;
      gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, true);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, image.source);
      gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, false);
    }
    const get = this.use("image", camera);
    const c = Math.cos(image.th);
    const s = Math.sin(image.th);
    gl.uniform1i(get("picture"), SCRATCH);
    gl.uniform2f(get("corner"), image.x, image.y);
    gl.uniform4f(get("axes"), c * image.width, s * image.width, -s * image.height, c * image.height);
    gl.bindVertexArray(this.square);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  private drawGrid(world: World, camera: Camera): void {
    const { gl } = this;
    const get = this.use("flat", camera);
    gl.bindVertexArray(this.grid.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.grid.buffer);
    for (const { lines, color } of gridLines(world, camera)) {
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(lines), gl.DYNAMIC_DRAW);
      this.color(get("tint"), color);
      gl.drawArrays(gl.LINES, 0, lines.length / 2);
    }
  }

  private drawMap(world: World, camera: Camera): void {
    const { gl } = this;
    const { map, palette } = world;
    if (this.mapVersion !== world.mapVersion) {
      this.mapVersion = world.mapVersion;
      this.walls = gl.createVertexArray()!;
      gl.bindVertexArray(this.walls);
      this.vertices(map.walls, 2);
      this.points = gl.createVertexArray()!;
      gl.bindVertexArray(this.points);
      this.vertices(map.points, 2);
    }
    if (map.points.length) {
      const get = this.use("cells", camera);
      this.color(get("tint"), palette.wall);
      gl.uniform1f(get("size"), Math.max(1, map.resolution * camera.scale * this.ratio));
      gl.uniform1f(get("half_size"), map.resolution / 2);
      gl.bindVertexArray(this.points);
      gl.drawArrays(gl.POINTS, 0, map.points.length / 2);
    }
    if (map.walls.length) {
      const get = this.use("flat", camera);
      this.color(get("tint"), palette.wall);
      gl.bindVertexArray(this.walls);
      // lines of WebGL are one pixel wide; drawn thrice, half a pixel apart, they look like the other back-end's
      const d = 0.5 / this.ratio / camera.scale;
      for (const [dx, dy] of [
        [0, 0],
        [d, 0],
        [0, d],
      ]) {
        gl.uniform2f(get("eye"), camera.x + dx, camera.y + dy);
        gl.drawArrays(gl.LINES, 0, map.walls.length / 2);
      }
    }
  }

  private uploadPoses(world: World): void {
    const { gl } = this;
    const { pose, state } = world.frame!;
    const n = world.count;
    const rows = Math.max(1, Math.ceil(n / ROW));
    if (this.poseData.length !== rows * ROW * 4) this.poseData = new Float32Array(rows * ROW * 4);
    const data = this.poseData;
    for (let i = 0; i < n; i++) {
      data[4 * i] = pose[3 * i];
      data[4 * i + 1] = pose[3 * i + 1];
      data[4 * i + 2] = pose[3 * i + 2];
      data[4 * i + 3] = state[i];
    }
    this.bind(0, this.poses);
    if (rows === this.poseRows) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, ROW, rows, gl.RGBA, gl.FLOAT, data);
    else gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, ROW, rows, 0, gl.RGBA, gl.FLOAT, data);
    this.poseRows = rows;
  }

  private uploadRanges(block: Readings, group: Group) {
    const { gl } = this;
    let one = this.ranges.get(group.id);
    if (!one) {
      const array = gl.createVertexArray();
      gl.bindVertexArray(array);
      const who = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, who);
      gl.enableVertexAttribArray(0);
      gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 0, 0);
      gl.vertexAttribDivisor(0, 1);
      one = { texture: this.texture(), who, array, size: "" };
      this.ranges.set(group.id, one);
    }
    this.bind(1, one.texture);
    const rows = block.robots.length;
    const size = `${group.count},${rows}`;
    if (size === one.size) gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, group.count, rows, gl.RED_INTEGER, gl.UNSIGNED_SHORT, block.ranges);
    else gl.texImage2D(gl.TEXTURE_2D, 0, gl.R16UI, group.count, rows, 0, gl.RED_INTEGER, gl.UNSIGNED_SHORT, block.ranges);
    one.size = size;
    return one;
  }

  private drawReadings(world: World, camera: Camera, drawn: Drawn): void {
    const { gl } = this;
    let filled = 0;
    for (const block of world.frame!.readings) {
      const group = world.schema!.groups[block.group];
      if (!group || !(group.kind === "laser" ? world.layers.laser : world.layers.sonar)) continue;
      const chosen = choose(world, camera, block, group, group.kind === "laser" ? filled : 0, MAX_FILLED);
      const n = chosen.index.length;
      if (!n) continue;
      const one = this.uploadRanges(block, group);
      const who = new Uint32Array(2 * n);
      chosen.index.forEach((k, i) => {
        who[2 * i] = block.robots[k];
        who[2 * i + 1] = k;
      });
      gl.bindVertexArray(one.array);
      gl.bindBuffer(gl.ARRAY_BUFFER, one.who);
      gl.bufferData(gl.ARRAY_BUFFER, who, gl.DYNAMIC_DRAW);
      gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 0, 0);
      if (group.kind === "sonar") {
        this.drawSonar(world, camera, group, n);
        drawn.sonar += n;
        continue;
      }
      filled += chosen.filled;
      if (chosen.filled) {
        this.laser("fan", world.palette.laserFill, camera, group);
        gl.drawArraysInstanced(gl.TRIANGLES, 0, 3 * (group.count - 1), chosen.filled);
        this.laser("edge", world.palette.laserEdge, camera, group);
        gl.drawArraysInstanced(gl.LINES, 0, 2 * (group.count - 1), chosen.filled);
        drawn.fans += chosen.filled;
      }
      const rest = n - chosen.filled;
      if (rest) {
        gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 0, 8 * chosen.filled);
        const get = this.laser("hits", world.palette.laserPoint, camera, group);
        gl.uniform1f(get("size"), 2 * this.ratio);
        gl.drawArraysInstanced(gl.POINTS, 0, group.count, rest);
        drawn.points += rest * group.count;
      }
      if (block.bright.length) this.drawBright(world, camera, block, group);
    }
  }

  private laser(name: ProgramName, color: string, camera: Camera, group: Group): (uniform: string) => WebGLUniformLocation | null {
    const { gl } = this;
    const get = this.use(name, camera);
    gl.uniform1i(get("poses"), 0);
    gl.uniform1i(get("ranges"), 1);
    gl.uniform1f(get("unit"), group.unit);
    gl.uniform1f(get("angle0"), group.angle0);
    gl.uniform1f(get("angle_step"), group.step);
    gl.uniform1f(get("range_max"), group.range_max);
    gl.uniform3f(get("mount"), ...group.poses[0]);
    this.color(get("tint"), color);
    return get;
  }

  private drawBright(world: World, camera: Camera, block: Readings, group: Group): void {
    const { gl } = this;
    const spots = new Float32Array(2 * block.bright.length);
    const [mx, my, mth] = group.poses[0];
    block.bright.forEach((at, i) => {
      const [x, y, th] = world.pose(block.robots[Math.floor(at / group.count)]);
      const a = th + mth + group.angle0 + (at % group.count) * group.step;
      const r = block.ranges[at] * group.unit;
      spots[2 * i] = x + Math.cos(th) * mx - Math.sin(th) * my + r * Math.cos(a);
      spots[2 * i + 1] = y + Math.sin(th) * mx + Math.cos(th) * my + r * Math.sin(a);
    });
    const get = this.use("flat", camera);
    gl.bindVertexArray(this.spots.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.spots.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, spots, gl.DYNAMIC_DRAW);
    this.color(get("tint"), world.palette.bright);
    gl.uniform1f(get("size"), 4 * this.ratio);
    gl.drawArrays(gl.POINTS, 0, block.bright.length);
  }

  private drawSonar(world: World, camera: Camera, group: Group, n: number): void {
    const { gl } = this;
    let rays = this.rays.get(group.id);
    if (!rays) {
      rays = this.texture();
      this.rays.set(group.id, rays);
      const data = new Float32Array(group.poses.flatMap((p) => [...p, 0]));
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, group.count, 1, 0, gl.RGBA, gl.FLOAT, data);
    }
    this.bind(2, rays);
    const get = this.laser("sonar", world.palette.sonar, camera, group);
    gl.uniform1i(get("rays"), 2);
    gl.drawArraysInstanced(gl.LINES, 0, 2 * group.count, n);
  }

  private buildMeshes(world: World): void {
    const key = `${world.schemaVersion},${world.paletteVersion},${world.colorBy},${[...world.hidden].join()}`;
    if (key === this.meshKey) return;
    const { gl } = this;
    if (this.meshKey.split(",")[0] !== String(world.schemaVersion)) {
      for (const texture of this.rays.values()) gl.deleteTexture(texture);
      this.rays.clear();
      for (const one of this.ranges.values()) {
        gl.deleteTexture(one.texture);
        gl.deleteBuffer(one.who);
        gl.deleteVertexArray(one.array);
      }
      this.ranges.clear();
    }
    this.meshKey = key;
    for (const buffer of this.owned) gl.deleteBuffer(buffer);
    for (const mesh of this.meshes) for (const array of [mesh.fill, mesh.lines]) gl.deleteVertexArray(array);
    this.owned = [];
    const schema = world.schema!;
    this.meshes = schema.models.map((model, index) => {
      const rows = schema.bodies.flatMap((body, row) => (body.model === index && !world.hidden.has(model.name) ? [row] : []));
      const triangles: number[] = [];
      const lines: number[] = [];
      for (const part of model.parts) {
        const flat = part.flat();
        for (const i of earcut(flat)) triangles.push(flat[2 * i], flat[2 * i + 1], 0);
        part.forEach(([x, y], i) => {
          const [x2, y2] = part[(i + 1) % part.length];
          lines.push(x, y, 0, x2, y2, 0);
        });
      }
      for (const [x, y] of headingMark(model) ?? []) triangles.push(x, y, 1);
      const make = (data: number[]) => {
        const array = gl.createVertexArray();
        gl.bindVertexArray(array);
        this.owned.push(this.vertices(new Float32Array(data), 3));
        this.instances(world, rows);
        return array;
      };
      return { fill: make(triangles), lines: make(lines), fillCount: triangles.length / 3, lineCount: lines.length / 3, rows, isLine: isLine(model) };
    });
    if (this.trailArray) gl.deleteVertexArray(this.trailArray);
    this.trailArray = gl.createVertexArray()!;
    gl.bindVertexArray(this.trailArray);
    this.instances(world, Array.from({ length: schema.robots }, (_, row) => row));
  }

  /** Row and colour of each instance, into the bound vertex array. */
  private instances(world: World, rows: number[]): void {
    const { gl } = this;
    const number = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, number);
    gl.bufferData(gl.ARRAY_BUFFER, new Uint32Array(rows), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribIPointer(1, 1, gl.UNSIGNED_INT, 0, 0);
    gl.vertexAttribDivisor(1, 1);
    const paint = this.vertices(new Float32Array(rows.flatMap((row) => rgba(world.color(row)).slice(0, 3))), 3, 2);
    gl.vertexAttribDivisor(2, 1);
    this.owned.push(number, paint);
  }

  private drawTrails(world: World, camera: Camera): void {
    const { gl } = this;
    const { trails } = world;
    if (trails.count < 2 || !trails.robots || trails.robots > gl.getParameter(gl.MAX_TEXTURE_SIZE)) return;
    this.bind(3, this.trails);
    if (this.trailVersion !== trails.version || this.trailRobots !== trails.robots) {
      if (this.trailRobots !== trails.robots)
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.RG32F, SAMPLES, trails.robots, 0, gl.RG, gl.FLOAT, trails.data);
      else gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, SAMPLES, trails.robots, gl.RG, gl.FLOAT, trails.data);
      this.trailVersion = trails.version;
      this.trailRobots = trails.robots;
    }
    const get = this.use("trail", camera);
    gl.uniform1i(get("trails"), 3);
    gl.uniform1i(get("head"), trails.head);
    gl.uniform1i(get("count"), trails.count);
    gl.uniform1f(get("jump"), JUMP);
    gl.bindVertexArray(this.trailArray);
    gl.drawArraysInstanced(gl.LINES, 0, 2 * (trails.count - 1), trails.robots);
  }

  private drawBodies(world: World, camera: Camera, drawn: Drawn): void {
    const { gl } = this;
    const get = this.use("body", camera);
    gl.uniform1i(get("poses"), 0);
    this.bind(0, this.poses);
    this.color(get("outline"), world.palette.outline);
    this.color(get("stalled"), world.palette.stalled);
    gl.uniform1i(get("filled"), world.layers.fill ? 1 : 0);
    for (const mesh of this.meshes) {
      if (!mesh.rows.length) continue;
      gl.uniform1i(get("is_line"), mesh.isLine ? 1 : 0);
      gl.uniform1i(get("edges"), 0);
      gl.bindVertexArray(mesh.fill);
      gl.drawArraysInstanced(gl.TRIANGLES, 0, mesh.fillCount, mesh.rows.length);
      gl.uniform1i(get("edges"), 1);
      gl.bindVertexArray(mesh.lines);
      gl.drawArraysInstanced(gl.LINES, 0, mesh.lineCount, mesh.rows.length);
      drawn.bodies += mesh.rows.length;
    }
  }
}
