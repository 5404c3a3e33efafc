// Values from the browser's storage and from the address. Another version of the page, another program at the same address or a
// person may have written it: each value is checked by one function, and what is not as expected is as if it were not there.

import { defaultLayers, LAYERS, type LayerName, type Layers } from "../view/layers";

export const THEMES = ["light", "dark"] as const;
export const COLORS = ["auto", "model", "robot"] as const;
export const RENDERERS = ["auto", "webgl2", "canvas2d"] as const;
export type Theme = (typeof THEMES)[number];
export type ColorBy = (typeof COLORS)[number];
export type RendererChoice = (typeof RENDERERS)[number];

/** The part of the browser's `Storage` that is used. */
export interface KeptValues {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

/** Settings are a few hundred characters; of more, nothing is read. */
export const MAX_KEPT = 10_000;
/** Characters of a token; those that the simulator makes have 22. */
export const MAX_TOKEN = 512;

/** Text from storage; null: there is none, or the browser keeps nothing here (it throws then, also when storage is only named). */
export function readKept(storage: () => KeptValues, key: string): string | null {
  try {
    const text: unknown = storage().getItem(key);
    return typeof text === "string" ? text : null;
  } catch {
    return null;
  }
}

/** Put text into storage; whether it was kept. */
export function writeKept(storage: () => KeptValues, key: string, text: string): boolean {
  try {
    storage().setItem(key, text);
    return true;
  } catch {
    return false; // a private window, or storage is full
  }
}

/** The object in a JSON text; an empty one if there is none. */
export function objectIn(text: string | null): Record<string, unknown> {
  if (text === null || text.length > MAX_KEPT) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function oneOf<T extends string>(value: unknown, choices: readonly T[]): T | undefined {
  return choices.find((c) => c === value);
}

/** Light or dark; without a choice, as the machine is set. */
export function themeOf(value: unknown, prefersDark: boolean): Theme {
  return oneOf(value, THEMES) ?? (prefersDark ? "dark" : "light");
}

export function colorsOf(value: unknown): ColorBy {
  return oneOf(value, COLORS) ?? "auto";
}

export function rendererOf(value: unknown): RendererChoice {
  return oneOf(value, RENDERERS) ?? "auto";
}

/** Which layers are shown: those that there are, each true or false. */
export function layersOf(value: unknown): Layers {
  const layers = defaultLayers();
  if (!isObject(value)) return layers;
  for (const name of Object.keys(LAYERS) as LayerName[]) {
    const on = Object.hasOwn(value, name) ? value[name] : undefined;
    if (typeof on === "boolean") layers[name] = on;
  }
  return layers;
}

/** Whether the log is shown. */
export function logOf(value: unknown): boolean {
  return value === true;
}

/** Whether the hint for those who are here for the first time has been shown. */
export function hintedOf(value: unknown): boolean {
  return value === true;
}

/** A token that a header of HTTP can carry (printable Latin-1); "": it is none. */
export function tokenOf(value: unknown): string {
  if (typeof value !== "string") return "";
  const token = value.trim();
  return token.length <= MAX_TOKEN && /^[\x20-\x7e\xa1-\xff]+$/.test(token) ? token : "";
}

/** The token in pasted text or in the address: the token itself, or behind `#token=` as the simulator prints it. */
export function tokenIn(pasted: string): string {
  const text = pasted.trim();
  const hash = text.indexOf("#");
  const found = new URLSearchParams(hash < 0 ? text : text.slice(hash + 1)).get("token");
  return tokenOf(found ?? (hash < 0 && !/[\s/=]/.test(text) ? text : ""));
}
