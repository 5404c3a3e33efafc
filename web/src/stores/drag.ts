// Dragged bodies: drawn at the pointer, and sent to the simulator.

import type { Placement } from "../generated/messages";
import type { Contacts } from "../view/contacts";
import type { World } from "../view/world";
import { AT_ONCE, batches, wrap, type Asks, type Pose, type Redraw, type Says } from "./ports";
import type { Roster } from "./roster.svelte";

/** Moves are sent no more often than every so many ms. */
export const MOVE_PERIOD = 33;

/** Dragged bodies of which overlaps are sought: of more, it would take too long. */
const MAX_CHECKED = 50;
const EMPTY: ReadonlySet<number> = new Set();

interface Grabbed {
  rows: number[];
  /** The row under the pointer. */
  row: number;
  /** Where each was when it was grabbed. */
  from: Map<number, Pose>;
  /** All moves of it are undone together. */
  group: number;
}

/** Bodies in hand while rows get other numbers: by name. */
export interface Held {
  main: string;
  from: Map<string, Pose>;
  group: number;
}

export class Drag {
  private grabbed: Grabbed | null = null;
  private lastMove = -Infinity;
  private moveTimer: ReturnType<typeof setTimeout> | undefined;
  private serial = 0;
  /** Frames later than this number show what was let go where the simulator has it; null: none is waited for. */
  private release: number | null = null;

  constructor(
    private world: Pick<World, "dragged" | "overlaps" | "pose" | "frame" | "schema" | "rows">,
    private roster: Pick<Roster, "name" | "namesOf">,
    private session: Asks & { mayTouch(): boolean },
    private redraw: Redraw,
    private steps: { group(): number; groupOfKeys(about: string, now: number): number },
    private notices: Says,
    /** Finds what dragged bodies overlap; without it, nothing is said. */
    private contacts: Pick<Contacts, "walls" | "bodies" | "free"> | null = null,
    /** Whether bodies that are dropped in something are put next to it. */
    private snaps: () => boolean = () => false,
  ) {}

  get isHolding(): boolean {
    return this.grabbed !== null;
  }

  grab(rows: number[], row: number): void {
    const grabbed = (this.grabbed = { rows, row, from: new Map(rows.map((r) => [r, this.world.pose(r)])), group: this.steps.group() });
    void this.hold(this.roster.namesOf(rows), true).then((held) => {
      if (held || this.grabbed !== grabbed) return;
      this.lose(); // another person holds one of them
      this.redraw();
      void this.hold(this.roster.namesOf(rows), false);
    });
  }

  /** Whether all of them are held, or let go. */
  private async hold(names: string[], on: boolean): Promise<boolean> {
    for (const some of batches(names)) if ((await this.session.ask({ type: "hold", names: some, on })) === undefined) return false;
    return true;
  }

  /** They go by (dx, dy) m from where they were grabbed. */
  moveTo(dx: number, dy: number): void {
    this.put((x, y, th) => [x + dx, y + dy, th]);
  }

  /** The body that was grabbed turns towards a point of the world, the others by the same angle. */
  turnTo(x: number, y: number): void {
    const main = this.grabbed?.from.get(this.grabbed.row);
    if (!main) return;
    const turn = Math.atan2(y - main[1], x - main[0]) - main[2];
    this.put((px, py, th) => [px, py, wrap(th + turn)]);
  }

  private put(to: (x: number, y: number, th: number) => Pose): void {
    if (!this.grabbed) return;
    for (const [row, from] of this.grabbed.from) this.world.dragged.set(row, to(...from));
    const pose = this.world.frame?.pose;
    if (pose) for (const [row, at] of this.world.dragged) pose.set(at, 3 * row);
    this.check();
    this.redraw();
    const wait = this.lastMove + MOVE_PERIOD - performance.now();
    clearTimeout(this.moveTimer);
    if (wait <= 0) this.sendMoves();
    else this.moveTimer = setTimeout(() => this.sendMoves(), wait);
  }

  /** Find what the dragged bodies overlap, to be shown. */
  private check(): void {
    const { contacts, grabbed, world } = this;
    world.overlaps = null;
    if (!contacts || !grabbed || grabbed.from.size > MAX_CHECKED) return;
    const held = new Set(grabbed.from.keys());
    const rows: number[] = [];
    const walls: [number, number, number, number][] = [];
    for (const row of held) {
      const at = world.dragged.get(row);
      if (!at) continue;
      const met = contacts.walls(row, at);
      const bodies = contacts.bodies(row, at, held);
      walls.push(...met.map(([a, b, c, d]): [number, number, number, number] => [a, b, c, d]));
      if (met.length || bodies.length) rows.push(row, ...bodies);
    }
    if (rows.length) world.overlaps = { rows, walls };
  }

