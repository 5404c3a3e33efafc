// Which key does what: one table for the keyboard and for the help.

import { DEBUG, LAYERS, type DebugName, type LayerName } from "../view/layers";

export type Action =
  | { do: "layer"; layer: LayerName }
  | { do: "debug"; debug: DebugName }
  | { do: "nudge"; forward: number; turn: number }
  | { do: "arrow"; key: string }
  | { do: "pan"; x: number; y: number }
  | { do: "zoom"; factor: number }
  | { do: Simple };

export type Simple =
  | "pause" | "step" | "faster" | "slower" | "home" | "follow" | "cancel" | "remove" | "clone" | "selectAll" | "help"
  | "load" | "reset" | "snapshot" | "sequence" | "exit" | "add" | "measure" | "log" | "sidebar" | "stop" | "reload" | "save"
  | "undo" | "redo" | "emergency" | "goThere" | "estimate" | "table" | "clients" | "traffic" | "inset" | "values" | "heat" | "people" | "rename" | "stepBack" | "goOn" | "markBefore" | "markAfter"; // prettier-ignore

export interface Key {
  key: string;
  ctrl: boolean;
  shift: boolean;
  alt: boolean;
}

const CTRL: Record<string, Simple> = {
  l: "load", s: "save", p: "reset", f: "snapshot", g: "sequence", q: "exit", a: "selectAll", d: "clone", r: "reload", z: "undo", y: "redo",
}; // prettier-ignore

const CTRL_SHIFT: Record<string, Simple> = { z: "redo" };

const PLAIN: Record<string, Simple> = {
  " ": "pause", p: "pause", ".": "step", "]": "faster", "[": "slower", h: "home", Home: "home", c: "follow", Escape: "cancel",
  Delete: "remove", Backspace: "remove", ",": "stepBack", "<": "markBefore", ">": "markAfter", Enter: "goOn", "?": "help", F1: "help", F2: "rename", "+": "add", Insert: "add", r: "measure", q: "log", j: "sidebar",
  x: "stop", X: "emergency", G: "goThere", T: "table", I: "clients", Y: "traffic", O: "inset", V: "values", H: "heat", P: "people",
}; // prettier-ignore

/** Turn and way of a nudge (W, A, S, D as in AMRISim): m and rad. */
export const NUDGE = 0.1;
export const NUDGE_TURN = (5 * Math.PI) / 180;

const NUDGES: Record<string, [number, number]> = { w: [NUDGE, 0], s: [-NUDGE, 0], a: [0, NUDGE_TURN], d: [0, -NUDGE_TURN] };
const ARROWS: Record<string, [number, number]> = { ArrowUp: [0, -60], ArrowDown: [0, 60], ArrowLeft: [-60, 0], ArrowRight: [60, 0] };

/** Return the action of a key; `selected`: a body is selected, `drives`: the arrow keys drive it. */
export function actionOf(k: Key, selected: boolean, drives: boolean): Action | null {
  const lower = k.key.length === 1 ? k.key.toLowerCase() : k.key;
  if (k.ctrl) {
    const what = (k.shift ? CTRL_SHIFT : CTRL)[lower];
    return what && !k.alt ? { do: what } : null;
  }
  if (k.alt) {
    for (const [name, d] of Object.entries(DEBUG)) if (d.key === lower) return { do: "debug", debug: name as DebugName };
    return null;
  }
  if (ARROWS[k.key]) {
    if (k.shift) return k.key === "ArrowUp" ? { do: "zoom", factor: 1.25 } : k.key === "ArrowDown" ? { do: "zoom", factor: 0.8 } : null;
    if (drives) return { do: "arrow", key: k.key };
    return { do: "pan", x: ARROWS[k.key][0], y: ARROWS[k.key][1] };
  }
  if (selected && !k.shift && NUDGES[lower]) return { do: "nudge", forward: NUDGES[lower][0], turn: NUDGES[lower][1] };
  if (PLAIN[k.key]) return { do: PLAIN[k.key] };
  if (k.key === "-") return { do: "zoom", factor: 0.8 };
  if (k.key === "=") return { do: "zoom", factor: 1.25 };
  for (const [name, layer] of Object.entries(LAYERS)) if (layer.key === lower) return { do: "layer", layer: name as LayerName };
  return null;
}

