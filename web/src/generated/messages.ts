// Made by tools/web_types.py from protocols/webgui, recording/samples, formats/registry and servers/web; do not edit.


/** Selection of the contents of a page's frames. */
export interface View {
  readings?: "all" | "selected" | "none";
  odometry?: boolean;
  velocity?: boolean;
  selected?: string[];
  fleet?: boolean;
  clients?: string | null;
  traffic?: boolean;
  heat?: boolean;
}

/** First message of a page. */
export interface Hello {
  type: "hello";
  token?: string;
  version?: number;
  view?: View;
  id?: number;
  group?: number;
}

/** Change the view; the sensors of selected robots are measured while selected. */
export interface SetView {
  type: "view";
  view: View;
  id?: number;
  group?: number;
}

/** Acknowledge a drawn frame; there is no answer. */
export interface Ack {
  type: "ack";
  number: number;
  id?: number;
  group?: number;
}

/** Pause the simulation. */
export interface Pause {
  type: "pause";
  id?: number;
  group?: number;
}

/** Resume the simulation. */
export interface Run {
  type: "run";
  id?: number;
  group?: number;
}

/** Run `count` steps, then pause. */
export interface Step {
  type: "step";
  count?: number;
  id?: number;
  group?: number;
}

/** Set the ratio of simulated to wall time; 0 is as fast as possible. */
export interface Speed {
  type: "speed";
  factor: number;
  id?: number;
  group?: number;
}

/** Hold or release bodies; held bodies stand still while they are dragged. */
export interface Hold {
  type: "hold";
  names: string[];
  on: boolean;
  id?: number;
  group?: number;
}

/** Body and its true pose. */
export interface Placement {
  name: string;
  x: number;
  y: number;
  th: number;
}

/** Teleport bodies to true poses. */
export interface Move {
  type: "move";
  to: Placement[];
  id?: number;
  group?: number;
}

/** Drive a robot, m/s and rad/s. */
export interface Drive {
  type: "drive";
  name: string;
  v?: number;
  w?: number;
  vy?: number;
  on?: boolean;
  id?: number;
  group?: number;
}

/** Enable or disable the motors of robots. */
export interface Enable {
  type: "enable";
  names: string[];
  on: boolean;
  id?: number;
  group?: number;
}

/** Press or release the emergency-stop buttons of robots. */
export interface EmergencyStop {
  type: "estop";
  names: string[];
  on: boolean;
  id?: number;
  group?: number;
}

/** Set the state of charge of robots' batteries, %. */
export interface SetCharge {
  type: "charge";
  names: string[];
  charge: number;
  id?: number;
  group?: number;
}

/** Set the joystick that is plugged into a robot, for its client to read. */
export interface Joystick {
  type: "joystick";
  name: string;
  x?: number;
  y?: number;
  button1?: boolean;
  button2?: boolean;
  id?: number;
  group?: number;
}

/** Command an actuator of a robot. */
export interface CommandDevice {
  type: "command";
  name: string;
  device: string;
  command: string;
  value: number;
  id?: number;
  group?: number;
}

/** Add robots or obstacles; a body without a pose gets the next free place. */
export interface Add {
  type: "add";
  model: string;
  name?: string;
  count?: number;
  x?: number | null;
  y?: number | null;
  th?: number;
  places?: [number, number, number][];
  id?: number;
  group?: number;
}

/** Request free places for bodies of a model; the answer is a list of poses. */
export interface FindPlaces {
  type: "places";
  model: string;
  count?: number;
  arrangement?: "near" | "grid" | "random" | "line";
  area?: [number, number, number, number] | null;
  seed?: number;
  id?: number;
  group?: number;
}

/** Send robots to goals on planned paths; without goals, they stop. */
export interface Send {
  type: "send";
  names: string[];
  goals: ([number, number, number | null])[];
  order?: "once" | "loop" | "back";
  queue?: boolean;
  speed?: number | null;
  id?: number;
  group?: number;
}

/** Tell the programs of a robot where it is; the robot does not move. */
export interface Estimate {
  type: "estimate";
  name: string;
  x: number;
  y: number;
  th: number;
  id?: number;
  group?: number;
}

