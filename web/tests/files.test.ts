import { unzipSync } from "fflate";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { MAP_MAGIC, MAX_UPLOAD } from "../src/generated/messages";
import type { WorldMap } from "../src/net/frames";
import { Capture, MAX_PICTURES, type PictureKind } from "../src/stores/capture.svelte";
import { Maps } from "../src/stores/maps.svelte";
import { FakeNotices, FakeSimulator, mapInfo, settle } from "./storefakes";

/** The bytes of a map with one wall (layout: src/botyard/protocols/webgui/frames.py). */
function mapBytes(name: string): ArrayBuffer {
  const text = JSON.stringify({ name, origin: [0, 0], bounds: null, resolution: 0.1, places: [], areas: [], walls: 1, points: 0 });
  const head = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 4) * 4));
  const buffer = new ArrayBuffer(8 + head.length + 16);
  new DataView(buffer).setUint32(0, MAP_MAGIC, true);
  new DataView(buffer).setUint32(4, head.length, true);
  new Uint8Array(buffer, 8, head.length).set(head);
  return buffer;
}

describe("maps", () => {
  const made = () => {
    const shown: WorldMap[] = [];
    const asked: [string, RequestInit][] = [];
    const answers: Record<string, () => Promise<Response>> = {};
    const simulator = new FakeSimulator();
    const notices = new FakeNotices();
    const saved: [Blob, string][] = [];
    const maps = new Maps(
      (m) => void shown.push(m),
      simulator, notices, () => "secret", () => 4,
      (url, init) => {
        asked.push([url, init ?? {}]);
        return answers[url.split("?")[0]]();
      },
      (blob, name) => void saved.push([blob, name]),
    ); // prettier-ignore
    return { maps, shown, asked, answers, simulator, notices, saved };
  };

  it("are fetched with the token", async () => {
    const { maps, shown, asked, answers } = made();
    answers.map1 = () => Promise.resolve(new Response(mapBytes("lab")));
    const lab = mapInfo("map1", { name: "lab\n", source: "/maps/lab.map", bounds: [0, 0, 5, 5] });
    expect(maps.isSame(lab)).toBe(false);
    const done = maps.show(lab);
    expect(maps.busy).toBe("loading lab\\x0a");
    await done;
    expect([maps.busy, maps.name, maps.source]).toEqual(["", "lab\n", "/maps/lab.map"]);
    expect([shown[0].name, shown[0].walls.length]).toEqual(["lab", 4]);
    expect(asked[0][1].headers).toEqual({ authorization: "Bearer secret" });
    await maps.show(lab);
    expect([maps.isSame({ ...lab, url: "map2" }), maps.isSame({ ...lab, bounds: [0, 0, 5, 6] }), asked.length]).toEqual([true, false, 1]);
    await maps.show(mapInfo("", { name: "none" }));
    expect([maps.name, asked.length]).toEqual(["", 1]);
  });

  it("that come late are not shown", async () => {
    const { maps, shown, answers } = made();
    let come: (r: Response) => void = () => {};
    answers.slow = () => new Promise((resolve) => void (come = resolve));
    answers.fast = () => Promise.resolve(new Response(mapBytes("fast")));
    const slow = maps.show(mapInfo("slow"));
    await maps.show(mapInfo("fast"));
    come(new Response(mapBytes("slow")));
    await slow;
    expect(shown.map((m) => m.name)).toEqual(["fast"]);
  });

  it("that cannot be had or read are told of", async () => {
    const { maps, shown, answers, notices } = made();
    answers.gone = () => Promise.resolve(new Response("no such map", { status: 404 }));
    answers.mute = () => Promise.resolve(new Response("", { status: 500 }));
    answers.broken = () => Promise.resolve(new Response("<html>"));
    answers.dead = () => Promise.reject(new TypeError("network"));
    for (const url of Object.keys(answers)) await maps.show(mapInfo(url));
    expect(notices.said).toEqual(["!no such map", "!mute: 500", "!not a map", "!network"]);
    expect([maps.busy, shown]).toEqual(["", []]);
  });

  it("are sent: one as it is, several as one archive, none that is too large", async () => {
    const { maps, asked, answers, notices } = made();
    answers.upload = () => Promise.resolve(new Response("ok"));
    expect(await maps.upload([new File(["x"], "a b.map")])).toBe(true);
    expect(await maps.upload([new File(["image: i.pgm"], "lab.yaml"), new File(["P5"], "i.pgm")])).toBe(true);
    expect(asked.map(([url]) => url)).toEqual(["upload?name=a%20b.map&page=4", "upload?name=lab.zip&page=4"]);
    expect(Object.keys(unzipSync(new Uint8Array(await (asked[1][1].body as Blob).arrayBuffer())))).toEqual(["lab.yaml", "i.pgm"]);
    const huge = { name: "huge.map", size: MAX_UPLOAD + 1, arrayBuffer: () => Promise.reject(new Error("it was read")) } as unknown as File;
    expect(await maps.upload([huge])).toBe(false);
    answers.upload = () => Promise.resolve(new Response("line 3: no map", { status: 422 }));
    expect(await maps.upload([new File(["x"], "bad.map")])).toBe(false);
    expect(notices.said).toEqual(["a b.map loaded [undo]", "lab.yaml loaded [undo]", "!huge.map: 64 MiB; at most 64 MiB are taken", "!line 3: no map"]);
  });

  it("of the simulator are loaded by name", async () => {
    const { maps, simulator } = made();
    await maps.load("office");
    expect([simulator.asked, maps.busy]).toEqual([[{ type: "map", name: "office" }], ""]);
  });

  it("are saved with the world", async () => {
    const { maps, answers, saved, notices } = made();
    answers["scenario.zip"] = () => Promise.resolve(new Response("zip"));
    await maps.save(12.34);
    expect([saved[0][1], await saved[0][0].text()]).toEqual(["world-12.3s.zip", "zip"]);
    answers["scenario.zip"] = () => Promise.resolve(new Response("you may only look on", { status: 403 }));
    await maps.save(1);
    expect([saved.length, notices.said]).toEqual([1, ["!you may only look on"]]);
  });
});

