// The WebSocket to the simulator: answers find their questions, only the newest frame is kept, a lost connection is sought again.

import { VERSION, type AnyRequest, type Push, type View } from "../generated/messages";
import { decodeFrame, type Frame } from "./frames";

export type Status = "connecting" | "open" | "lost" | "refused";

export interface Listener {
  status(status: Status, reason: string): void;
  message(message: Push): void;
  /** A newer frame is there: take it with `takeFrame`. */
  frame(): void;
}

type Waiting = { resolve: (value: unknown) => void; reject: (error: Error) => void };
/** A request as callers write it: the connection numbers it. */
type Unnumbered<T> = T extends unknown ? Omit<T, "id"> : never;
export type Ask = Unnumbered<AnyRequest>;

/** The simulator sends its state twice a second. After this silence, ms, it counts as not answering … */
export const SILENCE = 3000;
/** … and after so long, ms, another connection is tried. */
export const GIVEN_UP = 10_000;
export const WRONG_TOKEN = 4401;
const RETRY = [250, 500, 1000, 2000, 4000];
/** Codes with which the simulator refuses a page for good. */
const FINAL: Record<number, string> = {
  [WRONG_TOKEN]: "wrong token",
  4403: "this page may not talk to the simulator",
  4426: "this page is older or newer than the simulator: load it again",
};

export class Connection {
  status: Status = "connecting";
  /** The code with which the simulator refused this page for good; 0: it did not. */
  refusal = 0;
  view: View = {};
  private socket: WebSocket | null = null;
  private welcomed = false;
  private next = 1;
  private waiting = new Map<number, Waiting>();
  private newest: ArrayBuffer | null = null;
  private tries = 0;
  private timer = 0;
  private watch = 0;
  private heard = 0;

  constructor(
    private url: string,
    public token: string,
    private listener: Listener,
  ) {}

  open(): void {
    this.forget();
    this.refusal = 0;
    if (this.status !== "lost") this.set("connecting", ""); // one that is lost stays so until there is another
    this.heard = performance.now();
    this.watch = window.setInterval(() => this.look(), 500);
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", id: 0, token: this.token, version: VERSION, view: this.view }));
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
      if (socket !== this.socket) return;
      this.heard = performance.now();
      if (this.welcomed && this.status === "lost") this.set("open", ""); // it was silent for a while
      if (typeof event.data === "string") this.receive(JSON.parse(event.data) as Push);
      else {
        // one that was not drawn is overtaken; the simulator need not wait for its acknowledgement
        if (this.newest) this.acknowledge(new DataView(this.newest).getUint32(28, true));
        this.newest = event.data;
        this.listener.frame();
      }
    };
    socket.onclose = (event) => {
      if (socket !== this.socket) return;
      this.forget();
      const final = FINAL[event.code];
      if (final) {
        this.refusal = event.code;
        this.set("refused", event.reason || final);
      } else this.lost(event.reason);
    };
  }

  /** Connect again with another token. */
  useToken(token: string): void {
    this.token = token;
    this.tries = 0;
    this.status = "connecting";
    this.open();
  }

  close(): void {
    this.forget();
  }

  /** A connection may seem open without an answering peer: the simulator hangs, or the network is down. */
  look(now = performance.now()): void {
    const silent = now - this.heard;
    if (this.socket && silent > GIVEN_UP) {
      this.forget();
      this.lost("");
    } else if (this.status === "open" && silent > SILENCE) this.set("lost", "");
  }

  /** The socket, if there is one, counts no longer, and nothing that was asked will be answered. */
  private forget(): void {
    window.clearTimeout(this.timer);
    window.clearInterval(this.watch);
    const socket = this.socket;
    this.socket = null;
    this.newest = null;
    this.welcomed = false;
    socket?.close();
    for (const one of this.waiting.values()) one.reject(new Error("the connection to the simulator was lost"));
    this.waiting.clear();
  }

  private lost(reason: string): void {
    this.set("lost", reason);
    this.timer = window.setTimeout(() => this.open(), RETRY[Math.min(this.tries++, RETRY.length - 1)]);
  }

  private set(status: Status, reason: string): void {
    this.status = status;
    this.listener.status(status, reason);
  }

  private receive(message: Push): void {
    if (message.type === "welcome") {
      this.tries = 0;
      this.welcomed = true;
      this.set("open", "");
    }
    if (message.type === "ok" || message.type === "error") {
      const one = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.type === "ok") one?.resolve(message.result);
      else if (one) one.reject(new Error(message.message));
      return;
    }
    this.listener.message(message);
  }

  /** The newest frame, once; acknowledged when `drawn` is called. Null: there is none, or it was broken. */
  takeFrame(): Frame | null {
    const buffer = this.newest;
    this.newest = null;
    if (!buffer) return null;
    try {
      return decodeFrame(buffer);
    } catch (error) {
      console.error(error);
      return null;
    }
  }

  acknowledge(number: number): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "ack", number }));
  }

  /** Ask for something; rejects with the simulator's reason. */
  request<T = unknown>(request: Ask): Promise<T> {
    const socket = this.socket;
    if (this.status !== "open" || socket?.readyState !== WebSocket.OPEN)
      return Promise.reject(new Error("not connected to the simulator"));
    const id = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      socket.send(JSON.stringify({ ...request, id }));
    });
  }

  setView(view: View): void {
    this.view = view;
    if (this.status === "open") this.request({ type: "view", view }).catch(() => {});
  }
}


