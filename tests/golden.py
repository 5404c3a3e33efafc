"""Read recordings of the original simulator, and replay the bytes of their clients to
botyard on the null modem.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from botyard.protocols.pioneer.handshake import Stage
from botyard.protocols.pioneer.packet import Packet, Parser, command
from botyard.protocols.pioneer.reports import Sip
from botyard.protocols.pioneer.simreports import SimStat
from botyard.servers.pioneer.nullmodem import Line, NullModem
from botyard.sim.simulation import Simulation
from botyard.units import from_mm

COMPATIBILITY = (
    Path(__file__).resolve().parent.parent / "docs/reference/compatibility.toml"
)


@cache
def deviations() -> frozenset[str]:
    """Return the keys of the deliberate differences that the documentation lists."""
    return frozenset(tomllib.loads(COMPATIBILITY.read_text("utf-8"))["deviations"])


def deviation(*keys: str) -> None:
    """Declare that a test relies on differences; they must be documented."""
    missing = set(keys) - deviations()
    assert not missing, f"not listed in {COMPATIBILITY.name}: {sorted(missing)}"


@dataclass
class Step:
    """One action of a recording's client, and the bytes that it received until its next
    one.
    """

    t: float
    note: str
    sent: bytes = b""
    received: list[Packet] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def sips(self) -> list[Sip]:
        return [Sip.decode(p) for p in self.received if p.id == 0x32]

    def simstats(self) -> list[SimStat]:
        return [SimStat.decode(p) for p in self.received if p.id == 0x62]


@dataclass
class Recording:
    """A recording: its meta line and its steps."""

    meta: dict[str, Any]
    steps: list[Step]

    @property
    def model(self) -> str:
        args = self.args
        return str(
            self.meta.get("model") or args[args.index("-r") + 1].partition(":")[0]
        )

    @property
    def args(self) -> list[str]:
        args = self.meta["sim_args"]
        return args.split() if isinstance(args, str) else args

    @property
    def map(self) -> str | None:
        args = self.args
        return args[args.index("-m") + 1] if "-m" in args else None

    def after(self, note: str) -> Step:
        """Return the first step whose note starts with a text."""
        return next(s for s in self.steps if s.note.startswith(note))


def read(shared: Path, name: str) -> Recording:
    """Read a recording by name."""
    lines = [
        json.loads(line)
        for line in (shared / "golden" / f"{name}.jsonl").read_text().splitlines()
    ]
    steps = [Step(0.0, "start")]
    for event in lines[1:]:
        if event.get("dir") == "rx":
            packets = Parser().feed_bytes(bytes.fromhex(event["hex"]))
            steps[-1].received += packets
            steps[-1].times += [event["t"]] * len(packets)
        elif event.get("dir") == "tx":
            steps.append(
                Step(event["t"], event["note"] or "", bytes.fromhex(event["hex"]))
            )
        else:
            steps.append(Step(event["t"], event.get("text") or event["ev"]))

    return Recording(lines[0], steps)


def simulate(
    shared: Path, recording: Recording, **options: Any
) -> tuple[NullModem, Line]:
    """Return a simulation with the world and robot of a recording, and a client on the
    null modem.

    It has no noise.
    """
    settings: dict[str, Any] = {
        "odometry_error": "none",
        "sensor_noise": False,
        **options,
    }
    if recording.map:
        sim = Simulation.load(shared / "data/maps" / recording.map, **settings)
    else:
        sim = Simulation(**settings)

    sim.add_robot(recording.model, "robot")
    modem = NullModem(sim)
    return modem, modem.connect("robot")


def replay(
    modem: NullModem, line: Line, recording: Recording, *, pulses: bool = True
) -> list[Step]:
    """Send the bytes of the recording's client at their times in simulated time.

    Returns the same steps with our answers. A PULSE is added every second, because the
    scripts are silent for longer than the watchdog (decisions, "Comparing").
    """
    parser, ours, pulse = Parser(), [], modem.sim.time
    for step, following in zip(
        recording.steps, [*recording.steps[1:], None], strict=True
    ):
        mine = Step(step.t, step.note)
        ours.append(mine)
        if step.sent and not line.closed:
            line.send(step.sent)
        end = following.t if following else step.t + 0.3
        while True:
            mine.received += parser.feed_bytes(line.take())
            if modem.sim.time >= end - 0.05:
                break
            if (
                pulses
                and modem.sim.time - pulse > 1.0
                and line.connection.session.stage is Stage.OPEN
            ):
                pulse = modem.sim.time
                line.send(command(0))

            modem.run(modem.sim.dt)

    return ours


def pose_of(sip: Sip, spec: Any) -> tuple[float, float, float]:
    """Return the odometry of a SIP in metres and radians."""
    p = spec.pioneer
    return (
        from_mm(sip.x * p.dist_conv),
        from_mm(sip.y * p.dist_conv),
        sip.th * p.angle_conv,
    )


__all__ = ["Recording", "Step", "deviation", "pose_of", "read", "replay", "simulate"]
