import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Connection, GIVEN_UP, SILENCE, WRONG_TOKEN } from "../src/net/connection";

/** A socket that the test works; all that were made, the newest last. */
const sockets: FakeSocket[] = [];

class FakeSocket {
  static OPEN = 1;
  readyState = 1;
  sent: { type: string; token?: string; id?: number }[] = [];
  closed = false;
  onopen: () => void = () => {};
  onmessage: (e: { data: string }) => void = () => {};
  onclose: (e: { code: number; reason: string }) => void = () => {};
  constructor(readonly url: string) {
    sockets.push(this);
  }
  send(text: string) {
    this.sent.push(JSON.parse(text) as (typeof this.sent)[number]);
  }
  close() {
    this.closed = true;
  }
  says(message: object) {
    this.onmessage({ data: JSON.stringify(message) });
  }
  ends(code: number, reason = "") {
    this.onclose({ code, reason });
  }
}

const last = () => sockets[sockets.length - 1];

describe("the connection", () => {
  const states: string[] = [];
  let connection: Connection;

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("window", globalThis);
    sockets.length = states.length = 0;
    connection = new Connection("ws://x/ws", "one", { status: (s) => void states.push(s), message: () => {}, frame: () => {} });
    connection.open();
    last().onopen();
  });

  afterEach(() => {
    connection.close();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("is lost when nothing comes any more, and there again when something does", () => {
    last().says({ type: "welcome" });
    expect(states).toEqual(["connecting", "open"]);
    vi.advanceTimersByTime(SILENCE - 600);
    last().says({ type: "status" });
    vi.advanceTimersByTime(SILENCE - 600);
    expect(connection.status).toBe("open");
    vi.advanceTimersByTime(1200);
    expect(connection.status).toBe("lost");
    last().says({ type: "status" });
    expect(connection.status).toBe("open");
    expect(sockets.length).toBe(1);
  });

  it("is given up when it stays silent, and another is tried until one answers; it counts as lost meanwhile", async () => {
    last().says({ type: "welcome" });
    const asked = connection.request({ type: "catalog" });
    const failed = expect(asked).rejects.toThrow("lost");
    vi.advanceTimersByTime(GIVEN_UP + 1200);
    await failed;
    expect(sockets.length).toBe(2);
    expect(sockets[0].closed).toBe(true);
    vi.advanceTimersByTime(GIVEN_UP + 1200);
    expect(sockets.length).toBe(3); // one that never answers is given up too
    last().ends(1006);
    expect(new Set(states.slice(2))).toEqual(new Set(["lost"]));
    vi.advanceTimersByTime(5000);
    last().says({ type: "welcome" });
    expect(connection.status).toBe("open");
    sockets[0].ends(1006); // the old one ends at last: nobody cares
    expect(connection.status).toBe("open");
  });

  it("takes another token when the first was wrong", () => {
    last().ends(WRONG_TOKEN, "wrong token");
    expect(states).toEqual(["connecting", "refused"]);
    expect(connection.refusal).toBe(WRONG_TOKEN);
    vi.advanceTimersByTime(60_000);
    expect(sockets.length).toBe(1);
    connection.useToken("two");
    last().onopen();
    expect(sockets.length).toBe(2);
    expect(last().sent[0]).toMatchObject({ type: "hello", token: "two" });
    last().says({ type: "welcome" });
    expect(connection.status).toBe("open");
    expect(connection.refusal).toBe(0);
  });

  it("takes another token while the first is in force", () => {
    last().says({ type: "welcome" });
    connection.useToken("two");
    expect(sockets[0].closed).toBe(true);
    last().onopen();
    expect(last().sent[0].token).toBe("two");
    sockets[0].ends(1000);
    last().says({ type: "welcome" });
    expect(connection.status).toBe("open");
  });
});
