"""A rospy program with several functions, run by Debian's Python; prints its results as
JSON.
"""

import json
import sys
import threading
import time
from operator import attrgetter

import rospy
from geometry_msgs.msg import Twist
from std_msgs.msg import Empty


def message_class(name):
    """Return a message class by its name."""
    package, kind = name.split("/")
    return getattr(__import__(f"{package}.msg", fromlist=[kind]), kind)


def plain(message):
    """Return a message as dictionaries and lists; long lists as their length and first
    values.
    """
    if hasattr(message, "to_sec"):
        return message.to_sec()
    if hasattr(message, "__slots__"):
        return {
            n: plain(getattr(message, n))
            for n in message.__slots__
            if not n.startswith("_")
        }

    if isinstance(message, (list, tuple)):
        return [plain(m) for m in message[:400]]
    if isinstance(message, bytes):
        return len(message)
    return (
        repr(message) if message != message or message in (float("inf"),) else message
    )


def listen(topics, seconds):
    """Return the first message of each topic, the number of messages, and their
    publishers.

    It listens for a number of seconds, and then until each topic has the count of its
    entry: name, type, [1].
    """
    found = {}
    lock = threading.Lock()
    least = {name: rest[0] if rest else 1 for name, _, *rest in topics}

    def take(message, name):
        with lock:
            entry = found.setdefault(name, {"count": 0, "first": plain(message)})
            entry["count"] += 1
            entry["last"] = plain(message)
            entry["caller"] = message._connection_header["callerid"]
            entry["latching"] = message._connection_header.get("latching")

    for name, kind, *_ in topics:
        rospy.Subscriber(name, message_class(kind), take, name)
    rospy.rostime.wallsleep(seconds)
    until(
        lambda: all(
            name in found and found[name]["count"] >= n
            for name, n in least.items()
            if n
        )
    )
    with lock:
        return found


def until(holds, *args):
    """Wait for at most a minute until a function returns a true value; return that
    value.
    """
    end = time.monotonic() + 60.0
    while not (value := holds(*args)) and time.monotonic() < end:
        time.sleep(0.005)
    return value


def drive(topic, v, w, seconds, stamped=False):
    """Publish velocities at 10 Hz from the first subscriber on."""
    if stamped:
        from geometry_msgs.msg import TwistStamped as Kind
    else:
        Kind = Twist

    out = rospy.Publisher(topic, Kind, queue_size=1)
    message = Kind()
    twist = message.twist if stamped else message
    twist.linear.x, twist.angular.z = v, w
    until(out.get_num_connections)
    for _ in range(int(seconds * 10)):
        out.publish(message)
        rospy.rostime.wallsleep(0.1)

    return True


def transform(parent, child):
    """Return a transform by tf2."""
    import tf2_ros

    buffer = tf2_ros.Buffer()
    tf2_ros.TransformListener(buffer)
    for _ in range(600):
        rospy.rostime.wallsleep(0.1)
        try:
            return plain(
                buffer.lookup_transform(parent, child, rospy.Time(0)).transform
            )
        except tf2_ros.TransformException as error:
            last = str(error)

    return last


def call(name, kind, *args):
    """Call a service of std_srvs or nav_msgs."""
    package, srv = kind.split("/")
    module = __import__(f"{package}.srv", fromlist=[srv])
    rospy.wait_for_service(name, 60)
    try:
        return plain(rospy.ServiceProxy(name, getattr(module, srv))(*args))
    except rospy.ServiceException as error:
        return f"error: {error}"


def many_calls(name, count):
    """Make persistent calls of an Empty service."""
    from std_srvs.srv import Empty

    proxy = rospy.ServiceProxy(name, Empty, persistent=True)
    for _ in range(count):
        proxy()
    return count


def reconfigure(node, values):
    """The limits of a robot by dynamic_reconfigure's own client."""
    import dynamic_reconfigure.client

    client = dynamic_reconfigure.client.Client(node, timeout=60)
    before = dict(client.get_configuration(timeout=60))
    after = dict(client.update_configuration(values))
    described = [p["name"] for p in client.get_parameter_descriptions(timeout=60)]
    for config in (before, after):
        config.pop("groups", None)
    return [before, after, described]


