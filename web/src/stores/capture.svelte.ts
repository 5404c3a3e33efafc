// Pictures of the world as it is drawn: one, or many at an interval.

import { zipSync } from "fflate";
import type { Download, Says } from "./ports";

export type PictureKind = "png" | "jpeg";

/** Pictures of one sequence; it ends by itself then. */
export const MAX_PICTURES = 2000;

export class Capture {
  /** The sequence that is being taken. */
  sequence = $state.raw<{ interval: number; count: number } | null>(null);
  private pictures: Record<string, Uint8Array<ArrayBuffer>> = {};
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    /** A picture of what is shown; null: nothing is. */
    private picture: (kind: PictureKind) => Promise<Blob | null>,
    private notices: Says,
    private download: Download,
  ) {}

  /** `time`: simulated, s; it goes into the name. */
  async save(kind: PictureKind, time: number): Promise<void> {
    const blob = await this.picture(kind);
    if (blob) this.download(blob, `botyard-${time.toFixed(1)}s.${kind === "png" ? "png" : "jpg"}`);
  }

  /** Take one now and then one every so many s. */
  start(interval: number): void {
    this.stop();
    this.sequence = { interval, count: 0 };
    const take = () => this.take().catch((error: unknown) => this.notices.fail(error));
    void take();
    this.timer = setInterval(() => void take(), interval * 1000);
  }

  private async take(): Promise<void> {
    const { pictures } = this;
    const blob = await this.picture("png");
    const bytes = blob && new Uint8Array(await blob.arrayBuffer());
    if (!bytes || !this.sequence || pictures !== this.pictures) return; // it has ended meanwhile
    const { interval, count: before } = this.sequence;
    const count = before + 1;
    pictures[`botyard-${String(count).padStart(5, "0")}.png`] = bytes;
    this.sequence = { interval, count };
    if (count >= MAX_PICTURES) this.stop();
  }

  /** Save what was taken so far, as one archive. */
  stop(): void {
    clearInterval(this.timer);
    const { pictures } = this;
    const count = this.sequence?.count ?? 0;
    this.sequence = null;
    this.pictures = {};
    if (count) this.download(new Blob([zipSync(pictures, { level: 0 })], { type: "application/zip" }), "botyard-pictures.zip");
  }
}
