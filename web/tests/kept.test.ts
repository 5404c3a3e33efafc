import { describe, expect, it, vi } from "vitest";
import {
  colorsOf, hintedOf, layersOf, logOf, MAX_KEPT, MAX_TOKEN, objectIn, readKept, rendererOf, themeOf, tokenIn, tokenOf, writeKept,
} from "../src/stores/kept"; // prettier-ignore
import { Settings, SETTINGS_KEY } from "../src/stores/settings.svelte";
import { Token, TOKEN_KEY } from "../src/stores/token";
import { defaultLayers, LAYERS } from "../src/view/layers";
import { World } from "../src/view/world";
import { FakeStorage, noStorage } from "./storefakes";

const NONSENSE = [undefined, null, 0, 1, -1, NaN, "", "yes", "DARK", " dark", [], ["dark"], {}, { dark: true }, () => {}];

describe("values that are read", () => {
  it.each(NONSENSE)("nonsense (%j) is as if it were not there", (value) => {
    expect(themeOf(value, false)).toBe("light");
    expect(themeOf(value, true)).toBe("dark");
    expect(colorsOf(value)).toBe("auto");
    expect(rendererOf(value)).toBe("auto");
    expect(logOf(value)).toBe(false);
    expect(hintedOf(value)).toBe(false);
    expect(layersOf(value)).toEqual(defaultLayers());
  });

  it("are taken when they are what is expected", () => {
    expect(themeOf("light", true)).toBe("light");
    expect(colorsOf("robot")).toBe("robot");
    expect(rendererOf("canvas2d")).toBe("canvas2d");
    expect(logOf(true)).toBe(true);
    expect(hintedOf(true)).toBe(true);
  });

  it("layers: each is checked, others are not taken", () => {
    const kept: unknown = JSON.parse('{"grid": false, "odometry": true, "laser": "no", "sonar": 0, "wheels": true, "__proto__": {"fill": false}}');
    expect(layersOf(kept)).toEqual({ ...defaultLayers(), grid: false, odometry: true });
    expect(Object.keys(layersOf(kept))).toEqual(Object.keys(LAYERS));
    expect(layersOf(Object.create({ fill: false }))).toEqual(defaultLayers());
  });

  it.each([null, "", "{", "null", "[1]", '"dark"', "12", "true", `{"theme": "${"x".repeat(MAX_KEPT)}"}`])("no object: %.20j", (text) => {
    expect(objectIn(text)).toEqual({});
  });

  it("tokens are what a header can carry", () => {
    expect(tokenOf(" ab-C_1 ")).toBe("ab-C_1");
    expect(tokenOf("two words, für mich")).toBe("two words, für mich");
    for (const bad of [...NONSENSE.filter((v) => v !== "yes" && v !== "DARK" && v !== " dark"), "a\nb", "a\0b", "ключ", "x".repeat(MAX_TOKEN + 1)])
      expect(tokenOf(bad)).toBe("");
    expect(() => new Headers({ authorization: `Bearer ${tokenOf("ключ")}` })).not.toThrow();
  });

  it("tokens in addresses are checked too", () => {
    expect(tokenIn("http://x/#token=ab%0Ac")).toBe("");
    expect(tokenIn(`#token=${"x".repeat(MAX_TOKEN + 1)}`)).toBe("");
    expect(tokenIn("#token=%E0%A4%A")).toBe(""); // not UTF-8
  });
});

describe("storage", () => {
  it("may be missing, refuse, be full or hold no text", () => {
    const full = { getItem: () => 7 as unknown as string, setItem: () => { throw new Error("QuotaExceededError"); } }; // prettier-ignore
    expect(readKept(noStorage, "x")).toBe(null);
    expect(readKept(() => full, "x")).toBe(null);
    expect(writeKept(noStorage, "x", "y")).toBe(false);
    expect(writeKept(() => full, "x", "y")).toBe(false);
  });
});

describe("settings", () => {
  const made = (text: string | null, dark = false) => {
    const storage = new FakeStorage(text === null ? {} : { [SETTINGS_KEY]: text });
    const changed = vi.fn();
    return { storage, changed, settings: new Settings(() => storage, dark, changed) };
  };

  it("survive each other's versions and nonsense", () => {
    for (const text of [null, "", "nonsense", "[]", '{"theme": 3, "layers": ["grid"], "renderer": {}, "log": "yes", "colorBy": null}', '{"theme": {"toString": 1}}']) {
      const { settings } = made(text, true);
      expect([settings.theme, settings.colorBy, settings.rendererChoice, settings.showLog]).toEqual(["dark", "auto", "auto", false]);
      expect(settings.layers).toEqual(defaultLayers());
    }
    expect(() => new Settings(noStorage, false, () => {}).setTheme("dark")).not.toThrow();
  });

  it("stay: the next page has them", () => {
    const { storage, settings } = made(null);
    settings.setTheme("dark");
    settings.setColors("robot");
    settings.setRenderer("webgl2");
    settings.toggleLayer("grid");
    settings.toggleLog();
    settings.toggleModel("p3dx");
    expect(settings.takeHint()).toBe(true);
    const next = new Settings(() => storage, false, () => {});
    expect([next.theme, next.colorBy, next.rendererChoice, next.showLog]).toEqual(["dark", "robot", "webgl2", true]);
    expect(next.layers).toEqual({ ...defaultLayers(), grid: false });
    expect(next.hiddenModels).toEqual([]); // of one world only
    expect(next.takeHint()).toBe(false);
  });

  it("reach the world, and say what was switched", () => {
    const { settings, changed } = made(null);
    const world = new World();
    settings.toggleLayer("laser");
    settings.toggleModel("box");
    settings.setColors("robot");
    settings.setTheme("dark");
    const before = world.paletteVersion;
    settings.apply(world);
    expect([world.layers.laser, world.colorBy, [...world.hidden], world.paletteVersion]).toEqual([false, "robot", ["box"], before + 1]);
    expect(changed.mock.calls).toEqual([["laser"], [null], [null], [null]]);
    settings.toggleModel("box");
    expect(settings.hiddenModels).toEqual([]);
  });

  it("of a weak machine are not kept", () => {
    const { settings, storage } = made(null);
    settings.useLite();
    expect([settings.layers.grid, settings.layers.laser]).toEqual([false, true]);
    expect(storage.values.size).toBe(0);
  });
});

describe("the token of this tab", () => {
  const made = (hash: string, storage = new FakeStorage()) => {
    const replaced: string[] = [];
    return { storage, replaced, token: new Token({ hash, pathname: "/p", search: "?q" }, () => storage, (a) => void replaced.push(a)) };
  };

  it("is taken out of the address and kept", () => {
    const { token, storage, replaced } = made("#token=one");
    expect(token.get()).toBe("one");
    expect([storage.getItem(TOKEN_KEY), replaced]).toEqual(["one", ["/p?q"]]);
    expect(made("", storage).token.get()).toBe("one");
    expect(made("#token=two", storage).token.get()).toBe("two");
  });

  it("stays in the address when nothing can be kept", () => {
    const replace = vi.fn();
    expect(new Token({ hash: "#token=one", pathname: "/", search: "" }, noStorage, replace).get()).toBe("one");
    expect(replace).not.toHaveBeenCalled();
  });

  it("is not taken from nonsense", () => {
    expect(made("#token=a%00b", new FakeStorage({ [TOKEN_KEY]: "x\ny" })).token.get()).toBe("");
    expect(made("#token=", new FakeStorage({ [TOKEN_KEY]: "kept" })).token.get()).toBe("kept");
  });
});
