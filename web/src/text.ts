// Foreign text: names of robots and of things of a map, lines of the log, what the simulator says. It comes from files and clients. It is always
// shown as text, never as HTML, with everything that cannot be printed written as an escape, and cut (src/botyard/names.py does the same).

export const MAX_NAME = 64;

/** Other than letters, marks, numbers, punctuation, symbols and the plain space: controls, directions, line ends, other blanks. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

function escape(char: string): string {
  const code = char.codePointAt(0)!;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** Text with all that cannot be printed written as an escape. */
export function escaped(text: string): string {
  return text.replace(UNPRINTABLE, escape);
}

/** Text as it may be shown: escaped, and cut to `limit` characters with an ellipsis. */
export function shown(text: string, limit = MAX_NAME): string {
  const chars = [...text.slice(0, 2 * limit + 2)];
  const safe = [...escaped(chars.slice(0, limit + 1).join(""))];
  return chars.length <= limit && safe.length <= limit ? safe.join("") : `${safe.slice(0, limit - 1).join("")}…`;
}

/** "1 robot", "3 robots". */
export function count(n: number, what: string, many = `${what}s`): string {
  return `${n} ${n === 1 ? what : many}`;
}

/** A number with so many decimals; what rounds to zero has no sign. */
export function fixed(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? (0).toFixed(decimals) : text;
}

/** Shares as percentages, each with two decimals. */
export function percents(shares: readonly number[]): string {
  return `${shares.map((share) => fixed(100 * share, 2)).join(", ")} %`;
}

/** Radians in degrees, as people read headings. */
export function degrees(rad: number): string {
  return `${fixed((rad * 180) / Math.PI, 1)}°`;
}

/** Seconds as hours, minutes and seconds. */
export function clock(seconds: number): string {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${Math.floor(tenths / 36000)}:${two(Math.floor(tenths / 600) % 60)}:${((tenths % 600) / 10).toFixed(1).padStart(4, "0")}`;
}
