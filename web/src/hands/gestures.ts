// Gestures of pointers on the world: a state machine without a page, so that it can be tested alone.
//
// Left drag on a body moves it, right drag (or Shift or Ctrl and left) turns it towards the pointer. Next to bodies, left, right and Ctrl drag
// pan, Shift drag selects what is in a box, middle or Alt drag zooms. The wheel zooms at the pointer, or turns a selected body
// under it unless the view follows one.

export interface Pointer {
  id: number;
  x: number;
  y: number;
  button: number;
  shift: boolean;
  ctrl: boolean;
  alt: boolean;
  /** A finger, and when, ms: held still on a body before it moves, it turns the body. */
  touch?: boolean;
  time?: number;
}

/** Actions of gestures. Points are pixels of the window. */
export interface Hands {
  /** Other than "select", the left button is for the tool. */
  readonly tool: string;
  /** Whether the view follows a body: it lies under the pointer then, and the wheel is for the view. */
  readonly isFollowing: boolean;
  mayTouch(): boolean;
  pick(x: number, y: number): number;
  isSelected(row: number): boolean;
  select(rows: number[], mode: "set" | "add" | "toggle"): void;
  hover(row: number): void;
  /** Take hold of a body, and of those selected with it. */
  grab(row: number): void;
  /** They follow the pointer from one point to another. */
  drag(fromX: number, fromY: number, x: number, y: number): void;
  /** The body that was grabbed turns towards a point, the others by the same angle. */
  turnTo(x: number, y: number): void;
  turnBy(row: number, angle: number): void;
  drop(keep: boolean): void;
  pan(dx: number, dy: number): void;
  zoomAt(x: number, y: number, factor: number): void;
  box(fromX: number, fromY: number, x: number, y: number, done: boolean): void;
  /** The tool is used from one point to another; `more`: Shift was pressed. */
  use(fromX: number, fromY: number, x: number, y: number, done: boolean, more: boolean): void;
  followRow(row: number): void;
}

type Doing = "nothing" | "pan" | "move" | "turn" | "zoom" | "box" | "tool" | "pinch";

/** A pointer that moved less than this, pixels, has clicked. */
const CLICK = 4;
const DOUBLE = 350;
/** A finger that rested so long, ms, before it moved, turns what it holds. */
export const HOLD = 450;

export class Gestures {
  doing: Doing = "nothing";
  private start: Pointer | null = null;
  private last = { x: 0, y: 0 };
  private moved = false;
  private row = -1;
  private fingers = new Map<number, { x: number; y: number }>();
  private lastClick = { time: -Infinity, row: -1 };

  constructor(private hands: Hands) {}

  down(p: Pointer): void {
    this.fingers.set(p.id, { x: p.x, y: p.y });
    if (this.fingers.size === 2) {
      this.cancel();
      this.doing = "pinch";
      return;
    }
    if (this.doing !== "nothing") return;
    this.start = p;
    this.last = { x: p.x, y: p.y };
    this.moved = false;
    const { hands } = this;
    if (hands.tool !== "select" && p.button === 0 && !p.alt) this.doing = "tool";
    else if (p.button === 1 || (p.alt && p.button === 0)) this.doing = "zoom";
    else {
      this.row = hands.pick(p.x, p.y);
      if (this.row >= 0 && hands.mayTouch()) this.doing = p.button === 2 || p.shift || p.ctrl ? "turn" : "move";
      else this.doing = this.row < 0 && p.shift && p.button === 0 ? "box" : "pan";
    }
  }