export const FINGERS: [string, [string, string][]] = [
  "Fingers",
  [
    ["tap", "select a body; a tap on free space deselects"],
    ["drag a body", "move it; its odometry does not notice"],
    ["hold a body, then drag", "turn it towards the finger"],
    ["double tap a robot", "follow it"],
    ["drag free space", "pan"],
    ["two fingers", "pan and zoom"],
    ["joystick", "a button of the toolbar; it drives the selected robot"],
    ["File, More", "all that a narrow toolbar leaves out"],
  ],
];

export const HELP: [string, [string, string][]][] = [
  [
    "Mouse",
    [
      ["click, Ctrl-click", "select a body, or one more"],
      ["drag a body", "move it; its odometry does not notice"],
      ["right-drag, Shift- or Ctrl-drag a body", "turn it towards the pointer"],
      ["drag free space", "pan; with Shift: select the bodies in the box"],
      ["wheel", "zoom at the pointer; over a selected body: turn it, unless the view follows it"],
      ["middle-drag, Alt-drag", "zoom"],
      ["double-click a robot", "follow it"],
      ["drop a map onto the page", "load it; files that belong together at once"],
    ],
  ],
  [
    "Robots",
    [
      ["arrows", "drive the selected robot while held; without one: pan"],
      ["Shift-arrow up, down", "zoom"],
      ["W S A D", "nudge what is selected"],
      ["x", "stop the selected robots"],
      ["Shift-X", "emergency stop of the selected robots; without a selection, of all"],
      ["Shift-G", "go there: click or drag the goal of the selected robots; Shift-click adds a goal"],
      ["Shift-T", "table of the fleet"],
      ["Shift-Y", "traffic on sector paths: who waits for whom, and why"],
      ["Shift-I", "clients, ROS topics, and who drove which robot"],
      ["c", "follow the selected robot"],
      ["Insert, +", "add a robot or an obstacle"],
      ["Ctrl-D", "clone what is selected"],
      ["F2", "rename the selected robots"],
      ["Delete", "remove what is selected; more than five are asked about"],
      ["Ctrl-A", "select all robots"],
    ],
  ],
  [
    "Time and world",
    [
      ["Space, p", "pause, go on"],
      [".", "one step; while looking back, the moment after"],
      [",", "look back: the moment before"],
      ["< >", "look back: the event before, and the one after"],
      ["Enter, Esc", "while looking back: let the world go on from there; back to now"],
      ["[ ]", "slower, faster"],
      ["Ctrl-P", "all back to where they started; asks while clients are connected"],
      ["Ctrl-Z", "undo what this page did last with bodies or the map"],
      ["Ctrl-Shift-Z, Ctrl-Y", "do it again"],
      ["Ctrl-L", "load a map or a world"],
      ["Ctrl-S", "save the world as a scenario"],
      ["Ctrl-R", "read the map's file again"],
    ],
  ],
  [
    "Page",
    [
      ["h", "show everything"],
      ["r", "measure: lengths, angles, areas"],
      ["Shift-H", "heat maps: visits, stalls, waits, coverage"],
      ["Shift-P", "people: show your pointer and selection, see others"],
      ["Shift-O", "overview in a corner"],
      ["Shift-V", "values under the pointer"],
      ["arrows, Enter, A D", "with a tool: move the cross (with Shift finely), press there, turn"],
      ["Ctrl-F", "save a picture"],
      ["Ctrl-G", "save pictures at an interval"],
      ["q", "log"],
      ["j", "side bar"],
      ["Esc", "cancel; deselect"],
      ["?", "this help"],
      ["Ctrl-Q", "end the simulator"],
    ],
  ],
  ["Layers", Object.values(LAYERS).map((l) => [l.key, l.label] as [string, string])],
  ["Looking into the engine", Object.values(DEBUG).map((d) => [`Alt-${d.key}`, d.label] as [string, string])],
];
