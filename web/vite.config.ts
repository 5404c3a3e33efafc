import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  base: "./",
  build: { outDir: "../src/botyard/ui/static", emptyOutDir: true, target: "es2022", assetsInlineLimit: 0 },
  server: { proxy: { "/ws": { target: "ws://127.0.0.1:8100", ws: true }, "/map": "http://127.0.0.1:8100" } },
  test: { include: ["tests/**/*.test.ts"] },
});