/** Send robots to the docks of the map, each to one of its own while there are docks. */
export interface Dock {
  type: "dock";
  names: string[];
  id?: number;
  group?: number;
}

/** Copy bodies: add one of the same model next to each named robot or obstacle. */
export interface Clone {
  type: "clone";
  names: string[];
  id?: number;
  group?: number;
}

/** Remove robots or obstacles. */
export interface Remove {
  type: "remove";
  names: string[];
  id?: number;
  group?: number;
}

/** Give robots other names: present name and new name of each. */
export interface Rename {
  type: "rename";
  names: [string, string][];
  id?: number;
  group?: number;
}

/** Return robots to their start poses, with odometry zero; without names, all robots. */
export interface Reset {
  type: "reset";
  names?: string[] | null;
  id?: number;
  group?: number;
}

/** Turn the odometry errors of a robot on or off. */
export interface OdometryErrors {
  type: "odometry_errors";
  name: string;
  on: boolean;
  id?: number;
  group?: number;
}

/** Undo the last change of bodies or the map that this page has made. */
export interface Undo {
  type: "undo";
  id?: number;
  group?: number;
}

/** Redo the last undone change; the answer is a line that describes it. */
export interface Redo {
  type: "redo";
  id?: number;
  group?: number;
}

/** Show this page the last moment at or before a simulated time, s. */
export interface Look {
  type: "look";
  time?: number | null;
  by?: number;
  id?: number;
  group?: number;
}

/** Let the world continue from the moment that this page shows. */
export interface GoOn {
  type: "go_on";
  id?: number;
  group?: number;
}

/** Turn repeating of a shown recording at its end on or off. */
export interface Loop {
  type: "loop";
  on: boolean;
  id?: number;
  group?: number;
}

/** Request the actions of the robots over time in a recorded traffic run. */
export interface Chart {
  type: "chart";
  id?: number;
  group?: number;
}

/** Request the values of a robot over the last minutes; the answer is `CourseResult`. */
export interface Course {
  type: "course";
  name: string;
  until?: number | null;
  id?: number;
  group?: number;
}

/** Load another map for all clients by its name; an empty name removes the map. */
export interface LoadMap {
  type: "map";
  name: string;
  id?: number;
  group?: number;
}

/** Goal, dock or home of the map, m and rad; without `th` any heading. */
export interface PlaceToAdd {
  kind: string;
  name: string;
  x: number;
  y: number;
  th?: number | null;
}

/** Add and remove walls (x0, y0, x1, y1, m) and places of the map. */
export interface EditMap {
  type: "edit_map";
  add_walls?: [number, number, number, number][];
  remove_walls?: [number, number, number, number][];
  add_places?: PlaceToAdd[];
  remove_places?: string[];
  id?: number;
  group?: number;
}

/** Add a zone to the floor, or replace the zone of the same name. */
export interface SetZone {
  type: "set_zone";
  name: string;
  corners: [number, number][];
  color?: string;
  slip?: number | null;
  speed_limit?: number | null;
  odometry_scale?: number | null;
  hole?: boolean;
  id?: number;
  group?: number;
}

/** Remove a zone from the floor. */
export interface RemoveZone {
  type: "remove_zone";
  name: string;
  id?: number;
  group?: number;
}

/** Path of a robot, from where it stands along points, m. */
export interface SectorPath {
  robot: string;
  points: [number, number][];
}

/** Let robots drive along paths under a supervisor. */
export interface RunTraffic {
  type: "run_traffic";
  paths: SectorPath[];
  supervisor?: string;
  speed?: number;
  id?: number;
  group?: number;
}

/** End the run of traffic. */
export interface EndTraffic {
  type: "end_traffic";
  id?: number;
  group?: number;
}

/** Hold the supervisor's decisions, or let them take effect. */
export interface HoldTraffic {
  type: "hold_traffic";
  on: boolean;
  id?: number;
  group?: number;
}

