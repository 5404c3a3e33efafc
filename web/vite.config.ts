import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// while the page is worked on (npx vite), the simulator is asked as if by its own page: it refuses those of others
const target = "http://127.0.0.1:8100";
const simulator = { target, ws: true, changeOrigin: true, rewriteWsOrigin: true, headers: { origin: target } };

export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: { outDir: "../src/botyard/ui/static", emptyOutDir: true, target: "es2022", assetsInlineLimit: 0 },
  server: { proxy: Object.fromEntries(["/ws", "/map", "/upload"].map((path) => [path, simulator])) },
  test: { include: ["tests/**/*.test.ts"] },
});
