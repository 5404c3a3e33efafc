import { expect, it } from "vitest";
import { USUAL_TOPICS } from "../src/generated/messages";
import { exactly, MOST_PATTERNS, Recording, type Choice } from "../src/stores/recording";
import { FakeNotices, FakeSimulator } from "./storefakes";

function page(recording: string) {
  const simulator = Object.assign(new FakeSimulator(), { stats: { recording } });
  const notices = new FakeNotices();
  return { simulator, notices, recording: new Recording(simulator, notices) };
}

it("begins a recording when there is none, else ends it, and says where the file is", async () => {
  const idle = page("");
  idle.simulator.answers.start_recording = "/runs/botyard.mcap";
  await idle.recording.toggle();
  expect(idle.simulator.asked).toEqual([{ type: "start_recording" }]);
  expect(idle.notices.said).toEqual(["recording to /runs/botyard.mcap"]);
  const busy = page("botyard.mcap");
  busy.simulator.answers.stop_recording = "/runs/botyard.mcap";
  await busy.recording.toggle();
  expect(busy.simulator.asked).toEqual([{ type: "stop_recording" }]);
  expect(busy.notices.said).toEqual(["recorded: /runs/botyard.mcap [download]"]);
});

const usual: Choice = { topics: "usual", patterns: "/unused", robots: null, minutes: 0, onStall: true, rates: {} };

it.each<[Partial<Choice>, object]>([
  [{}, {}],
  [{ topics: "withoutScans" }, { topics: [...USUAL_TOPICS] }],
  [{ topics: "all" }, { topics: ["*"] }],
  [{ topics: "named", patterns: " */odom,/tf\n /ann/[bs]* " }, { topics: ["*/odom", "/tf", "/ann/[bs]*"] }],
  [{ robots: ["ann", "b*b [1]"] }, { robots: ["ann", "b[*]b [[]1]"] }],
  [{ rates: { "*": 0, "/tf": 5 } }, { rates: [["*", 0]] }],
  [{ topics: "named", patterns: "/tf */odom /tf", rates: { "*": 3, "*/odom": 5, "/tf": null } }, { topics: ["/tf", "*/odom", "/tf"], rates: [["*/odom", 5]] }],
])("asks for what is chosen: %j", async (choice, asked) => {
  const { simulator, notices, recording } = page("");
  simulator.answers.start_recording = "/runs/botyard.mcap";
  expect(await recording.start({ ...usual, ...choice })).toBe(true);
  expect(simulator.asked).toEqual([{ type: "start_recording", ...asked }]);
  expect(notices.said).toEqual(["recording to /runs/botyard.mcap"]);
});

it("keeps the last minutes in memory", async () => {
  const { simulator, notices, recording } = page("");
  simulator.answers.start_recording = "/runs/botyard.mcap";
  expect(await recording.start({ ...usual, minutes: 2.5, onStall: false })).toBe(true);
  expect(simulator.asked).toEqual([{ type: "start_recording", last: 150 }]);
  expect(await recording.start({ ...usual, minutes: 1 })).toBe(true);
  expect(simulator.asked[1]).toEqual({ type: "start_recording", last: 60, on_stall: true });
  expect(notices.said[0]).toBe("keeping for /runs/botyard.mcap");
});

it("tells when the simulator refuses a choice", async () => {
  const { simulator, recording } = page("");
  simulator.answers.start_recording = new Error("topics begin with a slash");
  expect(await recording.start({ ...usual, topics: "named", patterns: "odom" })).toBe(false);
});

it("sees when nothing, or too much, is chosen", () => {
  const names = (n: number) => Array.from({ length: n }, (_, i) => `/r${i}`);
  const problem = (choice: Partial<Choice>) => Recording.problem({ ...usual, ...choice });
  expect(problem({})).toBe("");
  expect(problem({ topics: "usual", patterns: "" })).toBe("");
  expect([0.1, 1440, 1441, NaN].map((minutes) => problem({ minutes }))).toEqual(["", "", "expected 0 to 1440 minutes", "expected 0 to 1440 minutes"]);
  expect([0, 1e6, -1, 2e6].map((rate) => problem({ rates: { "*": rate } }))).toEqual([
    "",
    "",
    "expected rates of 0 to 1000000 a second",
    "expected rates of 0 to 1000000 a second",
  ]);
  expect(problem({ topics: "named", rates: { "*": -1 } })).toBe("");
  expect(problem({ topics: "named", patterns: " , " })).toBe("no topics");
  expect(problem({ topics: "named", patterns: names(MOST_PATTERNS).join(" ") })).toBe("");
  expect(problem({ topics: "named", patterns: names(MOST_PATTERNS + 1).join(" ") })).toBe("101 patterns; at most 100");
  expect(problem({ robots: [] })).toBe("no robots");
  expect(problem({ robots: names(MOST_PATTERNS) })).toBe("");
  expect(problem({ robots: names(MOST_PATTERNS + 1) })).toBe("101 robots; at most 100, or all");
});

it("writes a name as a pattern that fits it alone", () => {
  expect(exactly("a[b]?*")).toBe("a[[]b][?][*]");
});

it("says nothing of its own when the simulator refuses", async () => {
  const { simulator, notices, recording } = page("last.mcap");
  simulator.answers.save_recording = new Error("nothing is being recorded");
  await recording.save();
  expect(simulator.of("save_recording").length).toBe(1);
  expect(notices.said).toEqual([]);
});