/** Let the next decision of the supervisor take effect. */
export interface StepTraffic {
  type: "step_traffic";
  id?: number;
  group?: number;
}

/** Grant a robot its next sector, or all sectors up to one. */
export interface GrantSector {
  type: "grant_sector";
  name: string;
  sector?: number | null;
  id?: number;
  group?: number;
}

/** Take back the permission of a robot for a sector, by default the nearest one. */
export interface RevokeSector {
  type: "revoke_sector";
  name: string;
  sector?: number | null;
  id?: number;
  group?: number;
}

/** Request the paths and sectors of the run of traffic; the answer is `TrafficPlan`. */
export interface AskTrafficPlan {
  type: "traffic_plan";
  id?: number;
  group?: number;
}

/** Request a picture of a map that can be loaded; the answer is `MapPicture`. */
export interface LookAtMap {
  type: "look_at_map";
  name: string;
  id?: number;
  group?: number;
}

/** Read the file of the present map again. */
export interface Reload {
  type: "reload";
  id?: number;
  group?: number;
}

/** Save a picture in the working directory of the simulator. */
export interface Snapshot {
  type: "snapshot";
  name?: string;
  id?: number;
  group?: number;
}

/** Record the run to a file in the working directory of the simulator. */
export interface StartRecording {
  type: "start_recording";
  name?: string;
  last?: number;
  on_stall?: boolean;
  topics?: string[];
  robots?: string[];
  rates?: [string, number][];
  id?: number;
  group?: number;
}

/** End the recording; the answer is the path of its file. */
export interface StopRecording {
  type: "stop_recording";
  id?: number;
  group?: number;
}

/** Write a recording that is kept in memory to a file; the answer is its path. */
export interface SaveRecording {
  type: "save_recording";
  name?: string;
  id?: number;
  group?: number;
}

/** Make a movie of a part of the recording, or of a running simulation. */
export interface WriteMovie {
  type: "write_movie";
  begin: number;
  end: number;
  name?: string;
  format?: "" | "mp4" | "gif" | "webp" | "png";
  speed?: number;
  fps?: number;
  width?: number;
  theme?: "light" | "dark";
  follow?: string;
  scans?: string[];
  id?: number;
  group?: number;
}

/** Cancel the movie that is being made. */
export interface CancelMovie {
  type: "cancel_movie";
  id?: number;
  group?: number;
}

/** Request a file of `Files`; the answer is its temporary address. */
export interface Download {
  type: "download";
  file: string;
  id?: number;
  group?: number;
}

/** Start or stop one of the simulator's interfaces. */
export interface Interface {
  type: "interface";
  name: string;
  on: boolean;
  id?: number;
  group?: number;
}

/** Request the last message of a ROS topic; the answer is a text, or null without one. */
export interface LookAtTopic {
  type: "look_at_topic";
  name: string;
  id?: number;
  group?: number;
}

/** Robots chosen in the start dialog. */
export interface StartRobot {
  model: string;
  name?: string;
  count?: number;
  factory?: boolean;
}

/** Choices of the start dialog; `map` null is no map. */
export interface Start {
  type: "start";
  map: string | null;
  robots: StartRobot[];
  port?: number;
  verbose?: boolean;
  warn_unsupported?: boolean;
  id?: number;
  group?: number;
}

/** Answer the question of `Status`: continue, or exit. */
export interface Reply {
  type: "reply";
  go_on: boolean;
  id?: number;
  group?: number;
}

/** Exit the simulator; also sent when the start dialog is cancelled. */
export interface Exit {
  type: "exit";
  id?: number;
  group?: number;
}

/** Request the models and maps; the answer is `CatalogResult`. */
export interface Catalog {
  type: "catalog";
  id?: number;
  group?: number;
}

/** Request structures of the engine; the answer is `DebugResult`. */
export interface Debug {
  type: "debug";
  what: "grid" | "clearance" | "rays" | "candidates";
  name?: string;
  x0?: number;
  y0?: number;
  x1?: number;
  y1?: number;
  id?: number;
  group?: number;
}

