// The center of the page: it makes the stores and passes each message to the stores that need it.

import { PAST, type Details, type Push, type Schema, type View, type Welcome } from "./generated/messages";
import { Connection, type Status } from "./net/connection";
import { NO_MAP, type WorldMap } from "./net/frames";
import { Capture } from "./stores/capture.svelte";
import { Chart } from "./stores/chart.svelte";
import { Clock } from "./stores/clock.svelte";
import { Commands, type Subjects } from "./stores/commands";
import { Drag } from "./stores/drag";
import { Driving } from "./stores/driving";
import { Fleet } from "./stores/fleet";
import type { KeptValues } from "./stores/kept";
import { Log } from "./stores/log.svelte";
import { Maps } from "./stores/maps.svelte";
import { Movie } from "./stores/movie";
import { Notices } from "./stores/notices.svelte";
import { Painter } from "./stores/painter.svelte";
import { Panels } from "./stores/panels.svelte";
import type { Download, Fetch, Fetched } from "./stores/ports";
import { Probe } from "./stores/probe.svelte";
import { Readouts } from "./stores/readouts.svelte";
import { Recording } from "./stores/recording";
import { Roster } from "./stores/roster.svelte";
import { Selection } from "./stores/selection.svelte";
import { Session } from "./stores/session.svelte";
import { Settings } from "./stores/settings.svelte";
import { TimeLine } from "./stores/timeline.svelte";
import { Tools } from "./stores/tools.svelte";
import { Touch } from "./stores/touch";
import { Undo } from "./stores/undo";
import { Written } from "./stores/written.svelte";
import { Viewpoint } from "./stores/viewpoint.svelte";
import { Camera } from "./view/camera";
import type { LayerName } from "./view/layers";
import { World } from "./view/world";

/** The parts of the browser that the page uses. */
export interface Browser {
  /** May throw: some browsers keep nothing for some pages. */
  storage: () => KeptValues;
  prefersDark: boolean;
  /** Of the window, pixels. */
  width: number;
  nextRepaint: (paint: () => void) => void;
  fetch: Fetch;
  download: Download;
  save: Fetched;
  /** Colours of the page around the world. */
  setTheme: (theme: string) => void;
  /** Remember the token for this tab. */
  keepToken: (token: string) => void;
}

/** Robots whose values the simulator is asked for. */
const MAX_DETAILS = 50;
const HINT = "Click a robot to see what it senses, drag it to move it, drive it with the arrow keys. ? shows all keys.";

export class App implements Subjects {
  readonly world = new World();
  readonly camera = new Camera();
  readonly connection: Connection;
  readonly notices = new Notices();
  readonly roster = new Roster();
  readonly readouts = new Readouts();
  readonly painter: Painter;
  readonly session: Session;
  readonly settings: Settings;
  readonly log: Log;
  readonly selection: Selection;
  readonly viewpoint: Viewpoint;
  readonly tools: Tools;
  readonly drag: Drag;
  readonly driving: Driving;
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly maps: Maps;
  readonly capture: Capture;
  readonly probe: Probe;
  readonly panels: Panels;
  readonly commands: Commands;
  readonly timeline: TimeLine;
  readonly chart: Chart;
  readonly touch: Touch;
  readonly undo: Undo;
  readonly recording: Recording;
  readonly movie: Movie;
  readonly written: Written;
  private pendingSchema: Schema | null = null;

  constructor(
    url: string,
    token: string,
    private browser: Browser,
  ) {
    const { world, camera, notices, roster } = this;
    const { fetch, download } = browser;
    const painter = (this.painter = new Painter(browser.nextRepaint, () => this.paint()));
    const { redraw } = painter;
    const connection = (this.connection = new Connection(url, token, {
      status: (status, reason) => this.connected(status, reason),
      message: (message) => this.receive(message),
      frame: redraw,
    }));
    const session = (this.session = new Session(connection, notices));
    this.settings = new Settings(browser.storage, browser.prefersDark, (layer) => this.restyled(layer));
    this.log = new Log(this.settings);
    const selection = (this.selection = new Selection(world, roster, (names) => this.selected(names), redraw));
    const viewpoint = (this.viewpoint = new Viewpoint(camera, world, redraw));
    this.tools = new Tools(world, camera, session, notices, redraw);
    const undo = (this.undo = new Undo(session, notices));
    this.recording = new Recording(session, notices);
    this.movie = new Movie(session, notices);
    this.written = new Written(session, browser.save);
    this.drag = new Drag(world, roster, session, redraw, undo, notices);
    this.driving = new Driving(selection, roster, session, notices, (command) => connection.request({ type: "drive", ...command }));
    this.fleet = new Fleet(selection, roster, session, notices, (request) => connection.request(request), undo.group);
    this.clock = new Clock(session);
    this.timeline = new TimeLine(session, notices, () => this.clock.info.time, () => this.lookedBack());
    this.chart = new Chart(session);
    this.maps = new Maps((map) => this.setMap(map), session, notices, () => connection.token, () => session.welcome?.page ?? 0, fetch, download);
    this.capture = new Capture(async (kind) => (await painter.stage?.picture(kind)) ?? null, notices, download);
    this.probe = new Probe(world, camera, session, () => roster.firstRobot(selection.names), redraw);
    this.panels = new Panels(browser.width, session, notices);
    this.commands = new Commands(this, () => painter.stage?.cancelGesture() ?? false, redraw);
    this.touch = new Touch(world, camera, session, roster, selection, viewpoint, this.drag, this.tools);
    this.restyled(null);
    connection.view = this.view();
  }