def talk(topic, text, seconds):
    """Publish to other rospy programs."""
    from std_msgs.msg import String

    out = rospy.Publisher(topic, String, queue_size=5)
    for _ in range(int(seconds * 10)):
        out.publish(text)
        rospy.rostime.wallsleep(0.1)

    return True


def supervise(path):
    """Act as a supervisor in the style of the original: first come first served, by
    message counts.

    Returns the grants. It runs until the simulator ends.
    """
    from std_msgs.msg import Int16

    with open(path) as file:
        vehicles = json.load(file)["Vehicles"]
    sectors = [vehicles[f"Vehicle{i}"] for i in range(len(vehicles))]
    clash = {
        ((i, k), tuple(c))
        for i, path in enumerate(sectors)
        for k, s in enumerate(path)
        for c in s["Colliding"]
    }
    held = {(i, 0) for i in range(len(sectors))}
    asked, left = [0] * len(sectors), [0] * len(sectors)
    waiting, granted = [], []
    out = rospy.Publisher("move_permissions", Int16, queue_size=1000)

    def serve():
        for want in list(waiting):
            if not any((want, h) in clash or (h, want) in clash for h in held):
                waiting.remove(want)
                held.add(want)
                granted.append(want)
                out.publish(want[0])

    def critical(message):
        asked[message.data] += 1
        waiting.append((message.data, asked[message.data]))
        serve()

    def release(message):
        held.discard((message.data, left[message.data]))
        left[message.data] += 1
        serve()

    rospy.Subscriber("release_points", Int16, release)
    while out.get_num_connections() == 0:
        rospy.rostime.wallsleep(0.05)
    rospy.Subscriber("critical_points", Int16, critical)
    while out.get_num_connections() > 0:
        rospy.rostime.wallsleep(0.05)
    return granted


def permit_and_look_on(permissions, critical, robot, least):
    """Permit a robot at the first subscriber, then subscribe to critical points.

    Returns their number when enough have come.
    """
    from std_msgs.msg import Int16

    out = rospy.Publisher(permissions, Int16, queue_size=1, latch=True)
    until(out.get_num_connections)
    out.publish(robot)
    return listen([[critical, "std_msgs/Int16", least]], 0.0)[critical]["count"]


