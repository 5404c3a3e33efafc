"""A ROS 2 client of the action SimulateSteps on the package zenoh-ros2-sdk.

``zenoh_action_peer.py STEPS`` prints ``RESULT JSON``. Definitions are written
independently; type hashes are computed by rosbags and by the package.
"""

import json
import os
import sys
import time
import traceback

import numpy as np
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from zenoh_ros2_sdk import ROS2ServiceClient, ROS2Subscriber
from zenoh_ros2_sdk.session import ZenohSession

PACKAGE, ACTION = "simulation_interfaces", "simulation_interfaces/action/SimulateSteps"
UUID, RESULT = "unique_identifier_msgs/UUID", "uint8 result\nstring error_message"
GOAL, FEEDBACK = "uint64 steps", "uint64 completed_steps\nuint64 remaining_steps"
STATE = f"{PACKAGE}/SimulationState state"
PARTS = {
    "unique_identifier_msgs/msg/UUID": "uint8[16] uuid",
    "builtin_interfaces/msg/Time": "int32 sec\nuint32 nanosec",
    f"{PACKAGE}/msg/Result": RESULT,
    f"{PACKAGE}/msg/SimulationState": "uint8 state",
    f"{ACTION}_Goal": GOAL,
    f"{ACTION}_Result": f"{PACKAGE}/Result result",
    f"{ACTION}_Feedback": FEEDBACK,
}


def store_with(texts):
    """Return a store with ROS 2's types and additional ones."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in texts.items():
        if name not in store.types:
            store.register(get_types_from_msg(text, name))

    return store


def service_hash(name, request, response):
    """Return the hash of a service's type:

    of its request, its response and the event of both (REP-2011).
    """
    event = (
        f"service_msgs/ServiceEventInfo info\n{name}_Request[<=1] "
        f"request\n{name}_Response[<=1] response"
    )
    whole = (
        f"{name}_Request request_message\n{name}_Response "
        f"response_message\n{name}_Event event_message"
    )
    texts = {
        f"{name}_Request": request,
        f"{name}_Response": response,
        f"{name}_Event": event,
        name: whole,
    }
    store = store_with(PARTS)
    for part, text in texts.items():
        ((constants, fields),) = get_types_from_msg(text, part).values()
        store.register(
            {part: (constants, [(field, named(kind)) for field, kind in fields])}
        )

    for part, (constants, fields) in list(store.fielddefs.items()):
        store.fielddefs[part] = (
            constants,
            [(field, named(kind)) for field, kind in fields],
        )

    return store.hash_rihs01(name)


def named(kind):
    """Return a field's kind with ROS's names.

    rosbags calls messages of services .../srv/msg/..., and keeps ``char``, which is
    ``uint8``.
    """
    if isinstance(kind, tuple):
        return tuple(named(part) for part in kind)
    return (
        ("uint8" if kind == "char" else kind.replace("/srv/msg/", "/srv/"))
        if isinstance(kind, str)
        else kind
    )


session = ZenohSession.get_instance()
# Exit at once: threads of the package would keep the process alive.
sys.excepthook = lambda *error: (
    traceback.print_exception(*error),
    os._exit(1),
)
for name, text in PARTS.items():
    session.register_message_type(text, name)


def client(path, name, request, response):
    """Return a client of a service."""
    digest = service_hash(name, request, response)
    return ROS2ServiceClient(
        path,
        name,
        request_definition=request,
        response_definition=response,
        type_hash=digest,
        timeout=110.0,
    )


heard = []
feedback_text = f"{UUID} goal_id\n{ACTION}_Feedback feedback"
feedback_store = store_with({**PARTS, f"{ACTION}_FeedbackMessage": feedback_text})
subscriber = ROS2Subscriber(
    "/botyard/simulate_steps/_action/feedback",
    f"{ACTION}_FeedbackMessage",
    heard.append,
    msg_definition=feedback_text,
    type_hash=feedback_store.hash_rihs01(f"{ACTION}_FeedbackMessage"),
)
set_state = client(
    "/botyard/set_simulation_state",
    f"{PACKAGE}/srv/SetSimulationState",
    STATE,
    f"{PACKAGE}/Result result",
)
send = client(
    "/botyard/simulate_steps/_action/send_goal",
    f"{ACTION}_SendGoal",
    f"{UUID} goal_id\n{ACTION}_Goal goal",
    "bool accepted\nbuiltin_interfaces/Time stamp",
)
get_result = client(
    "/botyard/simulate_steps/_action/get_result",
    f"{ACTION}_GetResult",
    f"{UUID} goal_id",
    f"int8 status\n{ACTION}_Result result",
)
time.sleep(1.0)
types = session.store.types
key = types["unique_identifier_msgs/msg/UUID"](
    uuid=np.frombuffer(os.urandom(16), np.uint8)
)
stopped = set_state.call(state=types[f"{PACKAGE}/msg/SimulationState"](state=0))
steps = int(sys.argv[1])
accepted = send.call(goal_id=key, goal=types[f"{ACTION}_Goal"](steps=steps))
done = get_result.call(goal_id=key)
end = time.monotonic() + 110.0
while not (heard and heard[-1].feedback.completed_steps == steps) and (
    time.monotonic() < end
):
    time.sleep(0.02)
print(
    "RESULT "
    + json.dumps(
        {
            "stopped": None if stopped is None else stopped.result.result,
            "accepted": None if accepted is None else bool(accepted.accepted),
            "status": None if done is None else done.status,
            "code": None if done is None else done.result.result.result,
            "done": [m.feedback.completed_steps for m in heard],
        }
    ),
    flush=True,
)
# Exit at once: threads of the package would keep the process alive.
os._exit(0)
