// The center of the page: it makes the stores and passes each message to the stores that need it.

import { PAST, type Clients, type CourseResult, type Details, type Push, type Schema, type Traffic, type View, type Welcome } from "./generated/messages";
import { Connection, type Status } from "./net/connection";
import { NO_MAP, type WorldMap } from "./net/frames";
import { Adding } from "./stores/adding.svelte";
import { Capture } from "./stores/capture.svelte";
import { Chart } from "./stores/chart.svelte";
import { Clock } from "./stores/clock.svelte";
import { Conditions } from "./stores/conditions.svelte";
import { Commands, type Subjects } from "./stores/commands";
import { Drag } from "./stores/drag";
import { Driving } from "./stores/driving.svelte";
import { Fleet } from "./stores/fleet";
import type { Heat } from "./stores/heat.svelte";
import type { KeptValues } from "./stores/kept";
import { FleetTable } from "./stores/fleettable.svelte";
import { Log } from "./stores/log.svelte";
import { Maps } from "./stores/maps.svelte";
import type { Measuring } from "./stores/measuring.svelte";
import { Movie } from "./stores/movie";
import { Notices } from "./stores/notices.svelte";
import { Painter } from "./stores/painter.svelte";
import { Panels, type Panel } from "./stores/panels.svelte";
import type { People } from "./stores/people.svelte";
import type { Download, Fetch, Fetched } from "./stores/ports";
import { Probe } from "./stores/probe.svelte";
import { Readouts } from "./stores/readouts.svelte";
import { Recording } from "./stores/recording";
import { Roster } from "./stores/roster.svelte";
import { Selection } from "./stores/selection.svelte";
import { Session } from "./stores/session.svelte";
import { Settings } from "./stores/settings.svelte";
import { keepSight, keptSight, sightIn, type KeptSight, type Sight } from "./stores/sight";
import { TimeLine } from "./stores/timeline.svelte";
import { Tools, type Uses } from "./stores/tools.svelte";
import { Touch } from "./stores/touch";
import { Trips } from "./stores/trips.svelte";
import { Undo } from "./stores/undo";
import { Written } from "./stores/written.svelte";
import { Viewpoint } from "./stores/viewpoint.svelte";
import { Camera } from "./view/camera";
import { Contacts } from "./view/contacts";
import type { LayerName } from "./view/layers";
import { World } from "./view/world";

