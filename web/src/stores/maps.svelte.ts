// The map of the world: fetched to be drawn, sent from this computer, saved with the world.

import { bundle, bundleName, mainName } from "../net/bundle";
import { MAX_UPLOAD, type MapInfo, type MapPicture } from "../generated/messages";
import type { Ask } from "../net/connection";
import { decodeMap, type WorldMap } from "../net/frames";
import { shown } from "../text";
import type { Asks, Download, Fetch, Says } from "./ports";

export class Maps {
  name = $state("");
  /** The file that it was read from; "": none that could be read again. */
  source = $state("");
  /** Slow operation in progress; "": none. */
  busy = $state("");
  private pictures = new Map<string, Promise<MapPicture>>();
  private lastPicture: Promise<unknown> = Promise.resolve();
  /** The present map. */
  private info: MapInfo = { url: "", name: "", source: "", bounds: null, view: null };

  constructor(
    /** Takes the walls when they are there. */
    private setMap: (map: WorldMap) => void,
    private session: Asks & { request<T>(request: Ask): Promise<T> },
    private notices: Says,
    private token: () => string,
    private page: () => number,
    private fetch: Fetch,
    private download: Download,
  ) {}

  /** Whether this is the present map, perhaps in another edition: what is drawn of it still fits. */
  isSame(info: MapInfo): boolean {
    const place = (m: MapInfo) => JSON.stringify([m.url === "", m.name, m.source, m.bounds, m.view]);
    return place(info) === place(this.info);
  }

  private async get(url: string, more: RequestInit = {}): Promise<Response> {
    const answer = await this.fetch(url, { ...more, headers: { authorization: `Bearer ${this.token()}` } });
    if (!answer.ok) throw new Error((await answer.text()) || `${url}: ${answer.status}`);
    return answer;
  }

  /** The bodies that are shown from now on are in this map: fetch its walls, unless they are here. */
  async show(info: MapInfo): Promise<void> {
    const { url, name, source } = info;
    const known = url === this.info.url;
    this.info = info;
    this.name = url ? name : "";
    this.source = source;
    if (known || !url) return;
    await this.work(`loading ${shown(name)}`, async () => {
      const map = decodeMap(await (await this.get(url)).arrayBuffer());
      const picture = map.floor?.picture;
      if (picture?.png) picture.image = await createImageBitmap(new Blob([picture.png], { type: "image/png" }));
      if (url === this.info.url) this.setMap(map); // else another one was put in place meanwhile
    });
  }

  /** Do something that may take a while; whether it was done. What goes wrong is shown. */
  private async work(what: string, act: () => Promise<unknown>): Promise<boolean> {
    this.busy = what;
    try {
      await act();
      return true;
    } catch (error) {
      this.notices.fail(error);
      return false;
    } finally {
      this.busy = "";
    }
  }

  /** A small picture of a map that the simulator has: read one after the other, each once. */
  picture(name: string): Promise<MapPicture> {
    const known = this.pictures.get(name);
    if (known) return known;
    const found = this.lastPicture.then(() => this.session.request<MapPicture>({ type: "look_at_map", name }));
    this.lastPicture = found.catch(() => undefined);
    this.pictures.set(name, found);
    found.catch(() => this.pictures.delete(name)); // it is asked for again the next time
    return found;
  }

  /** Load a map that the simulator has; "": none. */
  async load(name: string): Promise<void> {
    await this.work(`loading ${shown(name)}`, async () => {
      const done = await this.session.ask({ type: "map", name });
      if (done !== undefined) this.notices.offer(name ? `${name} loaded` : "no map any more");
    });
  }

  /** Send a map or world: one file, or several that belong together, as one .zip. Whether it was taken. */
  async upload(files: readonly File[]): Promise<boolean> {
    const name = bundleName(files.map((f) => f.name));
    return this.work(`sending ${shown(name)}`, async () => {
      const size = files.reduce((sum, f) => sum + f.size, 0);
      if (size > MAX_UPLOAD) throw new Error(`${name}: ${(size / 2 ** 20).toFixed(0)} MiB; at most ${MAX_UPLOAD / 2 ** 20} MiB are taken`);
      const file = files.length === 1 ? files[0] : await bundle(files);
      await this.get(`upload?name=${encodeURIComponent(name)}&page=${this.page()}`, { method: "POST", body: file });
      this.notices.offer(`${mainName(files.map((f) => f.name))} loaded`);
    });
  }

  /** Download the world as it is now: a scenario and its map. `time`: simulated, s. */
  async save(time: number): Promise<void> {
    try {
      const answer = await this.get("scenario.zip");
      this.download(await answer.blob(), `${this.name || "world"}-${time.toFixed(1)}s.zip`);
    } catch (error) {
      this.notices.fail(error);
    }
  }
}
