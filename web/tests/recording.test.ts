import { expect, it } from "vitest";
import { Recording } from "../src/stores/recording";
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
  expect(busy.notices.said).toEqual(["recorded: /runs/botyard.mcap"]);
});

it("says nothing of its own when the simulator refuses", async () => {
  const { simulator, notices, recording } = page("last.mcap");
  simulator.answers.save_recording = new Error("nothing is being recorded");
  await recording.save();
  expect(simulator.of("save_recording").length).toBe(1);
  expect(notices.said).toEqual([]);
});
