// Made by tools/web_palette.py from src/botyard/pictures/palette.toml; do not edit.

export interface Palette {
  ground: string;
  beyond: string;
  outside: string;
  grid: string;
  gridMajor: string;
  wall: string;
  outline: string;
  laserFill: string;
  laserEdge: string;
  laserPoint: string;
  bright: string;
  sonar: string;
  label: string;
  labelGround: string;
  place: string;
  area: string;
  badArea: string;
  selection: string;
  ghost: string;
  velocity: string;
  stalled: string;
  measure: string;
}

export const LIGHT: Palette = {
  ground: "#ffffff",
  beyond: "#b9bcc4",
  outside: "#b9bcc4b0",
  grid: "#ececf0",
  gridMajor: "#d9d9e0",
  wall: "#24272c",
  outline: "#1c1e22",
  laserFill: "#5b9bea30",
  laserEdge: "#3f7fd0a0",
  laserPoint: "#1f66c0",
  bright: "#b300b3",
  sonar: "#8a8d95a0",
  label: "#15171a",
  labelGround: "#ffffffd0",
  place: "#00795c",
  area: "#b359001c",
  badArea: "#b35900",
  selection: "#0072b2",
  ghost: "#7a4fb5",
  velocity: "#d55e00",
  stalled: "#d00000",
  measure: "#c2185b",
};

export const DARK: Palette = {
  ground: "#15181d",
  beyond: "#5a5e68",
  outside: "#5a5e68b0",
  grid: "#20242b",
  gridMajor: "#2d323b",
  wall: "#d6dae2",
  outline: "#eef0f4",
  laserFill: "#5b9bea28",
  laserEdge: "#6aa9f5a0",
  laserPoint: "#7ab8ff",
  bright: "#ff7bff",
  sonar: "#9a9faab0",
  label: "#f0f2f6",
  labelGround: "#15181dd0",
  place: "#4fd1ab",
  area: "#ffab4d1c",
  badArea: "#ffab4d",
  selection: "#56b4e9",
  ghost: "#c4a5f5",
  velocity: "#ffa34d",
  stalled: "#ff5c5c",
  measure: "#ff6fa5",
};

export const ROBOT_COLORS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#8c8c8c", "#8cc0dc", "#f4d48c", "#8cd3c0", "#ecb78c", "#b3ddf5", "#e8c3d7", "#f8f3aa", "#cbcbcb", "#004267", "#855c00", "#005c43", "#7c3700", "#326887", "#764661", "#8b8426", "#515151"];