def ambf(definitions, script):
    """Speak ambf_msgs, with classes generated from the definitions as rosbag does.

    The argument is a script; the result has a value for each command:

    ["state", topic, type, seconds]: the number of messages (some at least), the first
    and the last; ["rate", topic, type, least]: messages and steps a second, in the
    first of thirty seconds that reaches `least`, or the last; ["send", topic, type,
    fields]; ["sleep", s]; ["keep", topic, type, fields]: send twenty times a second,
    until ["end"]; ["until", topic, type, field, least]: the first message with a field
    of at least that value; ["lockstep", toggles, n]: steps of each toggle, by the
    world's state, and the total time.
    """
    from genpy.dynamic import generate_dynamic

    classes = {
        name: generate_dynamic(name, text)[name] for name, text in definitions.items()
    }
    classes["std_msgs/Empty"] = Empty
    got, publishers, out = {}, {}, []

    def watch(topic, kind):
        if topic not in got:
            got[topic] = []
            rospy.Subscriber(
                topic,
                classes[kind],
                got[topic].append,
                queue_size=1000,
                tcp_nodelay=True,
            )

        return got[topic]

    def publisher(topic, kind):
        if topic not in publishers:
            publishers[topic] = rospy.Publisher(
                topic, classes[kind], queue_size=1000, tcp_nodelay=True
            )
            while not publishers[topic].get_num_connections():
                time.sleep(0.01)

        return publishers[topic]

    def send(topic, kind, fields):
        message = classes[kind]()
        for path, value in fields.items():
            at, keys = message, path.split(".")
            for key in keys[:-1]:
                at = getattr(at, key)
            setattr(at, keys[-1], value)

        publisher(topic, kind).publish(message)

    def window(rows, seconds):
        until(len, rows)
        del rows[:]
        time.sleep(seconds)
        until(len, rows)
        return len(rows), plain(rows[0]), plain(rows[-1])

    def first(rows, field, least):
        return next((m for m in list(rows) if field(m) >= least), None)

    def keep(ended, *command):
        while not ended.wait(0.05):
            send(*command)

    for what, *args in script:
        if what == "state":
            out.append(window(watch(*args[:2]), args[2]))
        elif what == "rate":
            for _ in range(30):
                began = time.monotonic()
                count, begin, end = window(watch(*args[:2]), 1.0)
                took = time.monotonic() - began
                steps = end["sim_step"] - begin["sim_step"] + 1
                if count >= args[2] * took:
                    break

            out.append([count / took, steps / took, end])
        elif what == "keep":
            ended = threading.Event()
            keeper = threading.Thread(target=keep, args=(ended, *args))
            publisher(*args[:2])
            keeper.start()
        elif what == "end":
            ended.set()
            keeper.join()
        elif what == "until":
            rows = watch(*args[:2])
            del rows[:]
            out.append(
                plain(until(first, rows, attrgetter(args[2]), args[3]) or rows[-1])
            )
        elif what == "send":
            send(*args)
        elif what == "sleep":
            time.sleep(args[0])
        elif what == "lockstep":
            toggles, n = args
            world, command = "/ambf/env/World/State", "/ambf/env/World/Command"
            rows, clock = watch(world, "ambf_msgs/WorldState"), False
            throttled = {"enable_step_throttling": True, "n_skip_steps": n}
            send(command, "ambf_msgs/WorldCmd", throttled | {"step_clock": False})
            time.sleep(0.3)
            before = rows[-1].sim_step
            begin = time.monotonic()
            for k in range(toggles):
                clock = not clock
                send(command, "ambf_msgs/WorldCmd", throttled | {"step_clock": clock})
                while rows[-1].sim_step < before + n * (k + 1):
                    time.sleep(0)

            took = time.monotonic() - begin
            time.sleep(0.2)
            out.append([rows[-1].sim_step - before, took])

    return out


def serve_map(cells, width, resolution, x, y, seconds):
    """Act as a map_server."""
    from nav_msgs.msg import OccupancyGrid

    grid = OccupancyGrid()
    grid.info.width, grid.info.height, grid.info.resolution = (
        width,
        len(cells) // width,
        resolution,
    )
    grid.info.origin.position.x, grid.info.origin.position.y = x, y
    grid.info.origin.orientation.w = 1.0
    grid.data = cells
    out = rospy.Publisher("/map", OccupancyGrid, queue_size=1, latch=True)
    out.publish(grid)
    rospy.rostime.wallsleep(seconds)
    return True


def params(values):
    """Set parameters, and read them in every form."""
    for key, value in values.items():
        rospy.set_param(key, value)
    return {
        "got": {key: rospy.get_param(key) for key in values},
        "has": rospy.has_param("/nothing/there"),
        "default": rospy.get_param("~mine", 5),
        "names": sorted(n for n in rospy.get_param_names() if n.startswith("/t/")),
        "search": rospy.search_param("a"),
    }


def sim_time(seconds):
    """Wait for a duration of rospy's clock; return the durations of that clock and of
    the wall clock.
    """
    until(lambda: rospy.Time.now().to_sec())
    begin, here = rospy.Time.now().to_sec(), time.monotonic()
    until(lambda: rospy.Time.now().to_sec() >= begin + seconds)
    return rospy.Time.now().to_sec() - begin, time.monotonic() - here


if __name__ == "__main__":
    rospy.init_node("peer", anonymous=True, disable_signals=True)
    result = globals()[sys.argv[1]](*json.loads(sys.argv[2]))
    print("RESULT " + json.dumps(result), flush=True)
    rospy.signal_shutdown("done")
