// A ROS 2 peer on @foxglove/ros2, an implementation of RTPS in TypeScript.
//   node peer.mjs ADDRESS SECONDS TOPIC TYPE QOS [TOPIC TYPE QOS]...     QOS: r or b, then v or t, then how many are wanted at least
// Listens for so many seconds, and then until all have come that are wanted.
// Prints, at the end, the topics that it knows (TOPIC name type) and what came (GOT topic count last-as-hex).
import { createRequire } from "node:module";
const require = createRequire(import.meta.url); // its modules are CommonJS that import names from one another
const { RosNode } = require("@foxglove/ros2");
const { getNetworkInterfaces, UdpSocketNode } = require("@foxglove/ros2/nodejs");
const { Durability, HistoryKind, Reliability } = require("@foxglove/rtps");

const [address, seconds, ...wanted] = process.argv.slice(2);
const node = new RosNode({ name: "peer", udpSocketCreate: UdpSocketNode.Create, addresses: [address], getNetworkInterfaces });
await node.start();
const got = new Map();
for (let i = 0; i + 2 < wanted.length; i += 3) {
  const [topic, type, qos] = wanted.slice(i, i + 3);
  // RosNode.subscribe() is fixed to reliable and transient local: one level lower one can choose
  node._participant.subscribe({
    topicName: `rt${topic}`,
    typeName: type.replace(/^(.*)\/msg\/(.*)$/, "$1::msg::dds_::$2_"),
    durability: qos[1] === "t" ? Durability.TransientLocal : Durability.Volatile,
    reliability: { kind: qos[0] === "r" ? Reliability.Reliable : Reliability.BestEffort, maxBlockingTime: { sec: 0, nsec: 1e8 } },
    history: { kind: HistoryKind.KeepLast, depth: 10 },
  });
}
node._participant.on("userData", (data) => {
  const topic = data.subscription.topicName;
  const [count] = got.get(topic) ?? [0];
  got.set(topic, [count + 1, Buffer.from(data.serializedData).toString("hex")]);
});
const least = new Map();
for (let i = 0; i + 2 < wanted.length; i += 3) least.set(`rt${wanted[i]}`, Number(wanted[i + 2].slice(2) || 0));
const end = Date.now() + (Number(seconds) + 60) * 1000;
const finish = async () => {
  if (Date.now() < end && [...least].some(([topic, count]) => (got.get(topic)?.[0] ?? 0) < count)) return setTimeout(finish, 100);
  for (const [name, endpoints] of node.getPublishedTopics()) console.log("TOPIC", name, JSON.stringify([...endpoints]));
  for (const [topic, [count, hex]] of got) console.log("GOT", topic, count, hex);
  await node.shutdown();
  process.exit(0);
};
setTimeout(finish, Number(seconds) * 1000);