/** Request a heat map; the answer is `HeatResult`. */
export interface Heat {
  type: "heat";
  what: "visits" | "time" | "stalls" | "waits" | "visited" | "seen";
  id?: number;
  group?: number;
}

/** Set the counts of the heat maps to zero, for all pages. */
export interface ResetHeat {
  type: "reset_heat";
  id?: number;
  group?: number;
}

/** Show the person at this page to the others who do so, under a name. */
export interface Show {
  type: "show";
  name: string;
  pointer?: [number, number] | null;
  id?: number;
  group?: number;
}

/** Connected client; unknown values are null. */
export interface ClientInfo {
  key: string;
  protocol: string;
  address: string;
  about: string;
  robot: string;
  received: number | null;
  sent: number | null;
  latency: number | null;
  dropped: number | null;
  command: string;
  age: number | null;
}

/** Clients, ROS topics and sources of commands, once a second. */
export interface Clients {
  type: "clients";
  clients: ClientInfo[];
  topics: TopicInfo[];
  commands: Commands[];
  more_clients: number;
  more_topics: number;
}

/** Commands of a robot in the last minute. */
export interface Commands {
  robot: string;
  runs: [number, number, string, number][];
}

/** Values of all robots, once a second, for the table of the fleet. */
export interface Fleet {
  type: "fleet";
  time: number;
  names: string[];
  charge: number[];
  speed: number[];
  stalled: number[];
  left: number[];
  controller: string[];
  commander: string[];
  pose: [number, number, number][];
}

/** All people who show themselves; sent to them after each change. */
export interface People {
  type: "people";
  people: Person[];
}

/** Person at a page who is shown to others. */
export interface Person {
  page: number;
  name: string;
  color: number;
  pointer: [number, number] | null;
  selected: string[];
  holds: string[];
}

/** ROS topic. */
export interface TopicInfo {
  name: string;
  type: string;
  about: string;
  input: boolean;
  rate: number | null;
  readers: number;
  count: number;
}

/** Trip of a robot to goals. */
export interface TripInfo {
  robot: string;
  state: string;
  goals: ([number, number, number | null])[];
  path: [number, number][];
  order: string;
  message: string;
}

/** All trips of robots to goals; sent again after each change. */
export interface Trips {
  type: "trips";
  trips: TripInfo[];
}

/** Path of a robot with its sectors. */
export interface PlannedPath {
  robot: string;
  points: [number, number][];
  ends: number[];
  shared: number[];
  nodes: string[];
}

/** State of the run of traffic, for pages that show it. */
export interface Traffic {
  type: "traffic";
  version: number;
  time: number;
  supervisor: string;
  orders: boolean;
  held: boolean;
  queued: number;
  ending: string;
  ended: boolean;
  robots: [number, number, number][];
  done: number;
  waits: TrafficWait[];
  circles: number[][];
  decisions: TrafficDecision[];
}

/** Decision at a simulated time, s: ``grants`` or ``takes back``. */
export interface TrafficDecision {
  time: number;
  robot: number;
  sector: number;
  what: string;
  by: string;
}

/** Paths and sectors of a run; they belong to `Traffic` with the same version. */
export interface TrafficPlan {
  version: number;
  paths: PlannedPath[];
  supervisors: string[];
}

/** Robot that waits for a sector since a simulated time, s. */
export interface TrafficWait {
  robot: number;
  sector: number;
  by: number[];
  since: number;
  reason: string;
}

/** Answer to a request that was executed. */
export interface Ok {
  type: "ok";
  id: number;
  result: unknown;
}

/** Answer to a request that failed, with the reason. */
export interface Failed {
  type: "error";
  id: number;
  message: string;
}

/** State of an interface of the simulator. */
export interface InterfaceState {
  name: string;
  on: boolean;
  about: string;
  problem: string;
}

/** Defaults of the start dialog, if it is shown. */
export interface StartOffer {
  models: string[];
  port: number;
  verbose: boolean;
  warn_unsupported: boolean;
}

/** Answer to `Hello`. */
export interface Welcome {
  type: "welcome";
  version: number;
  program: string;
  read_only: boolean;
  audience: string;
  graphics: "full" | "lite" | "none";
  page: number;
  start: StartOffer | null;
}