  move(p: Pointer): void {
    const finger = this.fingers.get(p.id);
    if (this.doing === "pinch") {
      if (finger) this.pinch(p);
      return;
    }
    const start = this.start;
    if (!start || this.doing === "nothing") {
      if (this.fingers.size === 0) this.hands.hover(this.hands.pick(p.x, p.y));
      return;
    }
    if (finger) Object.assign(finger, { x: p.x, y: p.y });
    if (!this.moved && Math.hypot(p.x - start.x, p.y - start.y) < CLICK) return;
    const { hands } = this;
    if (!this.moved) {
      this.moved = true;
      if (this.doing === "move" && p.touch && (p.time ?? 0) - (start.time ?? 0) >= HOLD) this.doing = "turn";
      if (this.doing === "move" || this.doing === "turn") {
        if (!hands.isSelected(this.row)) hands.select([this.row], "set");
        hands.grab(this.row);
      }
    }
    if (this.doing === "pan") hands.pan(p.x - this.last.x, p.y - this.last.y);
    else if (this.doing === "zoom") hands.zoomAt(start.x, start.y, Math.exp((this.last.y - p.y) * 0.01));
    else if (this.doing === "move") hands.drag(start.x, start.y, p.x, p.y);
    else if (this.doing === "turn") hands.turnTo(p.x, p.y);
    else if (this.doing === "box") hands.box(start.x, start.y, p.x, p.y, false);
    else if (this.doing === "tool") hands.use(start.x, start.y, p.x, p.y, false, p.shift);
    this.last = { x: p.x, y: p.y };
  }

  up(p: Pointer, time: number): void {
    this.fingers.delete(p.id);
    if (this.doing === "pinch") {
      if (this.fingers.size === 0) this.doing = "nothing";
      return;
    }
    const start = this.start;
    if (!start || this.doing === "nothing" || p.button !== start.button) return;
    const { hands } = this;
    const doing = this.doing;
    this.doing = "nothing";
    this.start = null;
    if (doing === "tool") hands.use(start.x, start.y, p.x, p.y, true, p.shift);
    else if (!this.moved) this.click(start, time);
    else if (doing === "move" || doing === "turn") hands.drop(true);
    else if (doing === "box") hands.box(start.x, start.y, p.x, p.y, true);
  }

  private click(p: Pointer, time: number): void {
    const row = this.hands.pick(p.x, p.y);
    if (p.button !== 0) return;
    if (row >= 0) {
      this.hands.select([row], p.ctrl || p.shift ? "toggle" : "set");
      if (row === this.lastClick.row && time - this.lastClick.time < DOUBLE) this.hands.followRow(row);
    } else if (!p.ctrl && !p.shift) this.hands.select([], "set");
    this.lastClick = { time, row };
  }

  private pinch(p: Pointer): void {
    const others = [...this.fingers.entries()].filter(([id]) => id !== p.id);
    const finger = this.fingers.get(p.id)!;
    const other = others[0]?.[1];
    if (other) {
      const before = Math.hypot(finger.x - other.x, finger.y - other.y);
      const after = Math.hypot(p.x - other.x, p.y - other.y);
      const [mx, my] = [(p.x + other.x) / 2, (p.y + other.y) / 2];
      this.hands.pan((p.x - finger.x) / 2, (p.y - finger.y) / 2);
      if (before > 5 && after > 5) this.hands.zoomAt(mx, my, after / before);
    }
    finger.x = p.x;
    finger.y = p.y;
  }

  wheel(x: number, y: number, delta: number): void {
    const row = this.hands.pick(x, y);
    const turns = row >= 0 && !this.hands.isFollowing && this.hands.isSelected(row) && this.hands.mayTouch();
    if (turns) this.hands.turnBy(row, (-Math.sign(delta) * 5 * Math.PI) / 180);
    else this.hands.zoomAt(x, y, Math.exp(-Math.max(-240, Math.min(240, delta)) * 0.0016));
  }

  /** Escape, or the pointer was taken away: what was begun is undone. */
  cancel(): void {
    const { doing, moved } = this;
    this.doing = "nothing";
    this.start = null;
    if (moved && (doing === "move" || doing === "turn")) this.hands.drop(false);
    if (doing === "box") this.hands.box(0, 0, 0, 0, true);
  }

  lost(id: number): void {
    this.fingers.delete(id);
    this.cancel();
  }
}
