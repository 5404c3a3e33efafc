// A peer on roslib, rosbridge's client in JavaScript:   node roslib_peer.mjs URL
// Reads a scan in each form, drives /ann, calls services; prints what it saw as JSON.
import * as ROSLIB from "roslib";

const ros = new ROSLIB.Ros({ url: process.argv[2] });
await new Promise((resolve, reject) => {
  ros.on("connection", resolve);
  ros.on("error", reject);
});
setTimeout(() => process.exit(3), 100000).unref();

function first(name, messageType, options = {}, good = () => true) {
  const topic = new ROSLIB.Topic({ ros, name, messageType, ...options });
  return new Promise((resolve) => {
    topic.subscribe((message) => {
      if (good(message)) {
        topic.unsubscribe();
        resolve(message);
      }
    });
  });
}

function call(name, serviceType, args = {}) {
  const service = new ROSLIB.Service({ ros, name, serviceType });
  return new Promise((resolve, reject) => service.callService(args, resolve, reject));
}

const seen = {};
const scan = ["/ann/base_scan", "sensor_msgs/LaserScan"];
seen.none = (await first(...scan)).ranges.length;
const cbor = await first(...scan, { compression: "cbor" });
seen.cbor = [cbor.ranges.constructor.name, cbor.ranges.length];
const raw = await first(...scan, { compression: "cbor-raw" });
seen.raw = [raw.bytes.constructor.name, raw.bytes.length, Object.keys(raw).sort()];
seen.png = (await first(...scan, { compression: "png" })).ranges.length;
// roslib has no option for fragments: it puts together those that come
ros.callOnConnection({ op: "subscribe", topic: "/ann/odom", type: "nav_msgs/Odometry", fragment_size: 100, id: "pieces" });
seen.pieces = await new Promise((resolve) => ros.on("/ann/odom", (message) => resolve(message.msg.child_frame_id)));
ros.callOnConnection({ op: "unsubscribe", topic: "/ann/odom", id: "pieces" });
const driving = new ROSLIB.Topic({ ros, name: "/ann/cmd_vel", messageType: "geometry_msgs/Twist" });
seen.odom = (
  await first("/ann/odom", "nav_msgs/Odometry", {}, (message) => {
    driving.publish({ linear: { x: 0.3, y: 0, z: 0 }, angular: { x: 0, y: 0, z: 0.2 } });
    return message.twist.twist.linear.x > 0.2;
  })
).twist.twist;
seen.topics = await new Promise((resolve, reject) => ros.getTopics(resolve, reject));
seen.paused = await call("/botyard/pause", "std_srvs/Trigger");
seen.error = await call("/botyard/set_pose", "botyard_msgs/SetPose", { nam: "ann" }).catch((error) => `${error}`);
const parameter = new ROSLIB.Param({ ros, name: "/botyard:use_sim_time" });
seen.param = await new Promise((resolve, reject) => parameter.get(resolve, reject));
// an action of another client
const other = new ROSLIB.Ros({ url: process.argv[2] });
await new Promise((resolve) => other.on("connection", resolve));
const fibonacci = { name: "/fibonacci", actionType: "example_interfaces/Fibonacci" };
const server = new ROSLIB.Action({ ros: other, ...fibonacci });
server.advertise(
  (goal, id) => {
    server.sendFeedback(id, { sequence: [goal.order] });
    if (goal.order > 0) server.setSucceeded(id, { sequence: [0, 1, 1] });
  },
  (id) => server.setCanceled(id, { sequence: [] }),
);
while (!(await call("/rosapi/action_servers", "rosapi/GetActionServers")).action_servers.includes("/fibonacci"));
const asking = new ROSLIB.Action({ ros, ...fibonacci });
seen.action = await new Promise((resolve, reject) => {
  const told = [];
  asking.sendGoal({ order: 3 }, (result) => resolve([...told, result]), (feedback) => told.push(feedback), reject);
});
seen.cancelled = await new Promise((resolve, reject) => {
  const id = asking.sendGoal({ order: 0 }, reject, () => asking.cancelGoal(id), (error) => resolve(error));
});
other.close();
console.log(JSON.stringify(seen));
ros.close();
process.exit(0);