/** The parts of the browser that the page uses. */
export interface Browser {
  /** May throw: some browsers keep nothing for some pages. */
  storage: () => KeptValues;
  /** Storage of this tab. */
  tabStorage: () => KeptValues;
  prefersDark: boolean;
  /** Whether the pointer is a finger. */
  touches: boolean;
  /** The part of the address after the #, as it was opened. */
  hash: string;
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
const FINGER_HINT = "Tap a robot to see what it senses, drag it to move it, drive it with the joystick. Two fingers pan and zoom. Help is in the toolbar.";
/** What is seen is kept when it has not changed for so long, ms. */
const KEEP_AFTER = 300;
const HINT = "Click a robot to see what it senses, drag it to move it, drive it with the arrow keys. ? shows all keys.";

export class App implements Subjects {
  readonly world = new World();
  readonly camera = new Camera();
  readonly connection: Connection;
  readonly notices = new Notices();
  readonly roster = new Roster();
  readonly readouts = new Readouts();
  readonly conditions = new Conditions(this.roster);
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
  readonly adding: Adding;
  readonly trips: Trips;
  readonly table: FleetTable;
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
  /** Address of the picture that is being printed; "": none. */
  printing = $state("");
  /** Docks of the map. */
  mapDocks = $state(0);
  /** What draws on the world, while it is measured or edited. */
  hand: Uses["hand"] | null = null;
  /** The heat map, while it is shown. */
  heat = $state.raw<Heat | null>(null);
  /** People at other pages, once one's own panel about them was opened. */
  people: People | null = null;
  /** Rulers, once they are loaded. */
  measuring: Measuring | null = null;
  /** What the panel of clients shows. */
  clients = $state.raw<Clients | null>(null);
  /** The run of traffic, while its panel shows it. */
  traffic = $state.raw<Traffic | null>(null);
  private pendingSchema: Schema | null = null;
  /** What is to be seen once the world is there. */
  private wantedSight: Sight | KeptSight | null;
  private keepTimer: ReturnType<typeof setTimeout> | undefined;

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
    const undo = (this.undo = new Undo(session, notices));
    this.tools = new Tools(
      world,
      camera,
      {
        model: (name) => this.adding.model(name),
        add: ({ model, name, count }, pose) => void this.adding.add(model, name, count, pose),
        send: (at, th, more) => void this.trips.send(at, th, more),
        estimate: (at, th) => void this.trips.estimate(at, th),
        area: (from, to) => this.adding.drawn(from, to),
        hand: (from, to, done) => this.hand?.(from, to, done),
        point: (at) => (this.viewpoint.pointer = at),
      },
      redraw,
    );
    this.adding = new Adding(world, session, notices, selection, this.tools, redraw, undo.group);
    this.recording = new Recording(session, notices);
    this.movie = new Movie(session, notices);
    this.written = new Written(session, browser.save);
    this.drag = new Drag(world, roster, session, redraw, undo, notices, new Contacts(world), () => this.settings.snaps);
    this.driving = new Driving(selection, roster, session, notices, (command) => connection.request({ type: "drive", ...command }));
    this.fleet = new Fleet(selection, roster, session, notices, (request) => connection.request(request), undo.group);
    this.trips = new Trips(world, this.fleet, session, notices, redraw, undo.group);
    this.table = new FleetTable(this.roster, this.conditions, this.trips, session, selection);
    this.clock = new Clock(session);
    this.timeline = new TimeLine(session, notices, () => this.clock.info.time, () => this.lookedBack());
    this.chart = new Chart(session);
    this.maps = new Maps((map) => this.setMap(map), session, notices, () => connection.token, () => session.welcome?.page ?? 0, fetch, download);
    this.capture = new Capture(async (kind) => (await painter.stage?.picture(kind)) ?? null, notices, download);
    this.probe = new Probe(world, camera, session, () => roster.firstRobot(selection.names), redraw);
    this.panels = new Panels(browser.width, session, notices);
    const kept = keptSight(browser.tabStorage);
    this.wantedSight = sightIn(browser.hash) ?? kept;
    if (kept) Object.assign(this.panels, { side: kept.side, stick: kept.stick, table: kept.table, inset: kept.inset, values: kept.values });
    this.commands = new Commands(this, () => painter.stage?.cancelGesture() ?? false, redraw, (panel) => this.togglePanel(panel));
    this.touch = new Touch(world, camera, session, roster, selection, viewpoint, this.drag, this.tools);
    this.restyled(null);
    connection.view = this.view();
  }

  /** Show a part of the page, or hide it. */
  togglePanel(panel: Panel): void {
    this.panels[panel] = !this.panels[panel];
    this.look();
    this.keepSight();
  }

  /** Ask the simulator for what is shown now. */
  look(): void {
    this.connection.setView(this.view());
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
    void this.askCourse();
    this.trips.place(timeline.isLooking);
  }

  /** The last minutes of the first selected robot, until the moment that is shown. */
  private async askCourse(): Promise<void> {
    const { selection, roster, session, readouts, timeline } = this;
    const [name] = selection.names;
    const { looked } = timeline;
    if (!looked) readouts.past = null;
    if (!name || !roster.robot(name) || session.status !== "open" || session.isReplay) return;
    if (!looked && readouts.histories.has(name)) return;
    const course = await session.ask<CourseResult>({ type: "course", name, until: looked?.time ?? null });
    if (!course || timeline.looked !== looked) return;
    if (looked) readouts.look(course);
    else readouts.before(course);
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
    else if (message.type === "trips") this.trips.received(message.trips);
    else if (message.type === "fleet") this.table.received(message);
    else if (message.type === "people") this.people?.received(message);
    else if (message.type === "clients") this.clients = message;
    else if (message.type === "traffic") this.traffic = message;
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
    if (!this.session.readOnly && this.settings.takeHint()) this.notices.say(this.browser.touches ? FINGER_HINT : HINT, false, 10);
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
    this.trips.place(this.session.looksBack);
    this.viewpoint.forget((name) => world.rows.has(name));
  }

