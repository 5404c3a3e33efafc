// Pointers and selections of other people. It is loaded when a person shows itself.

import type { Person } from "../generated/messages";
import type { Camera } from "./camera";
import { drawText as text } from "./labels";
import { ROBOT_COLORS } from "./palette";
import type { World } from "./world";

/** The colour of a person. */
export function colorOf(person: Person): string {
  return ROBOT_COLORS[person.color % ROBOT_COLORS.length];
}

export function drawPeople(ctx: CanvasRenderingContext2D, world: World, camera: Camera, people: readonly Person[]): void {
  const [ox, oy] = world.schema?.origin ?? [0, 0];
  for (const person of people) {
    const color = colorOf(person);
    for (const name of new Set([...person.selected, ...person.holds])) {
      const row = world.rows.get(name);
      if (row === undefined || row >= world.count) continue;
      const [x, y] = camera.toScreen(...(world.pose(row).slice(0, 2) as [number, number]));
      const r = Math.max(12, world.radius[row] * camera.scale + 9);
      const holds = person.holds.includes(name);
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 7);
      ctx.lineWidth = holds ? 4 : 2;
      ctx.strokeStyle = color;
      ctx.setLineDash(holds ? [] : [8, 4]);
      ctx.stroke();
      ctx.setLineDash([]);
      text(ctx, world, holds ? `${person.name} holds it` : person.name, x - r, y - r - 4, world.palette.label);
    }
    if (!person.pointer) continue;
    const [x, y] = camera.toScreen(person.pointer[0] - ox, person.pointer[1] - oy);
    ctx.beginPath();
    for (const [dx, dy] of [[0, 0], [0, 17], [4.5, 13.5], [8, 20], [11, 18.5], [7.5, 12], [13, 12]]) ctx.lineTo(x + dx, y + dy); // prettier-ignore
    ctx.closePath();
    ctx.fillStyle = color;
    ctx.strokeStyle = world.palette.ground;
    ctx.lineWidth = 3;
    ctx.stroke();
    ctx.fill();
    ctx.strokeStyle = world.palette.label;
    ctx.lineWidth = 1;
    ctx.stroke();
    text(ctx, world, person.name, x + 14, y + 26, world.palette.label);
  }
}
