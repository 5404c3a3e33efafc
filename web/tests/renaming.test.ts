import { expect, test } from "vitest";
import { firstPattern, newNames } from "../src/stores/renaming";

test("one robot gets the name, several get numbers of equal width", () => {
  expect(newNames(" eve ", 1)).toEqual(["eve"]);
  expect(newNames("a#b", 1)).toEqual(["a#b"]);
  expect(newNames("cart", 2)).toEqual(["cart_1", "cart_2"]);
  expect(newNames("x#y", 11).slice(8)).toEqual(["x09y", "x10y", "x11y"]);
});

test("the first pattern is what the names have in common", () => {
  expect(firstPattern(["ann"])).toBe("ann");
  expect(firstPattern(["p3dx_002", "p3dx_003"])).toBe("p3dx_#");
  expect(firstPattern(["ann", "bob"])).toBe("robot_#");
});
