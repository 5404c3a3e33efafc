// The user's display settings. Most of them stay in the browser.

import { defaultLayers, type LayerName, type Layers } from "../view/layers";
import { DARK, LIGHT } from "../view/palette";
import type { World } from "../view/world";
import {
  colorsOf, hintedOf, layersOf, logOf, objectIn, readKept, rendererOf, themeOf, writeKept,
  type ColorBy, type KeptValues, type RendererChoice, type Theme,
} from "./kept"; // prettier-ignore

export const SETTINGS_KEY = "botyard";

/** The part of the world that settings change. */
export type Styled = Pick<World, "layers" | "palette" | "paletteVersion" | "colorBy" | "hidden">;

export class Settings {
  theme = $state<Theme>("light");
  /** The chosen theme; null: as the machine is set. */
  private chosen: Theme | null = null;
  layers = $state<Layers>(defaultLayers());
  colorBy = $state<ColorBy>("auto");
  rendererChoice = $state<RendererChoice>("auto");
  showLog = $state(false);
  /** Bodies that are dropped in something are put next to it. */
  snaps = $state(false);
  /** Models that are not drawn. They are of this world only, so they are not kept. */
  hiddenModels = $state.raw<string[]>([]);
  private hinted: boolean;

  constructor(
    private storage: () => KeptValues,
    private prefersDark: boolean,
    /** Called when the drawn layers change, with the switched layer if it was one. */
    private changed: (layer: LayerName | null) => void,
  ) {
    const kept = objectIn(readKept(storage, SETTINGS_KEY));
    this.theme = themeOf(kept.theme, prefersDark);
    this.chosen = kept.theme === this.theme ? this.theme : null;
    this.layers = layersOf(kept.layers);
    this.colorBy = colorsOf(kept.colorBy);
    this.rendererChoice = rendererOf(kept.renderer);
    this.showLog = logOf(kept.log);
    this.snaps = kept.snaps === true;
    this.hinted = hintedOf(kept.hinted);
  }

  private keep(): void {
    const { chosen: theme, layers, colorBy, rendererChoice: renderer, showLog: log, snaps, hinted } = this;
    writeKept(this.storage, SETTINGS_KEY, JSON.stringify({ theme, layers, colorBy, renderer, log, snaps, hinted }));
  }

  /** Put them into effect in the world that is drawn. */
  apply(world: Styled): void {
    world.layers = { ...this.layers };
    world.palette = this.theme === "dark" ? DARK : LIGHT;
    world.colorBy = this.colorBy;
    world.hidden = new Set(this.hiddenModels);
    world.paletteVersion++;
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.chosen = theme === themeOf(null, this.prefersDark) ? null : theme; // it follows the machine again
    this.keep();
    this.changed(null);
  }

  /** The machine was set to light or dark: follow it, unless a theme was chosen. */
  prefer(dark: boolean): void {
    this.prefersDark = dark;
    if (this.chosen) return;
    this.theme = themeOf(null, dark);
    this.changed(null);
  }

  setColors(by: ColorBy): void {
    this.colorBy = by;
    this.keep();
    this.changed(null);
  }

  setRenderer(choice: RendererChoice): void {
    this.rendererChoice = choice;
    this.keep();
  }

  toggleLayer(name: LayerName): void {
    this.layers[name] = !this.layers[name];
    this.keep();
    this.changed(name);
  }

  /** The simulator was started for a weak machine: fewer layers, which are not kept. */
  useLite(): void {
    this.layers = defaultLayers(true);
    this.changed(null);
  }

  toggleModel(name: string): void {
    const hidden = new Set(this.hiddenModels);
    if (!hidden.delete(name)) hidden.add(name);
    this.hiddenModels = [...hidden];
    this.changed(null);
  }

  toggleSnaps(): void {
    this.snaps = !this.snaps;
    this.keep();
  }

  toggleLog(): void {
    this.showLog = !this.showLog;
    this.keep();
  }

  /** True once in the life of a browser: the hint for the first time is to be shown. */
  takeHint(): boolean {
    if (this.hinted) return false;
    this.hinted = true;
    this.keep();
    return true;
  }
}
