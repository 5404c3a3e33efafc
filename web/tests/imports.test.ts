import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const SRC = resolve(__dirname, "../src");
const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((f) => /\.(ts|svelte)$/.test(f)).map((f) => join(SRC, f)); // prettier-ignore

/** What a file imports of this page, types too. */
function imports(file: string): string[] {
  const found = readFileSync(file, "utf8").matchAll(/(?:from|import)\s+"(\.[^"]+)"/g);
  return [...found].flatMap(([, path]) => {
    const base = resolve(dirname(file), path);
    return [base, `${base}.ts`].filter((f) => files.includes(f));
  });
}

const graph = new Map(files.map((f) => [f, imports(f)]));

/** A way from a file back to itself; null: there is none. */
function circle(from: string): string[] | null {
  const seen = new Set<string>();
  const ways = [[from]];
  for (let way = ways.pop(); way; way = ways.pop())
    for (const next of graph.get(way[way.length - 1])!) {
      if (next === from) return [...way, next].map((f) => relative(SRC, f));
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  return null;
}

/** Each folder and what it may import beside itself and the leaves. */
const MAY: Record<string, string[]> = {
  generated: [],
  view: ["generated", "net"],
  net: ["generated"],
  hands: ["view"],
  stores: ["generated", "hands", "net", "view"],
  ui: ["generated", "hands", "net", "view", "stores", "app.svelte.ts"],
};
const LEAVES = ["text.ts"];

describe("the page's files", () => {
  it("are all found, with what they import", () => {
    expect(files.length).toBeGreaterThan(50);
    expect(graph.get(join(SRC, "main.ts"))!.map((f) => relative(SRC, f))).toContain("app.svelte.ts");
    expect(graph.get(join(SRC, "ui/Page.svelte"))!.length).toBeGreaterThan(10);
  });

  it.each(files.map((f) => relative(SRC, f)))("%s does not import itself by way of others", (file) => {
    expect(circle(join(SRC, file))).toBe(null);
  });

  it.each(Object.keys(MAY))("%s imports only what lies below it", (folder) => {
    const wrong = files
      .filter((f) => relative(SRC, f).split(/[\\/]/)[0] === folder)
      .flatMap((f) => graph.get(f)!.map((to) => [f, to].map((x) => relative(SRC, x))))
      .filter(([, to]) => ![folder, ...MAY[folder], ...LEAVES].includes(to.split(/[\\/]/)[0]));
    expect(wrong).toEqual([]);
  });
});