  private setMap(map: WorldMap): void {
    this.mapDocks = map.places.filter((p) => p.kind.toLowerCase().includes("dock")).length;
    this.world.setMap(map);
    this.painter.redraw();
  }

  // -- what is seen

  /** What is seen now. */
  sight(): Sight {
    const { camera, viewpoint, selection, world } = this;
    const [ox, oy] = world.schema?.origin ?? [0, 0];
    return { x: camera.x + ox, y: camera.y + oy, scale: camera.scale, selected: [...selection.names], follow: viewpoint.follow ?? "", headingUp: viewpoint.headingUp };
  }

  /** Keep what is seen for a reload of this tab, soon. */
  keepSight(): void {
    // Pictures follow each other faster, so a timer that starts again with each would never end.
    if (this.keepTimer) return;
    this.keepTimer = setTimeout(() => {
      this.keepTimer = undefined;
      const { panels, viewpoint, maps } = this;
      if (!viewpoint.fitted || this.wantedSight) return;
      const { side, table, stick, inset, values } = panels;
      keepSight(this.browser.tabStorage, { ...this.sight(), map: maps.name, moved: viewpoint.moved, side, table, stick, inset, values });
    }, KEEP_AFTER);
  }

  /** The world is there for the first time: show what was seen before the reload, or what the link shows. */
  private takeSight(): void {
    const { wantedSight: sight, world, viewpoint, selection } = this;
    this.wantedSight = null;
    if (!sight || ("map" in sight && sight.map !== this.maps.name)) return;
    const [ox, oy] = world.schema?.origin ?? [0, 0];
    const names = sight.selected.filter((n) => world.rows.has(n));
    if (names.length) selection.set(names);
    viewpoint.restore(sight.x - ox, sight.y - oy, sight.scale, "moved" in sight ? sight.moved : true);
    viewpoint.headingUp = sight.headingUp;
    if (world.rows.has(sight.follow)) viewpoint.followRobot(sight.follow);
  }

  /** Give a file to the user. */
  download(blob: Blob, name: string): void {
    this.browser.download(blob, name);
  }

  share(): void {
    this.panels.open("share");
  }

  /** Print a picture of the world. */
  async print(): Promise<void> {
    const picture = await this.painter.stage?.picture("png");
    if (picture) this.printing = URL.createObjectURL(picture);
  }

  printed(): void {
    URL.revokeObjectURL(this.printing);
    this.printing = "";
  }

  // -- what a person has changed

  private selected(names: string[]): void {
    this.readouts.keepOnly(names);
    this.driving.letGo();
    void this.askCourse();
    this.connection.setView(this.view());
  }

  /** Values of the selected, and what their devices have found. */
  private detailed(message: Details): void {
    this.readouts.receive(message.time, message.robots, performance.now(), this.timeline.isLooking);
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
      fleet: this.panels.table,
      heat: this.panels.heat,
      clients: this.panels.clients ? this.panels.clientWords.slice(0, 100) : null,
      traffic: this.panels.traffic,
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
      if (world.setFrame(frame)) this.conditions.framed(frame.state);
    }
    if (viewpoint.update() && this.wantedSight) this.takeSight();
    this.painter.stage?.drawNow();
    if (frame) {
      connection.acknowledge(frame.number);
      if (!(frame.flags & PAST)) this.clock.framed(frame, performance.now());
    }
    viewpoint.scale = camera.scale;
    if (frame) this.session.received = performance.now();
    this.keepSight();
    return frame !== null;
  }
}
