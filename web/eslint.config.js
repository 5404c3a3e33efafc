// The linter looks for defects: how code is laid out is not its business. It knows the types of everything, of Svelte files too, so that
// it finds a promise nobody waits for, an `any` that spreads, or a method that lost its object.

import js from "@eslint/js";
import { defineConfig } from "eslint/config";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

export default defineConfig(
  { ignores: ["node_modules", "src/generated"] },
  js.configs.recommended,
  ts.configs.recommendedTypeChecked,
  svelte.configs.recommended,
  {
    languageOptions: {
      globals: globals.browser,
      parserOptions: { project: "./tsconfig.json", extraFileExtensions: [".svelte"] },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "array-callback-return": "error",
      "no-constructor-return": "error",
      "no-param-reassign": "error",
      "no-promise-executor-return": ["error", { allowVoid: true }],
      "no-self-compare": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "error",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  {
    // of the tools themselves, which are no part of the page
    files: ["*.js", "*.ts"],
    extends: [ts.configs.disableTypeChecked],
    rules: { "@typescript-eslint/switch-exhaustiveness-check": "off" },
  },
  {
    // names declared by types alone are for the compiler, which knows them better
    files: ["**/*.ts", "**/*.svelte"],
    rules: { "no-undef": "off" },
  },
  {
    // stores replace lists and sets as a whole ($state.raw), and what renderers read in every picture is plain
    files: ["src/app.svelte.ts", "src/stores/*.svelte.ts"],
    rules: { "svelte/prefer-svelte-reactivity": "off" },
  },
);
