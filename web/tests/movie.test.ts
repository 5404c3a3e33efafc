import { describe, expect, it } from "vitest";
import { Movie } from "../src/stores/movie";
import { FakeNotices, FakeSimulator } from "./storefakes";

describe("movies", () => {
  it("are of the whole time line of a recording, and of the last seconds of a running simulation", () => {
    expect(Movie.part({ first: 5, last: 500 }, true)).toEqual({ begin: 5, end: 500 });
    expect(Movie.part({ first: 5, last: 500 }, false)).toEqual({ begin: 470, end: 500 });
    expect(Movie.part({ first: 5, last: 10 }, false)).toEqual({ begin: 5, end: 10 });
  });

  it("are asked for, and it is said where they are", async () => {
    const simulator = Object.assign(new FakeSimulator(), { stats: null });
    const notices = new FakeNotices();
    const movie = new Movie(simulator, notices);
    simulator.answers.write_movie = "/tmp/botyard.mp4";
    await movie.make({ begin: 1, end: 2 });
    expect(simulator.of("write_movie")).toEqual([{ type: "write_movie", begin: 1, end: 2 }]);
    expect(notices.said).toEqual(["the simulator has written /tmp/botyard.mp4 [download]"]);
    simulator.answers.write_movie = new Error("one is being made");
    await movie.make({ begin: 1, end: 2 });
    expect(notices.said.length).toBe(1);
    await movie.cancel();
    expect(simulator.of("cancel_movie").length).toBe(1);
  });
});
