"""Fuzz a session on the null modem: target of atheris, with bytes of a client in
pieces.

`test_fuzz` runs it; by hand for longer:

python tests/protocols/fuzz_session.py -max_total_time=600
"""

from __future__ import annotations

import sys

import atheris

# Import the engine first and without instrumentation: instrumented kernels cannot be compiled.
import botyard.sim.simulation

with atheris.instrument_imports(include=["botyard.protocols"]):
    from botyard.protocols.pioneer import session  # noqa: F401

from botyard.geometry import Pose
from botyard.protocols.pioneer.packet import command, frame
from botyard.servers.pioneer.nullmodem import NullModem

SIM = botyard.sim.simulation.Simulation()
ROBOT = SIM.add_robot("p3dx-equipped", "r", pose=Pose())


def one_input(data: bytes) -> None:
    """Feed one input: half are raw bytes, half are commands in valid frames."""
    modem = NullModem(SIM)
    line = modem.connect("r")
    provider = atheris.FuzzedDataProvider(data)
    for hello in (command(0), command(1), command(2), command(1, 1)):
        line.send(hello)
    while provider.remaining_bytes():
        if provider.ConsumeBool():
            line.send(provider.ConsumeBytes(provider.ConsumeIntInRange(1, 60)))
        else:
            number = provider.ConsumeIntInRange(0, 255)
            body = provider.ConsumeBytes(provider.ConsumeIntInRange(0, 30))
            if number == 236 and body[1:3] == b"\x08\x00":
                # Skip the command that takes pictures: it would write files.
                continue
            line.send(frame(number, body))

    modem.run(0.1)
    if any("internal error" in text for text in line.log):
        raise AssertionError("\n".join(line.log))
    line.hang_up()


if __name__ == "__main__":
    SIM.step()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
