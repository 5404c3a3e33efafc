// Layers that can be shown and hidden, each with a key (D, F, G, T as in AMRISim).

export const LAYERS = {
  map: { label: "Walls and points", key: "m", on: true, group: "World" },
  grid: { label: "Grid", key: "g", on: true, group: "World" },
  floor: { label: "Floor: picture and zones", key: "u", on: true, group: "World" },
  pheromones: { label: "Pheromones", key: "z", on: true, group: "World" },
  places: { label: "Goals, docks, homes", key: "k", on: true, group: "World" },
  areas: { label: "Sectors, forbidden areas", key: "y", on: true, group: "World" },
  bodies: { label: "Bodies", key: "d", on: true, group: "Robots" },
  fill: { label: "Filled bodies", key: "f", on: true, group: "Robots" },
  labels: { label: "Names and state", key: "b", on: true, group: "Robots" },
  trails: { label: "Trails", key: "t", on: true, group: "Robots" },
  trips: { label: "Planned paths and goals", key: "0", on: true, group: "Robots" },
  laser: { label: "Laser", key: "l", on: true, group: "Sensors" },
  sonar: { label: "Sonar", key: "n", on: true, group: "Sensors" },
  selectedOnly: { label: "Sensors of the selected only", key: "e", on: false, group: "Sensors" },
  odometry: { label: "Odometry: axes and ghost", key: "o", on: false, group: "Position data" },
  velocity: { label: "Velocity", key: "v", on: false, group: "Position data" },
  pose: { label: "True pose", key: "i", on: false, group: "Position data" },
} as const;

export type LayerName = keyof typeof LAYERS;
export type Layers = Record<LayerName, boolean>;

export const DEBUG = {
  grid: { label: "Cells with walls", key: "1" },
  clearance: { label: "Clearance", key: "2" },
  rays: { label: "Walk of the rays", key: "3" },
  candidates: { label: "Collision candidates", key: "4" },
} as const;

export type DebugName = keyof typeof DEBUG;

export function defaultLayers(lite = false): Layers {
  const layers = Object.fromEntries(Object.entries(LAYERS).map(([name, l]) => [name, l.on])) as Layers;
  if (lite) layers.grid = layers.fill = layers.trails = layers.labels = false;
  return layers;
}
