// The mark that tells where a body's front is.

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
