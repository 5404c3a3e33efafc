// Colors. Robots have the colors of Okabe and Ito, which color-blind people can also distinguish; shape and labels show the same.

export { DARK, LIGHT, ROBOT_COLORS, type Palette } from "../generated/palette";

const parsed = new Map<string, [number, number, number, number]>();
let context: CanvasRenderingContext2D | null = null;

/** A colour as CSS or X11 writes it ("light green") as red, green, blue, opacity from 0 to 1; grey when it is unknown. */
export function rgba(color: string): [number, number, number, number] {
  const known = parsed.get(color);
  if (known) return known;
  if (!context) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    context = canvas.getContext("2d", { willReadFrequently: true });
  }
  let value: [number, number, number, number] = [0.5, 0.5, 0.5, 1];
  if (context) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = "#808080";
    context.fillStyle = color.replaceAll(" ", "");
    const hex = /^#([0-9a-f]{6})$/i.exec(context.fillStyle);
    if (hex) {
      const n = parseInt(hex[1], 16);
      value = [(n >> 16) / 255, ((n >> 8) & 255) / 255, (n & 255) / 255, 1];
    } else {
      const parts = context.fillStyle.match(/[\d.]+/g)?.map(Number) ?? [];
      if (parts.length === 4) value = [parts[0] / 255, parts[1] / 255, parts[2] / 255, parts[3]];
    }
  }
  parsed.set(color, value);
  return value;
}

/** A colour for CSS. */
export function css(color: string): string {
  const [r, g, b, a] = rgba(color);
  return `rgba(${Math.round(r * 255)}, ${Math.round(g * 255)}, ${Math.round(b * 255)}, ${a})`;
}
