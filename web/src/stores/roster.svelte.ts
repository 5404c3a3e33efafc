// Which bodies there are: robots first, then obstacles of the map and things that lie about.

import type { BodyInfo, Model, Schema } from "../generated/messages";
import type { Robot } from "../hands/driving";
import { count } from "../text";

export class Roster {
  bodies = $state.raw<BodyInfo[]>([]);
  models = $state.raw<Model[]>([]);
  /** How many of the bodies are robots; the first ones are. */
  robots = $state(0);

  set(schema: Pick<Schema, "bodies" | "models" | "robots">): void {
    this.bodies = schema.bodies;
    this.models = schema.models;
    this.robots = schema.robots;
  }

  name(row: number): string {
    return this.bodies[row]?.name ?? "";
  }

  namesOf(rows: readonly number[]): string[] {
    return rows.map((row) => this.name(row));
  }

  /** Names of the bodies of a kind. */
  ofKind(kind: BodyInfo["kind"]): string[] {
    return this.bodies.filter((b) => b.kind === kind).map((b) => b.name);
  }

  /** How many there are of each kind, in words; kinds without any are left out. */
  get counts(): string[] {
    const words: [BodyInfo["kind"], string][] = [["robot", "robot"], ["pedestrian", "pedestrian"], ["obstacle", "moving obstacle"], ["thing", "object"]]; // prettier-ignore
    const counted = words.map(([kind, word]) => [this.ofKind(kind).length, word] as const);
    return counted.filter(([n, word]) => n || word === "robot").map(([n, word]) => count(n, word));
  }

  get robotNames(): string[] {
    return this.bodies.slice(0, this.robots).map((b) => b.name);
  }

  /** The first robot of some names, or of all when there are none; "": none of them is a robot. */
  firstRobot(names: readonly string[]): string {
    const robots = this.robotNames;
    return (names.length ? names.find((n) => robots.includes(n)) : robots[0]) ?? "";
  }

  /** The names that belong to driving robots: stops and motors apply to these. */
  drivable(names: readonly string[]): string[] {
    const robots = new Map(this.bodies.slice(0, this.robots).map((b) => [b.name, b.model]));
    return names.filter((n) => {
      const model = robots.get(n);
      return model !== undefined && this.models[model]?.drives;
    });
  }

  /** Data for driving the named body; null: no such body, or it does not drive. */
  robot(name: string): Robot | null {
    const body = this.bodies.find((b) => b.name === name);
    const model = body && this.models[body.model];
    return model?.drives ? { name, maxV: model.max_v, maxW: model.max_w, omni: model.omni } : null;
  }
}