/** Message that this page or another one has answered the start dialog. */
export interface Started {
  type: "started";
}

/** Robot model or obstacle for drawing. */
export interface Model {
  name: string;
  description: string;
  color: string;
  parts: [number, number][][];
  drives: boolean;
  omni: boolean;
  lasers: [number, number][];
  max_v: number;
  max_w: number;
  wheels: [number, number][];
  wheel_radius: number;
  problem: string;
}

/** Body: a row of the frames' columns, first the robots, then boxes of the map. */
export interface BodyInfo {
  name: string;
  model: number;
  robot: boolean;
  port: number;
  kind: "robot" | "pedestrian" | "obstacle" | "thing";
  color: number;
}

/** Sensors with the same rays. */
export interface Group {
  id: number;
  kind: "laser" | "sonar";
  count: number;
  range_max: number;
  unit: number;
  poses: [number, number, number][];
  angle0: number;
  step: number;
}

/** Map, and the address of its walls. */
export interface MapInfo {
  url: string;
  name: string;
  source: string;
  bounds: [number, number, number, number] | null;
  view: [number, number, number, number] | null;
}

/** Layout of the columns of frames, and the map; valid until the next `Schema`. */
export interface Schema {
  type: "schema";
  number: number;
  map: MapInfo;
  origin: [number, number];
  dt: number;
  models: Model[];
  bodies: BodyInfo[];
  robots: number;
  groups: Group[];
}

/** Moment that a page shows: number of steps, and simulated time, s. */
export interface Looked {
  tick: number;
  time: number;
  missing: string[];
  gone: string[];
  disconnected: number;
}

/** Range of moments for a page: the last minutes of a simulation, or a recording. */
export interface TimeLine {
  first: number;
  last: number;
  size: number;
  problem: string;
  replay: string;
  loop: boolean;
  chart: boolean;
}

/** Event on the timeline: simulated time, s, a line of text, and its kind. */
export interface Mark {
  time: number;
  kind: string;
  text: string;
}

/** All events on the timeline, oldest first; sent again after each change. */
export interface Marks {
  type: "marks";
  marks: Mark[];
}

/** Clients that command a robot. */
export interface Client {
  robot: string;
  sources: string[];
}

/** Contents of the status bar, twice a second. */
export interface Status {
  type: "status";
  clients: number;
  subscriptions: number;
  viewers: number;
  overruns: number;
  driven: Client[];
  interfaces: InterfaceState[];
  timeline: TimeLine | null;
  question: string;
  recording: string;
  kept: number;
  movie: string;
  drawn: number;
  traffic: number;
}

/** Command of an actuator: its limits, in SI units, and the unit. */
export interface DeviceCommand {
  name: string;
  about: string;
  low: number;
  high: number;
  unit: string;
}

/** Reading of a device. */
export interface DeviceReading {
  device: string;
  about: string;
  columns: string[];
  rows: string[][];
  more: number;
  marks: [number, number, string][];
  commands: DeviceCommand[];
}

/** Values of a selected robot, for the inspector. */
export interface Detail {
  name: string;
  model: string;
  clients: string[];
  pose: [number, number, number];
  odometry: [number, number, number];
  odometry_error: [number, number];
  velocity: [number, number, number];
  command: [number, number, number];
  accel: [number, number, number];
  error: [number, number, number];
  motors: boolean;
  stalled: boolean;
  estop: boolean;
  volts: number;
  charge: number;
  charging: boolean;
  sensors: string[];
  nearest: number | null;
  gripper: string;
  port: number;
  devices: DeviceReading[];
}

/** Values of the selected robots, several times a second. */
export interface Details {
  type: "details";
  time: number;
  robots: Detail[];
}

/** Log line; `text` may come from a client: show it as text, never as HTML. */
export interface LogEntry {
  time: number;
  level: "debug" | "info" | "warning" | "error";
  source: string;
  text: string;
}

/** Log lines, oldest first, and the number of dropped lines before them. */
export interface Log {
  type: "log";
  lines: LogEntry[];
  lost: number;
}

