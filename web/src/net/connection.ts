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

const RETRY = [250, 500, 1000, 2000, 4000];
/** Codes with which the simulator refuses a page for good. */
const FINAL: Record<number, string> = {
  4401: "wrong token",
  4403: "this page may not talk to the simulator",
  4426: "this page is older or newer than the simulator: load it again",
};

export class Connection {
  status: Status = "connecting";
  view: View = {};
  private socket: WebSocket | null = null;
  private next = 1;
  private waiting = new Map<number, Waiting>();
  private newest: ArrayBuffer | null = null;
  private tries = 0;
  private timer = 0;
  private closed = false;

  constructor(
    private url: string,
    readonly token: string,
    private listener: Listener,
  ) {}

  open(): void {
    this.closed = false;
    this.set("connecting", "");
    const socket = new WebSocket(this.url);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", id: 0, token: this.token, version: VERSION, view: this.view }));
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => {
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
      this.socket = null;
      this.newest = null;
      for (const one of this.waiting.values()) one.reject(new Error("the connection to the simulator was lost"));
      this.waiting.clear();
      if (this.closed) return;
      const final = FINAL[event.code];
      if (final) this.set("refused", event.reason || final);
      else {
        this.set("lost", event.reason);
        this.timer = window.setTimeout(() => this.open(), RETRY[Math.min(this.tries++, RETRY.length - 1)]);
      }
    };
  }

  close(): void {
    this.closed = true;
    window.clearTimeout(this.timer);
    this.socket?.close();
  }

  private set(status: Status, reason: string): void {
    this.status = status;
    this.listener.status(status, reason);
  }

  private receive(message: Push): void {
    if (message.type === "welcome") {
      this.tries = 0;
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


