// Actions of keys and buttons: each is a word of hands/keys.ts; the store of its subject carries it out.

import { actionOf, type Action, type Key, type Simple } from "../hands/keys";
import type { Adding } from "./adding.svelte";
import type { Capture } from "./capture.svelte";
import type { Clock } from "./clock.svelte";
import type { Drag } from "./drag";
import type { Driving } from "./driving.svelte";
import type { Fleet } from "./fleet";
import type { Log } from "./log.svelte";
import type { Maps } from "./maps.svelte";
import type { Panel, Panels } from "./panels.svelte";
import type { Asks, Redraw, Says } from "./ports";
import type { Probe } from "./probe.svelte";
import type { Roster } from "./roster.svelte";
import type { Selection } from "./selection.svelte";
import type { Settings } from "./settings.svelte";
import type { TimeLine } from "./timeline.svelte";
import type { Tools } from "./tools.svelte";
import type { Undo } from "./undo";
import type { Viewpoint } from "./viewpoint.svelte";

/** Removing more than these is asked about: clients of robots that are brought back have to connect again. */
export const ASK_ABOVE = 5;

/** All whom commands are about. */
export interface Subjects {
  readonly adding: Pick<Adding, "batch" | "cancel">;
  readonly capture: Capture;
  readonly clock: Clock;
  readonly drag: Drag;
  readonly driving: Driving;
  readonly fleet: Fleet;
  readonly log: Log;
  readonly maps: Maps;
  readonly panels: Panels;
  readonly probe: Probe;
  readonly roster: Roster;
  readonly selection: Selection;
  readonly session: Asks & { readonly stats: { clients: number } | null; readonly readOnly: boolean; readonly whyReadOnly: string };
  readonly notices: Says;
  readonly settings: Settings;
  readonly timeline: TimeLine;
  readonly tools: Tools;
  readonly undo: Undo;
  readonly viewpoint: Viewpoint;
}

/** A key that was pressed, and where. */
export interface Pressed extends Key {
  /** It is held, and comes again. */
  repeat: boolean;
  /** Text is being typed, or a dialog is open: keys are for it. */
  elsewhere: boolean;
  /** It is on a button, which Space and Enter press. */
  onButton: boolean;
}

export class Commands {
  private table: Record<Simple, () => unknown>;

  constructor(
    private on: Subjects,
    /** Undo a gesture that is going on; whether there was one. */
    private cancelGesture: () => boolean,
    private redraw: Redraw,
    private toggle: (panel: Panel) => void,
  ) {
    const { capture, clock, fleet, log, maps, panels, roster, selection, session, timeline, tools, undo, viewpoint } = on;
    this.table = {
      pause: () => clock.togglePause(),
      step: () => (timeline.isLooking || timeline.isReplay ? timeline.step(1) : clock.step()),
      stepBack: () => timeline.step(-1),
      markBefore: () => timeline.toMark(-1),
      markAfter: () => timeline.toMark(1),
      goOn: () => this.goOn(),
      faster: () => clock.changeSpeed(1),
      slower: () => clock.changeSpeed(-1),
      home: () => viewpoint.home(),
      follow: () => viewpoint.followRobot(viewpoint.follow ? null : (selection.names[0] ?? null)),
      cancel: () => this.cancel(),
      remove: () => this.remove(),
      clone: () => fleet.clone(),
      rename: () => (fleet.drivable.length ? panels.open("rename") : this.on.notices.say("select the robots to rename")),
      selectAll: () => selection.set(roster.robotNames),
      help: () => panels.open("help"),
      load: () => panels.open("map"),
      reset: () => (session.stats?.clients && !session.readOnly ? panels.open("reset") : this.reset()),
      undo: () => undo.undo(),
      redo: () => undo.redo(),
      reload: () => session.ask({ type: "reload" }, "map read again"),
      snapshot: () => capture.save("png", clock.info.time),
      save: () => maps.save(clock.info.time),
      sequence: () => (panels.dialog = "sequence"),
      exit: () => (panels.dialog = "exit"),
      add: () => panels.open("add"),
      measure: () => tools.set(tools.tool === "measure" ? "select" : "measure"),
      log: () => log.toggle(),
      sidebar: () => (panels.side = !panels.side),
      stop: () => this.stop(),
      goThere: () => this.goThere(),
      estimate: () => this.goThere("estimate"),
      table: () => this.toggle("table"),
      clients: () => this.toggle("clients"),
      traffic: () => this.toggle("traffic"),
      inset: () => this.toggle("inset"),
      values: () => this.toggle("values"),
      heat: () => this.toggle("heat"),
      people: () => this.toggle("people"),
      emergency: () => this.emergency(),
    };
  }

