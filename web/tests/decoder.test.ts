import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeFrame, decodeMap } from "../src/net/frames";
import { zoneLabel } from "../src/view/floor";

// frames made by Python, in the environment of the checkout
const root = resolve(__dirname, "../..");
const python = resolve(root, process.platform === "win32" ? ".venv/Scripts/python.exe" : ".venv/bin/python");
const SCRIPT = `
import base64, json, numpy as np
from botyard.model.floor import Floor, FloorPicture, FloorZone, PheromoneField
from botyard.model.scene import Scene, Place
from botyard.geometry import Pose
from botyard.protocols.webgui import frames as f
from botyard.protocols.webgui.kernels.units import write_units
header = f.Header(7, f.PAUSED, 12.5, 125, 4000000001, 0.5, 1.25, 2.0)
pose = np.array([[1.5, -2.5, 0.25], [3.0, 4.0, -1.0], [0.0, 0.0, 0.5]], "<f4")
ranges = np.array([1.0, 2.5, 8.0, 0.001, np.nan, 70.0])
units = np.zeros((2, 3), np.uint16)
write_units(ranges, np.array([0, 3]), 1000.0, units)
frame = f.encode(header, [
    (f.Block.POSE, 0, 3, [pose]),
    (f.Block.STATE, 0, 3, [np.array([1, 2, 32], np.uint8)]),
    (f.Block.ODOMETRY, 0, 2, [pose[:2]]),
    (f.Block.VELOCITY, 0, 1, [pose[:1]]),
    (f.Block.READINGS, 3, 2, [np.array([1, 0], np.uint32), units]),
    (f.Block.BRIGHT, 3, 1, [np.array([4], np.uint32)]),
    (f.Block.FIELD, 1, 2, [np.array([[1, 2, 3], [4, 5, 255]], np.uint8)]),
    (f.Block.STEERING, 0, 2, [np.array([0, 2], np.uint32), np.array([0.5, -0.25], np.float32)]),
])
corners = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))
floor = Floor(color="red", picture=FloorPicture(pixels=np.zeros((2, 3, 3), np.uint8), resolution=0.5),
              zones=(FloorZone(name="ice", corners=corners, slip=0.5, speed_limit=0.3),),
              fields=(PheromoneField(name="trail", area=(0.0, 0.0, 1.0, 2.0), cell=0.5),))
scene = Scene(name="Küche", segments=np.array([[0.0, 0.0, 4.0, 2.0]]), points=np.array([[1.0, 1.5]]),
              places=(Place(kind="Dock", name="d", pose=Pose(1, 2, 3)),), floor=floor)
print(json.dumps([base64.b64encode(b).decode() for b in (frame, f.encode_map(scene))]))
`;

function bytes(text: string): ArrayBuffer {
  const data = Buffer.from(text, "base64");
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
}

describe.runIf(existsSync(python))("what Python encodes", () => {
  const [frame, map] = (JSON.parse(execFileSync(python, ["-c", SCRIPT], { encoding: "utf8" })) as string[]).map(bytes);

  it("is decoded: frames", () => {
    const f = decodeFrame(frame);
    expect(f).toMatchObject({ schema: 7, flags: 1, time: 12.5, tick: 125, number: 4000000001, ratio: 0.5, stepMs: 1.25, speed: 2 });
    expect([...f.pose]).toEqual([1.5, -2.5, 0.25, 3, 4, -1, 0, 0, 0.5]);
    expect([...f.state]).toEqual([1, 2, 32]);
    expect([...f.odometry!]).toEqual([1.5, -2.5, 0.25, 3, 4, -1]);
    expect([...f.velocity!]).toEqual([1.5, -2.5, 0.25]);
    expect(f.readings).toHaveLength(1);
    expect(f.readings[0].group).toBe(3);
    expect([...f.readings[0].robots]).toEqual([1, 0]);
    expect([...f.readings[0].ranges]).toEqual([1000, 2500, 8000, 1, 0xfffe, 0xfffd]);
    expect([...f.readings[0].bright]).toEqual([4]);
    expect(f.fields).toHaveLength(1);
    expect(f.fields[0]).toMatchObject({ field: 1, rows: 2 });
    expect([...f.fields[0].levels]).toEqual([1, 2, 3, 4, 5, 255]);
    expect([...f.steering]).toEqual([[0, 0.5], [2, -0.25]]); // prettier-ignore
  });

  it("is decoded: maps", () => {
    const m = decodeMap(map);
    expect(m.name).toBe("Küche");
    expect(m.origin).toEqual([2, 1]);
    expect([...m.walls]).toEqual([-2, -1, 2, 1]);
    expect([...m.points]).toEqual([-1, 0.5]);
    expect(m.places[0]).toEqual({ kind: "Dock", name: "d", pose: [1, 2, 3], heading: true });
    const floor = m.floor!;
    expect(floor.color).toBe("#ff0000");
    expect(floor.picture).toMatchObject({ pose: [0, 0, 0], width: 1.5, height: 1 });
    expect([...floor.picture!.png!.slice(1, 4)]).toEqual([..."PNG"].map((c) => c.charCodeAt(0)));
    expect(floor.picture!.png).toHaveLength(floor.picture!.bytes);
    expect(zoneLabel(floor.zones[0])).toBe("ice, 0.3 m/s, slip 50 %");
    expect(floor.fields[0]).toMatchObject({ name: "trail", rows: 4, columns: 2, cell: 0.5 });
  });

  it("is refused when it is cut short, at any byte", () => {
    for (let n = 0; n < frame.byteLength; n++) {
      try {
        const f = decodeFrame(frame.slice(0, n));
        expect(f.readings.length).toBe(1); // only the last padding may be missing
      } catch (error) {
        expect(String(error)).toMatch(/frame|Range|length/i);
      }
    }
  });
});
