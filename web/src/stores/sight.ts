// What a user sees of the world: part, selection, panels. A tab keeps it over a reload, and a link carries it to others.

import { objectIn, readKept, writeKept, type KeptValues } from "./kept";
import { MAX_SCALE, MIN_SCALE } from "../view/camera";

export interface Sight {
  /** Point in the middle of the window, m in the world's frame. */
  x: number;
  y: number;
  /** Pixels per metre. */
  scale: number;
  selected: string[];
  follow: string;
  headingUp: boolean;
}

export interface KeptSight extends Sight {
  /** The map that it is about: another one is shown whole. */
  map: string;
  /** Whether a hand has chosen this part. */
  moved: boolean;
  side: boolean;
  table: boolean;
  stick: boolean;
  inset: boolean;
  values: boolean;
}

export const SIGHT_KEY = "botyard-sight";
/** Names in a link: addresses have a limit, and a token needs its place. */
export const MAX_SHARED = 50;
/** Farthest point of a sight, m. */
const FAR = 1e9;

function number(value: unknown, low: number, high: number): number | null {
  return typeof value === "number" && value >= low && value <= high ? value : null;
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((n): n is string => typeof n === "string" && n.length <= 200).slice(0, 5000) : [];
}

/** A sight in an object of unknown origin; null: there is none. */
function sightOf(value: Record<string, unknown>): Sight | null {
  const [x, y, scale] = [number(value.x, -FAR, FAR), number(value.y, -FAR, FAR), number(value.scale, MIN_SCALE, MAX_SCALE)];
  if (x === null || y === null || scale === null) return null;
  const follow = typeof value.follow === "string" ? value.follow.slice(0, 200) : "";
  return { x, y, scale, selected: namesOf(value.selected), follow, headingUp: value.headingUp === true };
}

/** The sight that a tab has kept; null: none. */
export function keptSight(storage: () => KeptValues): KeptSight | null {
  const value = objectIn(readKept(storage, SIGHT_KEY));
  const sight = sightOf(value);
  if (!sight) return null;
  const on = (name: string) => value[name] === true;
  return { ...sight, map: typeof value.map === "string" ? value.map : "", moved: on("moved"), side: on("side"), table: on("table"), stick: on("stick"), inset: on("inset"), values: on("values") };
}

export function keepSight(storage: () => KeptValues, sight: KeptSight): void {
  const text = JSON.stringify(sight);
  writeKept(storage, SIGHT_KEY, text.length <= 10_000 ? text : JSON.stringify({ ...sight, selected: sight.selected.slice(0, MAX_SHARED) }));
}

/** The sight in the part of an address after the #; null: none. */
export function sightIn(hash: string): Sight | null {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const numbers = (fields.get("view") ?? "").split(",").map((text) => (text.trim() ? Number(text) : NaN));
  if (numbers.length !== 3) return null;
  const [x, y, scale] = numbers;
  const selected = (fields.get("select") ?? "").split(",").map(unescapedName).filter((n) => n !== "").slice(0, MAX_SHARED); // prettier-ignore
  return sightOf({ x, y, scale, selected, follow: fields.get("follow") ?? "", headingUp: fields.get("up") === "heading" });
}

/** The part of an address after the #, with a token: "" for none. */
export function hashOf(sight: Sight, token: string): string {
  const fields = new URLSearchParams();
  if (token) fields.set("token", token);
  fields.set("view", [sight.x.toFixed(3), sight.y.toFixed(3), Number(sight.scale.toPrecision(4))].join());
  if (sight.selected.length) fields.set("select", sight.selected.slice(0, MAX_SHARED).map(escapedName).join());
  if (sight.follow) fields.set("follow", sight.follow);
  if (sight.headingUp) fields.set("up", "heading");
  return `#${fields.toString()}`;
}

// a name may contain the separator
const escapedName = (name: string) => name.replaceAll("\\", "\\\\").replaceAll(",", "\\c");
const unescapedName = (text: string) => text.replace(/\\(.)/g, (_, c: string) => (c === "c" ? "," : c));
