// Files that belong together are sent as one: a map's .yaml and its picture, a world and what it names.

import { zipSync } from "fflate";

/** Of several files that belong together, the one that names the others. */
export function mainName(names: readonly string[]): string {
  return names.find((n) => /\.(world|ya?ml|xml|sdf)$/i.test(n)) ?? names[0];
}

/** How several files that belong together are called: after the one that names the others. */
export function bundleName(names: readonly string[]): string {
  if (names.length === 1) return names[0];
  return `${mainName(names).replace(/\.[^.]*$/, "")}.zip`;
}

/** Several files as one .zip. */
export async function bundle(files: readonly File[]): Promise<Blob> {
  const parts: Record<string, Uint8Array> = {};
  for (const file of files) {
    if (file.name in parts) throw new Error(`two files are called ${file.name}: send a .zip`);
    try {
      parts[file.name] = new Uint8Array(await file.arrayBuffer());
    } catch {
      throw new Error(`${file.name} cannot be read; a folder is sent as a .zip`);
    }
  }
  return new Blob([zipSync(parts, { level: 1 })], { type: "application/zip" });
}
