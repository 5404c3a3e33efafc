// Log lines may come from robots' clients, and some write HTML. Only a few harmless tags count; everything else is text, and nothing ever
// reaches innerHTML.

export interface Span {
  text: string;
  bold: boolean;
  italic: boolean;
  underline: boolean;
  color: string;
}

const TAG = /<(\/?)(b|i|u|font|br)(\s+color=["']?([#\w]{1,20})["']?)?\s*\/?>/gi;
const ENTITIES: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&nbsp;": " " };

/** The spans of a line. */
export function parseMarkup(line: string): Span[] {
  const spans: Span[] = [];
  const depth = { b: 0, i: 0, u: 0 };
  const colors: string[] = [];
  let at = 0;
  const push = (text: string) => {
    if (!text) return;
    const plain = text.replace(/&(lt|gt|amp|quot|nbsp);/g, (e) => ENTITIES[e]);
    spans.push({ text: plain, bold: depth.b > 0, italic: depth.i > 0, underline: depth.u > 0, color: colors[colors.length - 1] ?? "" });
  };
  for (const match of line.matchAll(TAG)) {
    push(line.slice(at, match.index));
    at = match.index + match[0].length;
    const closes = match[1] === "/";
    const tag = match[2].toLowerCase();
    if (tag === "br") push(" ");
    else if (tag === "font") {
      if (closes) colors.pop();
      else colors.push(match[4] ?? "");
    } else depth[tag as "b" | "i" | "u"] = Math.max(0, depth[tag as "b" | "i" | "u"] + (closes ? -1 : 1));
  }
  push(line.slice(at));
  return spans;
}
