import { unzipSync } from "fflate";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bundle, bundleName } from "../src/net/bundle";
import { tokenIn } from "../src/stores/kept";
import { clock, count, degrees, escaped, fixed, MAX_NAME, percents, shown } from "../src/text";

describe("foreign text", () => {
  it.each([
    ["plain name", "plain name"],
    ["Büro 3 – ö日本", "Büro 3 – ö日本"],
    ["a\nb\tc", "a\\x0ab\\x09c"],
    ["\x1b[31mred", "\\x1b[31mred"],
    ["\u202eright to left", "\\u202eright to left"],
    ["zero\u200bwidth", "zero\\u200bwidth"],
    ["no\u00a0break\u2028line", "no\\xa0break\\u2028line"],
    ["\u{e0041}tag", "\\U000e0041tag"],
    ["<b>&amp;50%d", "<b>&amp;50%d"],
  ])("%j is shown as %j", (text, expected) => {
    expect(escaped(text)).toBe(expected);
    expect(shown(text)).toBe(expected);
  });

  it("is cut", () => {
    expect(shown("x".repeat(MAX_NAME))).toBe("x".repeat(MAX_NAME));
    expect(shown("x".repeat(MAX_NAME + 1))).toBe("x".repeat(MAX_NAME - 1) + "…");
    expect([...shown("\n".repeat(1e6))].length).toBe(MAX_NAME);
    expect([...shown("😀".repeat(1000), 10)].length).toBe(10);
    expect(shown("abc", 2)).toBe("a…");
  });

  it("never becomes HTML anywhere in the page", () => {
    const found = readdirSync("src", { recursive: true, encoding: "utf8" })
      .filter((f) => /\.(svelte|ts)$/.test(f))
      .filter((f) => /\{@html|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc/.test(readFileSync(`src/${f}`, "utf8")));
    expect(found).toEqual([]);
  });
});

it("counts", () => {
  expect([count(0, "robot"), count(1, "robot"), count(2, "robot")]).toEqual(["0 robots", "1 robot", "2 robots"]);
});

describe("a token that was pasted", () => {
  it.each([
    ["http://127.0.0.1:8100/#token=ab-C_1", "ab-C_1"],
    ["  http://127.0.0.1:8100/#token=abc\n", "abc"],
    ["#token=abc", "abc"],
    ["token=abc", "abc"],
    ["ab-C_1", "ab-C_1"],
    ["", ""],
    ["http://127.0.0.1:8100/", ""],
    ["http://127.0.0.1:8100/#", ""],
    ["#", ""],
    ["two words", ""],
  ])("%j is %j", (pasted, token) => expect(tokenIn(pasted)).toBe(token));
});

describe("files that belong together", () => {
  it("are called after the one that names the others", () => {
    expect(bundleName(["a.map"])).toBe("a.map");
    expect(bundleName(["floor.pgm", "lab.yaml"])).toBe("lab.zip");
    expect(bundleName(["a.png", "b.inc", "cave.WORLD"])).toBe("cave.zip");
    expect(bundleName(["a.b.png", "c.png"])).toBe("a.b.zip");
  });

  it("are one archive that holds each", async () => {
    const files = [new File(["image: floor.pgm"], "lab.yaml"), new File([new Uint8Array([80, 53, 10])], "floor.pgm")];
    const parts = unzipSync(new Uint8Array(await (await bundle(files)).arrayBuffer()));
    expect(new TextDecoder().decode(parts["lab.yaml"])).toBe("image: floor.pgm");
    expect([...parts["floor.pgm"]]).toEqual([80, 53, 10]);
  });

  it("are refused when two have one name, or one cannot be read", async () => {
    await expect(bundle([new File(["1"], "a"), new File(["2"], "a")])).rejects.toThrow("two files are called a");
    const folder = { name: "maps", arrayBuffer: () => Promise.reject(new Error("NotReadableError")) } as unknown as File;
    await expect(bundle([folder])).rejects.toThrow("a folder is sent as a .zip");
  });
});

describe("numbers", () => {
  it("that round to zero have no sign", () => {
    expect([fixed(-0.004, 2), fixed(-0, 3), fixed(-0.006, 2), fixed(1.25, 1)]).toEqual(["0.00", "0.000", "-0.01", "1.3"]);
    expect(percents([-0.00001, 0.0126, -0.5])).toBe("0.00, 1.26, -50.00 %");
    expect([degrees(-1e-4), degrees(-0), degrees(-Math.PI / 2), degrees(-0.0009)]).toEqual(["0.0°", "0.0°", "-90.0°", "-0.1°"]);
  });

  it("of a clock carry", () => {
    expect([clock(0), clock(59.94), clock(59.99), clock(60), clock(3599.96), clock(36_000.1)]).toEqual(
      ["0:00:00.0", "0:00:59.9", "0:00:59.9", "0:01:00.0", "0:59:59.9", "10:00:00.1"],
    );
  });
});