describe("pictures", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const made = (picture: (kind: PictureKind) => Promise<Blob | null> = (kind) => Promise.resolve(new Blob([kind]))) => {
    const saved: [Blob, string][] = [];
    const notices = new FakeNotices();
    const taken = vi.fn(picture);
    return { saved, notices, taken, capture: new Capture(taken, notices, (blob, name) => void saved.push([blob, name])) };
  };
  /** Blobs are read by Node beside its timers. */
  const read = async () => {
    vi.useRealTimers();
    await new Promise((resolve) => void setImmediate(resolve));
    await new Promise((resolve) => void setImmediate(resolve));
    vi.useFakeTimers();
  };

  it("are called after the time and their kind", async () => {
    const { capture, saved } = made();
    await capture.save("png", 1.25);
    await capture.save("jpeg", 10);
    expect(saved.map(([, name]) => name)).toEqual(["botyard-1.3s.png", "botyard-10.0s.jpg"]);
    await made(() => Promise.resolve(null)).capture.save("png", 1);
  });

  it("at an interval are one archive at the end", async () => {
    const bytes = { arrayBuffer: () => Promise.resolve(new Uint8Array([1, 2]).buffer) } as Blob;
    const { capture, saved, taken } = made(() => Promise.resolve(bytes));
    capture.start(0.5);
    await vi.advanceTimersByTimeAsync(1100);
    expect(capture.sequence).toEqual({ interval: 0.5, count: 3 });
    capture.stop();
    await vi.advanceTimersByTimeAsync(5000);
    expect([taken.mock.calls.length, capture.sequence]).toEqual([3, null]);
    await read();
    const zip = unzipSync(new Uint8Array(await saved[0][0].arrayBuffer()));
    expect(Object.keys(zip)).toEqual(["botyard-00001.png", "botyard-00002.png", "botyard-00003.png"]);
    expect([...zip["botyard-00001.png"]]).toEqual([1, 2]);
    capture.stop();
    expect(saved.length).toBe(1);
  });

  it("end by themselves when there are very many", async () => {
    const bytes = { arrayBuffer: () => Promise.resolve(new ArrayBuffer(1)) } as Blob;
    const { capture, saved } = made(() => Promise.resolve(bytes));
    capture.start(0.1);
    await vi.advanceTimersByTimeAsync(100 * (MAX_PICTURES + 5));
    expect([capture.sequence, saved.length]).toEqual([null, 1]);
  });

  it("that fail are told of; one that comes after the end belongs to nobody", async () => {
    const late: ((blob: Blob) => void)[] = [];
    const { capture, saved } = made(() => new Promise((resolve) => void late.push(resolve)));
    capture.start(1);
    capture.stop();
    capture.start(1);
    late[0]({ arrayBuffer: () => Promise.resolve(new ArrayBuffer(1)) } as Blob);
    await settle();
    expect([capture.sequence?.count, saved.length]).toEqual([0, 0]);
    capture.stop();
    const failing = made(() => Promise.reject(new Error("the canvas is tainted")));
    failing.capture.start(1);
    await settle();
    failing.capture.stop();
    expect(failing.notices.said).toEqual(["!the canvas is tainted"]);
  });
});
