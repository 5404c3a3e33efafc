// Drawing of a body's shape: the mark of its front, and whether it is a line.

import type { Model } from "../generated/messages";

/** A triangle at the nose of a body that drives, in its frame, m; null for obstacles. */
export function headingMark(model: Model): [number, number][] | null {
  const outline = model.parts[0];
  if (!model.drives || !outline) return null;
  let nose = 0;
  let half = 0;
  for (const [x, y] of outline) {
    nose = Math.max(nose, x);
    half = Math.max(half, Math.abs(y));
  }
  return [
    [nose * 0.94, 0],
    [nose * 0.42, half * 0.42],
    [nose * 0.42, -half * 0.42],
  ];
}

/** The wheels of a car-like drive as rectangles in its frame, m, by the angle of its steered axle: all axles meet in the centre of the turn. */
export function wheelShapes(model: Model, steering: number): [number, number][][] {
  const slope = Math.tan(steering);
  const r = model.wheel_radius;
  return model.wheels.map(([x, y]) => {
    const th = x ? Math.atan((x * slope) / (x - y * slope)) : 0;
    const [c, s] = [Math.cos(th) * r, Math.sin(th) * r];
    return [[1, 0.35], [-1, 0.35], [-1, -0.35], [1, -0.35]].map(([a, b]) => [x + a * c - b * s, y + a * s + b * c]); // prettier-ignore
  });
}

/** Widest body that counts as a line, such as a reflector of a map (2 cm), m. */
const LINE = 0.03;

/** Whether a body is a line: its edge has its own colour, which an edge of another colour would hide. */
export function isLine(model: Model): boolean {
  if (model.drives || !model.parts.length) return false;
  const extent = (axis: 0 | 1) => {
    const all = model.parts.flatMap((part) => part.map((corner) => corner[axis]));
    return Math.max(...all) - Math.min(...all);
  };
  return Math.min(extent(0), extent(1)) <= LINE;
}
