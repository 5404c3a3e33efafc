// A peer on Foxglove's own client of its WebSocket protocol:   node foxglove_peer.mjs URL SUBPROTOCOL
// Reads topics by their schemas, drives /ann in both encodings, calls services, sets parameters; prints what it saw as JSON.
import rosmsg from "@foxglove/rosmsg";
import serialization from "@foxglove/rosmsg2-serialization";
import protocol from "@foxglove/ws-protocol";
import WebSocket from "ws";

const { parse } = rosmsg;
const { MessageReader, MessageWriter } = serialization;
const { FoxgloveClient } = protocol;

const [url, subprotocol] = process.argv.slice(2);
const client = new FoxgloveClient({ ws: new WebSocket(url, [subprotocol]) });
setTimeout(() => process.exit(3), 100000).unref();
const seen = { statuses: [] };
const channels = new Map();
const services = new Map();
const waiting = [];
let last = {};

/** Resolves with what `look` returns of an event, as soon as that is something. */
function until(name, look) {
  return new Promise((resolve) => {
    const listener = (...args) => {
      const found = look(...args);
      if (found !== undefined) {
        client.off(name, listener);
        resolve(found);
      }
    };
    client.on(name, listener);
  });
}

client.on("error", (error) => {
  console.error(error.message);
  process.exit(4);
});
client.on("advertise", (all) => {
  for (const channel of all) channels.set(channel.topic, channel);
});
client.on("unadvertise", (ids) => {
  for (const [topic, channel] of channels) if (ids.includes(channel.id)) channels.delete(topic);
});
client.on("advertiseServices", (all) => {
  for (const service of all) services.set(service.name, service);
});
client.on("status", (status) => seen.statuses.push([status.level, status.message]));
client.on("connectionGraphUpdate", (update) => {
  last = update;
});

const info = await until("serverInfo", (found) => found);
seen.info = [info.name, info.capabilities, info.supportedEncodings, typeof info.sessionId];
if (services.size === 0) await until("advertiseServices", () => true);
seen.topics = [...channels.values()].map((c) => [c.topic, c.encoding, c.schemaName, c.schemaEncoding]);
seen.services = [...services.values()].map((s) => [s.name, s.type]);

/** The first good message of a topic, read by the schema that was sent with it, and its time. */
async function first(topic, good = () => true) {
  const channel = channels.get(topic);
  const reader = new MessageReader(parse(channel.schema, { ros2: true }));
  const found = new Promise((resolve) => {
    const listener = (message) => {
      if (message.subscriptionId !== id) return;
      const read = reader.readMessage(message.data);
      if (good(read)) {
        client.off("message", listener);
        resolve([read, message.timestamp]);
      }
    };
    client.on("message", listener);
  });
  const id = client.subscribe(channel.id);
  const result = await found;
  client.unsubscribe(id);
  return result;
}

async function call(name, request, encoding = "cdr") {
  const service = services.get(name);
  const callId = waiting.push(name);
  const writer = new MessageWriter(parse(service.request.schema, { ros2: true }));
  const data = encoding === "cdr" ? writer.writeMessage(request) : new TextEncoder().encode(JSON.stringify(request));
  const answered = until("serviceCallResponse", (r) => (r.callId === callId ? r : undefined));
  const failed = until("serviceCallFailure", (r) => (r.callId === callId ? r : undefined));
  client.sendServiceCallRequest({ serviceId: service.id, callId, encoding, data: new DataView(data.buffer, data.byteOffset, data.byteLength) });
  const response = await Promise.race([answered, failed]);
  if (response.message !== undefined) return { failure: response.message };
  if (encoding === "json") return JSON.parse(new TextDecoder().decode(response.data));
  return new MessageReader(parse(service.response.schema, { ros2: true })).readMessage(response.data);
}

const [scan] = await first("/ann/base_scan");
seen.scan = [scan.ranges.constructor.name, scan.ranges.length, scan.header.frame_id];
const [map] = await first("/map");
seen.map = [map.info.width, map.data.length === map.info.width * map.info.height];
const [tf, at] = await first("/tf");
seen.tf = tf.transforms.map((t) => [t.header.frame_id, t.child_frame_id]);
seen.stamp = [Number(at) / 1e9, tf.transforms[0].header.stamp.sec + (tf.transforms[0].header.stamp.nanosec ?? tf.transforms[0].header.stamp.nsec) / 1e9];
seen.time = await until("time", (time) => Number(time.timestamp) / 1e9);

// clients drive: as JSON, which the panels "Publish" and "Teleop" send, and as CDR
const twist = { linear: { x: 0.3, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0.2 } };
for (const encoding of ["json", "cdr"]) {
  const id = client.advertise({ topic: "/ann/cmd_vel", encoding, schemaName: "geometry_msgs/msg/Twist" });
  const schema = "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n===\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z";
  const bytes = encoding === "json" ? new TextEncoder().encode(JSON.stringify(twist)) : new MessageWriter(parse(schema, { ros2: true })).writeMessage(twist);
  const timer = setInterval(() => client.sendMessage(id, bytes), 50);
  const [odom] = await first("/ann/odom", (m) => Math.abs(m.twist.twist.angular.z - twist.angular.z) < 0.02);
  clearInterval(timer);
  client.unadvertise(id);
  seen[encoding] = odom.twist.twist.linear.x > 0;
  twist.angular.z = -0.2;
}

client.subscribeConnectionGraph();
seen.published = (await until("connectionGraphUpdate", (u) => u)).publishedTopics.find((t) => t.name === "/ann/odom");
const appeared = until("advertise", (all) => all.find((c) => c.topic === "/bob/odom"));
seen.added = await call("/botyard/add_robot", { model: "p3dx", name: "bob", anywhere: true, pose: { x: 0, y: 0, theta: 0 } });
seen.appeared = (await appeared).schemaName;
if (!last.publishedTopics?.some((t) => t.name === "/bob/odom"))
  await until("connectionGraphUpdate", (u) => u.publishedTopics.some((t) => t.name === "/bob/odom") || undefined);
const went = until("unadvertise", () => !channels.has("/bob/odom") || undefined);
seen.removed = await call("/botyard/remove_robot", { name: "bob" }, "json");
await went;
seen.refused = await call("/botyard/remove_robot", { name: "nobody" }, "json");
seen.wrong = await call("/botyard/remove_robot", { nam: "bob" }, "json");

client.subscribeParameterUpdates(["/botyard.pause"]);
client.getParameters(["/botyard.pause", "/botyard.speed", "/nothing"], "q1");
seen.got = (await until("parameterValues", (p) => (p.id === "q1" ? p : undefined))).parameters;
const paused = until("parameterValues", (p) => (p.id === undefined ? p.parameters : undefined));
client.setParameters([{ name: "/botyard.pause", value: true }, { name: "/botyard.speed", value: 4 }, { name: "/botyard.ann.trans_accel", value: 1 }], "q2");
seen.set = (await until("parameterValues", (p) => (p.id === "q2" ? p : undefined))).parameters;
seen.paused = await paused;
client.setParameters([{ name: "/botyard.speed", value: "fast" }, { name: "/botyard.pause", value: false }]);
await until("parameterValues", (p) => p.parameters.some((one) => one.value === false) || undefined);
client.fetchAsset("package://nothing", 1);
await until("status", (s) => s.message.includes("assets") || undefined);
console.log(JSON.stringify(seen));
process.exit(0);
