// Which bodies there are: robots first, then obstacles of the map and things that lie about.

import type { BodyInfo, Model, Schema } from "../generated/messages";
import type { Robot } from "../hands/driving";

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