  useToken(token: string): void {
    this.browser.keepToken(token);
    this.connection.useToken(token);
  }

  /** Send a map or world that is on this computer. */
  async upload(files: readonly File[]): Promise<void> {
    if (await this.maps.upload(files)) this.panels.close("map");
  }

  // -- messages of the simulator

  private connected(status: Status, reason: string): void {
    this.session.connected(status, reason);
    if (status === "refused") this.panels.close(); // a panel would cover the message about it
    if (status !== "open") {
      this.driving.letGo();
      this.drag.lose();
      this.timeline.lose();
      this.chart.lose();
    }
  }

  /** Another moment is shown, or the present again. */
  private lookedBack(): void {
    const { session, timeline } = this;
    if (timeline.isLooking && !session.looksBack) {
      this.driving.letGo();
      this.drag.lose();
    }
    session.looksBack = timeline.isLooking;
  }

  private receive(message: Push): void {
    if (message.type === "welcome") this.welcomed(message);
    else if (message.type === "started") this.started();
    else if (message.type === "schema") {
      // it counts from the first frame on that bears its number: until then the old one explains what is shown
      this.pendingSchema = message;
      if (!this.world.frame) this.setSchema(message);
    } else if (message.type === "status") {
      this.session.told(message);
      this.timeline.told(message.timeline ?? null);
      void this.chart.told(message.timeline?.chart ?? false);
      if (!this.session.start) this.hint(); // now it is known whether a recording is shown
    } else if (message.type === "marks") this.timeline.marked(message.marks);
    else if (message.type === "details") this.detailed(message);
    else if (message.type === "files") this.written.paths = message.paths;
    else if (message.type === "log") this.log.add(message.lines, message.lost);
  }

  private welcomed(message: Welcome): void {
    const first = this.session.welcomed(message);
    this.log.clear();
    if (message.start && !message.read_only) this.panels.open("start");
    else this.panels.close("start");
    if (first && message.graphics === "lite") {
      this.settings.useLite();
      this.connection.setView(this.view());
    }
  }

  private started(): void {
    this.session.started();
    this.panels.close("start");
    this.viewpoint.refit();
    this.hint();
  }

  private hint(): void {
    if (!this.session.readOnly && this.settings.takeHint()) this.notices.say(HINT, false, 10);
  }

  private setSchema(schema: Schema): void {
    const { world, roster, selection, drag, maps } = this;
    const { map } = schema;
    const [ox, oy] = world.schema?.origin ?? schema.origin;
    const [dx, dy] = [schema.origin[0] - ox, schema.origin[1] - oy];
    const held = drag.held();
    const before = new Set(roster.bodies.map((b) => b.name));
    if (maps.isSame(map)) this.viewpoint.shift(dx, dy);
    else {
      // the walls of another map come later; its bodies are never shown in the old one
      this.setMap({ ...NO_MAP, name: map.name, origin: schema.origin, bounds: map.bounds ?? null });
      this.viewpoint.refit(map.view ?? null);
    }
    void maps.show(map);
    world.setSchema(schema);
    roster.set(schema);
    selection.renumber(before);
    drag.regrab(held, dx, dy);
    this.viewpoint.forget((name) => world.rows.has(name));
  }

  private setMap(map: WorldMap): void {
    this.world.setMap(map);
    this.painter.redraw();
  }

  // -- what a person has changed

  private selected(names: string[]): void {
    this.readouts.keepOnly(names);
    this.driving.letGo();
    this.connection.setView(this.view());
  }

  /** Values of the selected, and what their devices have found. */
  private detailed(message: Details): void {
    this.readouts.receive(message.time, message.robots);
    const marked = message.robots.map((r) => [r.name, r.devices.flatMap((d) => d.marks)] as const).filter(([, marks]) => marks.length);
    if (marked.length || this.world.marks.size) this.painter.redraw();
    this.world.marks = new Map(marked);
  }

  private restyled(layer: LayerName | null): void {
    this.settings.apply(this.world);
    this.browser.setTheme(this.settings.theme);
    if (layer) this.connection.setView(this.view());
    if (layer === "trails" && this.settings.layers.trails) this.world.trails.clear();
    this.painter.redraw();
  }

  /** The data that the simulator is asked to send. */
  private view(): View {
    const { layers } = this.settings;
    return {
      readings: layers.laser || layers.sonar ? (layers.selectedOnly ? "selected" : "all") : "none",
      odometry: layers.odometry,
      velocity: layers.velocity,
      selected: this.selection.names.slice(0, MAX_DETAILS),
    };
  }

  // -- drawing

  private paint(): boolean {
    const { world, camera, connection, viewpoint } = this;
    const frame = connection.takeFrame();
    if (frame) {
      this.drag.framed(frame.number);
      const next = this.pendingSchema;
      if (next?.number === frame.schema) {
        this.pendingSchema = null;
        this.setSchema(next);
      }
      world.setFrame(frame);
    }
    viewpoint.update();
    this.painter.stage?.drawNow();
    if (frame) {
      connection.acknowledge(frame.number);
      if (!(frame.flags & PAST)) this.clock.framed(frame, performance.now());
    }
    viewpoint.scale = camera.scale;
    return frame !== null;
  }
}
