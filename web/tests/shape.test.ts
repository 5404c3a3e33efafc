import { describe, expect, it } from "vitest";
import type { Model } from "../src/generated/messages";
import { isLine } from "../src/view/shape";

const model = (length: number, width: number, drives = false): Model =>
  ({ drives, parts: [[[0, 0], [length, 0], [length, width], [0, width]]] }) as unknown as Model;

describe("a line", () => {
  it("is a thin body that does not drive", () => {
    expect(isLine(model(4, 0.02))).toBe(true);
    expect(isLine(model(0.02, 4))).toBe(true);
    expect(isLine(model(4, 0.2))).toBe(false);
    expect(isLine(model(4, 0.02, true))).toBe(false);
    expect(isLine({ drives: false, parts: [] } as unknown as Model)).toBe(false);
  });
});