  /** Bodies are dropped where they overlap something: put them next to it, or say so. */
  private settleOverlaps(grabbed: Grabbed): void {
    const { contacts, world } = this;
    const { overlaps } = world;
    world.overlaps = null;
    if (!contacts || !overlaps) return;
    const held = new Set(grabbed.from.keys());
    const stuck = [...held].filter((row) => overlaps.rows.includes(row));
    const left: number[] = [];
    for (const row of stuck) {
      const at = world.dragged.get(row)!;
      const free = this.snaps() ? contacts.free(row, at, EMPTY) : null;
      if (free) world.dragged.set(row, free);
      else left.push(row);
    }
    const what = overlaps.walls.length ? "a wall" : "another body";
    if (left.length) this.notices.say(`${left.length === 1 ? this.roster.name(left[0]) : `${left.length} bodies`} overlap${left.length === 1 ? "s" : ""} ${what}`, false, 6);
    else if (stuck.length) this.notices.say(`put next to ${what}`);
  }

  private placements(): Placement[] {
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    return [...this.world.dragged].map(([row, [x, y, th]]) => ({ name: this.roster.name(row), x: x + ox, y: y + oy, th }));
  }

  private sendMoves(): void {
    // many bodies are many messages, and come less often
    const to = this.placements();
    this.lastMove = performance.now() + (to.length / AT_ONCE) * MOVE_PERIOD;
    void this.move(to, this.grabbed?.group ?? 0);
  }

  /** Put bodies somewhere; messages have a limit, so there may be several. The number of the last answer's frame. */
  private async move(to: Placement[], group: number): Promise<number | undefined> {
    let number: number | undefined;
    for (const some of batches(to)) number = await this.session.ask<number>({ type: "move", to: some, group });
    return number;
  }

  drop(keep: boolean): void {
    const { grabbed } = this;
    if (!grabbed) return;
    this.grabbed = null;
    clearTimeout(this.moveTimer);
    if (keep) this.settleOverlaps(grabbed);
    else for (const [row, from] of grabbed.from) this.world.dragged.set(row, from);
    this.world.overlaps = null;
    this.moveAndRelease(this.placements(), grabbed.group);
    if (keep && grabbed.rows.length > 1) this.notices.offer(`${grabbed.rows.length} moved`);
    void this.hold(this.roster.namesOf(grabbed.rows), false);
  }

  /** The connection is lost, or the bodies are: drop them without a message. */
  lose(): void {
    this.grabbed = null;
    clearTimeout(this.moveTimer);
    this.world.dragged.clear();
    this.world.overlaps = null;
  }

  /** Move bodies forward, m, and turn them where they are, rad. */
  nudge(rows: readonly number[], forward: number, turn: number): void {
    const { frame } = this.world;
    if (!this.session.mayTouch() || !frame) return;
    const [ox, oy] = this.world.schema?.origin ?? [0, 0];
    const to = rows.map((row) => {
      const [x, y, th] = this.world.dragged.get(row) ?? this.world.pose(row);
      const at: Pose = [x + forward * Math.cos(th), y + forward * Math.sin(th), wrap(th + turn)];
      frame.pose.set(at, 3 * row);
      this.world.dragged.set(row, at); // frames on their way do not know of it yet
      return { name: this.roster.name(row), x: at[0] + ox, y: at[1] + oy, th: at[2] };
    });
    this.redraw();
    this.moveAndRelease(to, this.steps.groupOfKeys(`nudge ${rows.join()}`, performance.now()));
  }

  /** Put bodies somewhere. Frames after the answer's show them there; until then, or until the next such move, the hand's word counts. */
  private moveAndRelease(to: Placement[], group: number): void {
    const serial = ++this.serial;
    this.release = null;
    void this.move(to, group).then((number) => {
      if (serial !== this.serial) return;
      this.release = number ?? -1;
      this.redraw();
    });
  }

  /** A frame has come: what was let go is shown where the simulator has it, if the frame knows of it. */
  framed(number: number): void {
    if (this.release === null || number <= this.release || this.grabbed) return;
    this.release = null;
    this.world.dragged.clear();
  }

  /** Names of the dragged bodies; call before rows get other numbers. */
  held(): Held | null {
    const { grabbed } = this;
    if (!grabbed) return null;
    const from = new Map([...grabbed.from].map(([row, at]) => [this.roster.name(row), at]));
    return { main: this.roster.name(grabbed.row), from, group: grabbed.group };
  }

  /** Other robots came or went, and the origin moved by (dx, dy): the hand goes on holding what it held, under its new numbers. */
  regrab(held: Held | null, dx: number, dy: number): void {
    if (!held) return;
    const row = this.world.rows.get(held.main);
    const from = new Map<number, Pose>();
    for (const [name, [x, y, th]] of held.from) {
      const now = this.world.rows.get(name);
      if (now !== undefined) from.set(now, [x - dx, y - dy, th]);
    }
    this.grabbed = row === undefined ? null : { rows: [...from.keys()], row, from, group: held.group };
    if (!this.grabbed) void this.hold(this.roster.namesOf([...from.keys()]), false);
  }
}
