// Driving a robot by keys or by the joystick on the screen. Whatever holds it lets go when a key is released, the window loses the focus
// or the connection is lost; the simulator stops the robot too when nothing more comes (dead-man stop).

export interface DriveCommand {
  name: string;
  v: number;
  w: number;
  vy: number;
  on: boolean;
}

/** Commands are repeated so often, ms. */
export const REPEAT = 100;
export const TOP_SPEED = 0.8;
export const TOP_TURN = 1.2;

export interface Robot {
  name: string;
  maxV: number;
  maxW: number;
  omni: boolean;
}

export class Driver {
  private timer: ReturnType<typeof setInterval> | null = null;
  private robot: Robot | null = null;
  private x = 0;
  private y = 0;
  private side = 0;

  constructor(private send: (command: DriveCommand) => void) {}

  get driving(): string | null {
    return this.robot?.name ?? null;
  }

  /** Drive: `forward`, `left` (turn) and `sideways` from −1 to 1. */
  set(robot: Robot, forward: number, left: number, sideways = 0): void {
    if (this.robot && this.robot.name !== robot.name) this.release();
    this.robot = robot;
    [this.y, this.x, this.side] = [forward, left, robot.omni ? sideways : 0];
    this.tell();
    this.timer ??= setInterval(() => this.tell(), REPEAT);
  }

  private tell(): void {
    const r = this.robot;
    if (!r) return;
    const v = Math.min(TOP_SPEED, r.maxV);
    this.send({ name: r.name, v: this.y * v, w: this.x * Math.min(TOP_TURN, r.maxW), vy: this.side * v, on: true });
  }

  /** Let go: the robot stops. */
  release(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    const r = this.robot;
    this.robot = null;
    if (r) this.send({ name: r.name, v: 0, w: 0, vy: 0, on: false });
  }
}

/** Arrow keys that are held, as forward and left. */
export class HeldKeys {
  private held = new Set<string>();
  press(key: string): boolean {
    if (!(key in DIRECTIONS)) return false;
    this.held.add(key);
    return true;
  }
  release(key: string): boolean {
    return this.held.delete(key);
  }
  clear(): void {
    this.held.clear();
  }
  get any(): boolean {
    return this.held.size > 0;
  }
  get direction(): [number, number] {
    let forward = 0;
    let left = 0;
    for (const key of this.held) {
      forward += DIRECTIONS[key][0];
      left += DIRECTIONS[key][1];
    }
    return [Math.sign(forward), Math.sign(left) * (forward < 0 ? -1 : 1)];
  }
}

export const DIRECTIONS: Record<string, [number, number]> = {
  ArrowUp: [1, 0],
  ArrowDown: [-1, 0],
  ArrowLeft: [0, 1],
  ArrowRight: [0, -1],
};