/** Paths of files that this run has written for clients, the newest last. */
export interface Files {
  type: "files";
  paths: string[];
}

/** Map that can be loaded by `name`. */
export interface MapFile {
  name: string;
  shipped: boolean;
}

/** Small picture of a map. */
export interface MapPicture {
  name: string;
  bounds: [number, number, number, number] | null;
  robots: number;
  goals: number;
  walls: number[];
  points: number[];
}

/** Models and maps. */
export interface CatalogResult {
  models: Model[];
  maps: MapFile[];
}

/** Actions of each robot in a traffic run: driving, waiting, and sectors. */
export interface ChartResult {
  title: string;
  end: number;
  robots: string[];
  goes: [number, number, number][];
  waits: [number, number, number][];
  sectors: [number, number, number, number][];
  grants: [number, number, number, number][];
  asks: [number, number][];
  holders: [number, number, number[]][];
  left_out: number;
}

/** Values of a robot over the last minutes, oldest first. */
export interface CourseResult {
  name: string;
  time: number[];
  v: number[];
  w: number[];
  error: number[];
}

/** Structures of the engine. */
export interface DebugResult {
  squares: number[];
  lines: [number, number, number, number][];
  names: string[];
}

/** Heat map: a quantity for each cell of the part of the map where it is not zero. */
export interface HeatResult {
  what: string;
  x: number;
  y: number;
  edge: number;
  rows: number;
  columns: number;
  values: string;
  most: number;
  total: number;
  duration: number;
  share: number | null;
  area: number;
  free: number;
}

export type AnyRequest = Hello | SetView | Ack | Pause | Run | Step | Speed | Hold | Move | Drive | Enable | EmergencyStop | SetCharge | Joystick | CommandDevice | Add | FindPlaces | Send | Estimate | Dock | Clone | Remove | Rename | Reset | Undo | Redo | Look | GoOn | Loop | Chart | Course | OdometryErrors | LoadMap | LookAtMap | EditMap | SetZone | RemoveZone | RunTraffic | EndTraffic | HoldTraffic | StepTraffic | GrantSector | RevokeSector | AskTrafficPlan | Reload | Snapshot | StartRecording | StopRecording | SaveRecording | WriteMovie | CancelMovie | Download | Interface | LookAtTopic | Start | Reply | Exit | Catalog | Debug | Heat | ResetHeat | Show;

export type Push = Welcome | Started | Schema | Status | Marks | Details | Trips | Fleet | Clients | People | Traffic | Log | Files | Ok | Failed;

export const VERSION = 6;
export const FRAME_VERSION = 1;
export const FRAME_MAGIC = 1380342082;
export const MAP_MAGIC = 1347246402;
export const HEADER_SIZE = 48;
export const BLOCK_SIZE = 16;
export const NO_READING = 65534;
export const PAUSED = 1;
export const FASTEST = 2;
export const PAST = 4;

/** Topics of a recording when nobody names any, beside scans. */
export const USUAL_TOPICS: readonly string[] = ["*/odom", "*/base_pose_ground_truth", "*/cmd_vel", "/tf", "/tf_static", "/map", "/rosout"];

/** Suffixes of the files of maps and worlds that botyard reads. */
export const WORLD_FILES = ".map,.sdf,.world,.xml,.argos,.yaml,.yml,.json,.bag,.mcap,.db3,.geojson,.wld,.png,.pgm,.pbm,.ppm,.pnm,.bmp,.gif,.jpg,.jpeg,.tif,.tiff,.webp,.svg,.dxf,.zip";

/** The simulator takes no larger uploads, bytes. */
export const MAX_UPLOAD = 67108864;

export const Block = { POSE: 1, STATE: 2, ODOMETRY: 3, VELOCITY: 4, READINGS: 5, BRIGHT: 6, FIELD: 7, STEERING: 8 } as const;

export const Bit = { STALLED: 1, MOTORS: 2, ESTOP: 4, HELD: 8, GHOST: 16, CLIENT: 32 } as const;
