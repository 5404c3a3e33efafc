"""Interfaces of the package are entries of the registry that plug-ins use.

Options of the run name them by shorter names.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tools import interfaces_reference

import botyard
from botyard import Simulation
from botyard.app.assembly import assemble
from botyard.app.builtin import INTERFACE_OPTIONS, default_step, with_interfaces
from botyard.app.interfaces import begin_interfaces
from botyard.app.options import OPTIONS, RunOptions
from botyard.app.reference import interface_rows
from botyard.app.served import Run
from botyard.clients.ambf import Client
from botyard.control import USER, StepNow, SwitchInterface, Throttle
from botyard.errors import ArgumentError, CommandLineError, PortError, WorldError
from botyard.interfaces.registry import BUILT_IN, find_interface, interface_names
from botyard.model.world import World
from tests.cli.test_cli import call
from tests.waiting import PATIENCE, wait


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_is_described_and_its_options_are_those_of_the_run(name: str) -> None:
    interface = find_interface(name)
    assert interface.name == name and interface.about
    assert bool(interface.command) == (name not in INTERFACE_OPTIONS)
    if not interface.command:
        chosen_by = INTERFACE_OPTIONS[name]
        assert set(chosen_by.fields) | (
            {"everybody"} if name == "discovery" else set()
        ) == set(interface.known_options)
        for option, field in chosen_by.fields.items():
            default = OPTIONS[field].default
            assert interface.known_options[option].default == default
            if default is not None:
                assert interface.known_options[option].of(default, name) == default


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("ros2", {"ros2": True}),
        ("ros2:domain=7,names=stage", {"ros_domain_id": 7, "ros_names": "stage"}),
        ("ros1:master=embedded", {"ros_master": "embedded"}),
        ("ros1", {"ros1": True}),
        ("zenoh:router=yes", {"zenoh_router": True}),
        ("ambf", {"ambf": "2.0"}),
        ("ambf:generation=1.0,port=0", {"ambf": "1.0", "ambf_port": 0}),
        ("lockstep:watchdog=2", {"ambf_watchdog": 2.0}),
        ("metrics", {"metrics_port": 0}),
        ("metrics:port=9", {"metrics_port": 9}),
        ("mdns", {"mdns": True}),
        ("pioneer:port=9000", {"port": 9000}),
        ("page:port=9001,lite_graphics=on", {"gui_port": 9001, "lite_graphics": True}),
        ("discovery", {}),
        ("textproto:port=0", {}),
    ],
)
def test_what_is_said_of_an_interface_is_said_of_the_run(
    said: str, changes: dict[str, Any]
) -> None:
    o = RunOptions(interface=(said,))
    found = with_interfaces(o)
    assert {
        n: getattr(found, n) for n in OPTIONS if getattr(found, n) != getattr(o, n)
    } == changes
    assert with_interfaces(found) == found


@pytest.mark.parametrize(
    ("o", "expected"),
    [
        (RunOptions(), (0.1, "")),
        (RunOptions(ros1=True), (0.1, "")),
        (RunOptions(ros2=True), (0.02, "ros2")),
        (RunOptions(ros_domain_id=7), (0.02, "ros2")),
        (RunOptions(zenoh_router=True), (0.02, "zenoh")),
        (with_interfaces(RunOptions(interface=("zenoh",))), (0.02, "zenoh")),
        (RunOptions(ambf="2.0"), (0.005, "ambf")),
        (RunOptions(ros2=True, ambf="2.0", ambf_port=-1), (0.005, "ambf")),
        (RunOptions(ros2=True, update_sim_time=50), (0.1, "")),
    ],
)
def test_the_smallest_step_of_the_interfaces_is_the_default(
    o: RunOptions, expected: tuple[float, str]
) -> None:
    assert default_step(o) == expected


def test_interfaces_that_were_switched_off_can_be_asked_for() -> None:
    o = with_interfaces(
        RunOptions(
            no_gui=True,
            no_network_discovery=True,
            interface=("page", "discovery:everybody=no"),
        )
    )
    assert not o.no_gui and not o.no_network_discovery


def test_errors_name_the_interface(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        CommandLineError,
        match="interface lockstep: watchdog: expected a number from 0, found '-1'",
    ):
        with_interfaces(RunOptions(interface=("lockstep:watchdog=-1",)))

    with pytest.raises(ArgumentError, match="interface ros2: no option"):
        botyard.serve(Simulation(), interfaces=["ros2:port=1"])
    with pytest.raises(ArgumentError, match='no interface "nosuch"'):
        botyard.serve(Simulation(), interfaces=["nosuch"])
    code, _, err = call("--nomap", "--interface", "ros2:domains=1", capsys=capsys)
    assert (
        code == 255
        and 'interface ros2: no option "domains"; did you mean "domain"?' in err
    )


def test_all_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = call("interfaces", capsys=capsys)
    assert code == 0
    assert all(name in out for name in interface_names())
    code, out, _ = call("interfaces", "ambf", "mdns", capsys=capsys)
    assert code == 0 and "generation" in out and "mdns has no options" in out
    code, _, err = call("interfaces", "nosuch", capsys=capsys)
    assert code != 0 and 'no interface "nosuch"' in err


def test_one_that_cannot_be_loaded_is_listed_with_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[botyard.interfaces]\nbroken = botyard_broken:it\nown = "
        "botyard_own:it\nros2 = botyard_broken:it\n"
    )
    (tmp_path / "botyard_broken.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "botyard_own.py").write_text(
        "from botyard.interfaces.interface import Carrier, Interface\nit = "
        "Interface(name='own', about='', carrier=Carrier.OWN)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rows = {row[0]: row for row in interface_rows()}
    assert (
        'interface "broken" of the package broken: botyard_broken:it cannot be loaded: SystemExit: 3'
        in rows["broken"][4]
    )
    assert 'interface "own": expected no server' in rows["own"][4]
    assert rows["ros2"][4] == "yes", "a package takes no name of ours"


def test_the_reference_is_up_to_date() -> None:
    assert (
        interfaces_reference.PAGE.read_text("utf-8") == interfaces_reference.page()
    ), 'run "make compatibility"'


def started(o: RunOptions, act: Any) -> None:
    """Call a function with the interfaces of a run."""

    async def main() -> None:
        sim = Simulation()
        sim.add_robot("p3dx", "ann")
        parts = assemble(sim, World(scene=sim.scene), o, None)
        parts.robot_servers.adopt()
        async with contextlib.AsyncExitStack() as stack:
            run = Run(parts, o)
            try:
                await begin_interfaces(stack, run)
                await act(parts, run)
            finally:
                parts.close()

    asyncio.run(main())


def quiet(**more: Any) -> RunOptions:
    return with_interfaces(
        RunOptions(port=0, no_network_discovery=True, gui_token="off", **more)
    )


def test_each_is_stopped_and_started_on_one_path() -> None:
    async def act(parts: Any, run: Run) -> None:
        robot_servers = parts.robot_servers
        assert {n for n, i in robot_servers.interfaces.items() if i.on} == {
            "pioneer",
            "lockstep",
            "metrics",
            "page",
            "ambf",
            "ros1",
            "rosmaster",
        }
        for name in ("pioneer", "lockstep", "metrics", "page", "ambf"):
            switch = robot_servers.interfaces[name]
            before = switch.address()
            await asyncio.wrap_future(
                parts.control.do(USER, SwitchInterface(interface=name, on=False))
            )
            assert not switch.on
            assert name == "page" or switch.address() is None
            for _ in range(2):
                await asyncio.wrap_future(
                    parts.control.do(USER, SwitchInterface(interface=name, on=True))
                )

            assert switch.on
            assert (switch.address() is None) == (before is None)

        assert robot_servers.port_of("ann")

    started(
        quiet(
            interface=("metrics", "ambf:port=0", "ros1:master=embedded:0", "page"),
            gui_port=_free(),
        ),
        act,
    )


def _free() -> int:
    from tests.ports import free_port

    return free_port()


def test_lockstep_that_is_stopped_lets_go_of_time() -> None:
    async def act(parts: Any, run: Run) -> None:
        hub, control = parts.hub, parts.control
        control.do(USER, Throttle(on=True, clock=True, skips=1))
        assert hub.is_paused and parts.lockstep.is_held
        await parts.robot_servers.interfaces.switch("lockstep", False)
        assert not hub.is_paused and not parts.lockstep.is_held
        with pytest.raises(WorldError):
            control.do(USER, Throttle(on=True, clock=False, skips=1))
        assert not hub.is_paused
        await parts.robot_servers.interfaces.switch("lockstep", True)
        control.do(USER, Throttle(on=True, clock=False, skips=1))
        assert hub.is_paused
        control.do(USER, StepNow(steps=1))

    started(quiet(no_gui=True), act)


def test_objects_of_ambf_are_there_again_after_a_stop() -> None:
    sim = Simulation(step=0.005)
    sim.add_robot("p3dx", "ann")
    with botyard.serve(
        sim,
        port=0,
        page=False,
        discovery=False,
        interfaces=["ambf:port=0", "ros1:master=embedded:0"],
    ) as running:
        for _ in range(2):
            address = running.ambf
            assert address is not None
            client = Client("test", port=address.port)
            client.connect(100.0)
            try:
                wait(
                    lambda client=client: any(
                        "ann" in name for name in client.get_obj_names()
                    ),
                    PATIENCE,
                )
            finally:
                client.clean_up()

            running.do(SwitchInterface(interface="ambf", on=False))
            assert running.ambf is None
            running.do(SwitchInterface(interface="ambf", on=True))


def test_a_port_that_somebody_chose_must_be_had_and_the_usual_one_need_not() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        async def act(parts: Any, run: Run) -> None:
            raise AssertionError

        with pytest.raises(
            PortError, match=f"interface ambf: cannot listen on port {port}"
        ):
            started(
                quiet(no_gui=True, ambf="2.0", ambf_port=port, ros_master="embedded:0"),
                act,
            )

        assert (
            INTERFACE_OPTIONS["ambf"].tolerated(RunOptions(ambf="2.0"))
            == "--ambf-port selects another port"
        )
