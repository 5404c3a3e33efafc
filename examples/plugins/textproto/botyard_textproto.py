"""A text protocol over TCP: each line is answered by `ok …` or `error …`."""

from botyard.control import Drive, Place
from botyard.errors import BotyardError
from botyard.geometry import Pose
from botyard.interfaces.interface import Carrier, Door, Interface, Option
from botyard.names import shown

MAX_LINE = 200
WORDS = "list, pose NAME, drive NAME V W, place NAME X Y TH, or quit"


class TextSession:
    """One client."""

    def __init__(self, door: Door) -> None:
        self.door, self.is_closed = door, False
        self._line, self._answers = b"", bytearray()

    def receive_data(self, data: bytes, now: float) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > MAX_LINE:
            lines.append(self._line)
        for line in lines:
            if self.is_closed:
                break
            try:
                answer = " ".join(["ok", *self._do(line)])
            except (BotyardError, ValueError) as error:
                answer = f"error {shown(error, 200)}"
            self._answers += answer.encode() + b"\n"
        if self.is_closed:
            self._line = b""

    def _do(self, line: bytes) -> list[str]:
        if len(line) > MAX_LINE:
            self.is_closed = True
            raise ValueError(f"expected a line of at most {MAX_LINE} bytes")
        match line.decode("utf-8", "replace").split():
            case ["list"]:
                return [shown(name) for name in self.door.sim.robots]
            case ["pose", name]:
                robot = self.door.control.robot(name)
                return [f"{value:.3f}" for value in robot.state.pose_world]
            case ["drive", name, v, w]:
                timeout = self.door.options["timeout"]
                self.door.do(Drive(robot=name, v=float(v), w=float(w), timeout=timeout))
            case ["place", name, x, y, th]:
                self.door.do(Place(to=((name, Pose(float(x), float(y), float(th))),)))
            case ["quit"]:
                self.is_closed = True
            case _:
                raise ValueError(f"expected {WORDS}")
        return []

    def data_to_send(self) -> bytes:
        answers, self._answers = bytes(self._answers), bytearray()
        return answers

    def close(self) -> None:
        self.is_closed, self._line, self._answers = True, b"", bytearray()

    def next_timer(self) -> None: ...
    def handle_timer(self, now: float) -> None: ...
    def on_snapshot(self, now: float) -> None: ...


TIMEOUT = "time from the last drive until the robot stops, s of wall time"
interface = Interface(
    name="textproto",
    about="lines of text over TCP",
    carrier=Carrier.TCP,
    session=TextSession,
    port=7717,
    options=(Option("timeout", float, 1.0, TIMEOUT, 0.0, 3600.0),),
)