  simple(what: Simple): void {
    this.table[what]();
  }

  /** Whether the key did something here: the browser is not to do its own. */
  keyDown(key: Pressed): boolean {
    const { panels, selection, driving } = this.on;
    if (key.elsewhere || panels.dialog !== "none") {
      // the start dialog is no answer to a key: the simulator waits
      if (key.key === "Escape" && panels.dialog !== "start") panels.close();
      return false;
    }
    if (!key.onButton && !key.ctrl && !key.alt && this.on.tools.key(key.key, key.shift)) return true;
    const action = actionOf(key, selection.names.length > 0, driving.driven() !== null);
    if (!action || (key.onButton && (key.key === " " || key.key === "Enter"))) return false;
    this.act(action, key.repeat);
    return true;
  }

  private act(action: Action, repeat: boolean): void {
    const { settings, probe, drag, viewpoint, selection, driving } = this.on;
    if (action.do === "layer") settings.toggleLayer(action.layer);
    else if (action.do === "debug") probe.toggle(action.debug);
    else if (action.do === "nudge") drag.nudge(selection.rows, action.forward, action.turn);
    else if (action.do === "pan") viewpoint.pan(-action.x, -action.y);
    else if (action.do === "zoom") viewpoint.zoom(action.factor);
    else if (action.do === "arrow") {
      if (!repeat) driving.press(action.key);
    } else if (!repeat || action.do === "step" || action.do === "stepBack") this.simple(action.do);
  }

  private remove(): void {
    const { selection, panels, fleet } = this.on;
    if (selection.names.length > ASK_ABOVE) panels.open("remove");
    else if (selection.names.length) void fleet.removeAll([...selection.names]);
  }

  /** Continue the world from the shown moment; asks first if clients would notice. */
  goOn(): void {
    const { timeline, panels, session } = this.on;
    const { looked } = timeline;
    if (!looked || session.readOnly) return;
    if (session.stats?.clients || looked.missing.length || looked.gone.length) panels.open("goOn");
    else void timeline.goOn();
  }

  /** All back to where they started. */
  async reset(): Promise<void> {
    const { session, notices } = this.on;
    if ((await session.ask({ type: "reset", names: null })) !== undefined) notices.offer("all back to where they started");
  }

  private goThere(tool: "goal" | "estimate" = "goal"): void {
    const { tools, fleet, session, notices } = this.on;
    if (tools.tool === tool) tools.set("select");
    else if (session.readOnly) notices.say(session.whyReadOnly, true);
    else if (!fleet.drivable.length) notices.say("select the robots that are to drive");
    else {
      tools.set(tool);
      notices.say(tool === "goal" ? "click the goal, drag to choose the heading; Shift adds goals, Esc ends" : "press where the robot is, drag to its heading; Esc ends");
    }
  }

  private emergency(): void {
    const { driving, fleet, session, notices } = this.on;
    driving.letGo();
    if (session.readOnly) notices.say(session.whyReadOnly, true);
    else void fleet.stopAll();
  }

  private stop(): void {
    this.on.driving.letGo();
    void this.on.fleet.stop();
  }

  /** Escape: what was begun last ends. */
  private cancel(): void {
    const { timeline, tools, viewpoint, selection } = this.on;
    if (this.cancelGesture()) return;
    if (timeline.isLooking) void timeline.back();
    else if (this.on.adding.batch) this.on.adding.cancel();
    else if (tools.tool !== "select") tools.cancel();
    else if (viewpoint.follow) viewpoint.followRobot(null);
    else selection.set([]);
    this.redraw();
  }
}
