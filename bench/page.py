"""Cost of the page: the browser's main thread, the server's CPU for a frame, and steps
with and without viewers.

Scene: columbia.map where the shared data is, else the shipped warehouse; 500 p3dx with
lasers (181 readings), all read and standing at random free places; seed 1; 1 thread;
kernels compiled before. The browser is Debian's Chromium, headless, 1280 × 800, without
a graphics processor: its main-thread time is the time of our own code (taking a frame,
uploading, drawing), not of the software that stands in for one. The reference of the
server's figures is a fixed NumPy workload of the same run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import shutil
import statistics
import struct
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection

from bench.common import cpu, judged, map_path, reference_loop
from botyard.app.compose import compose
from botyard.app.page import STATIC
from botyard.interfaces.page.requests import PageRequests
from botyard.interfaces.page.viewsource import ViewSource
from botyard.protocols.webgui import messages
from botyard.protocols.webgui.messages import View
from botyard.protocols.webgui.session import Tokens
from botyard.servers.hub import Hub
from botyard.servers.web.page import PageServer
from botyard.sim.simulation import Simulation

ROBOTS = 500
FRAME_MS, PICTURES_PER_S = 0.1, 20.0
"""Goals: CPU time of a frame, and pictures in the browser."""
TOKEN = "bench"


def world() -> Simulation:
    sim = Simulation.load(map_path()[0], seed=1, step=0.05)
    spec = sim.add_robot("p3dx", "first").spec
    poses = [sim.core.places.random(spec, k) for k in range(ROBOTS - 1)]
    for robot in [sim.robots["first"], *sim.add_robots("p3dx", poses)]:
        robot.laser.subscribe("bench")
    sim.fleet.command(v=0.2, w=0.1)
    sim.step(5)
    return sim


@contextlib.asynccontextmanager
async def serving(
    sim: Simulation, interval: float | None
) -> AsyncIterator[tuple[Hub, PageServer]]:
    parts = compose(sim, interval=interval)
    hub = parts.hub
    source = ViewSource(hub)
    desk = PageRequests(hub, parts.robot_servers, parts.maps, source)
    server = PageServer(parts.robot_servers, desk, source, Tokens(TOKEN), STATIC)
    await server.listen("127.0.0.1", None)
    run = asyncio.ensure_future(hub.run())
    try:
        yield hub, server
    finally:
        hub.stop()
        await run
        await server.close()


def frames(sim: Simulation) -> None:
    """Print the CPU time to make a frame, without sending it."""
    hub = Hub(sim)
    source = ViewSource(hub)
    source.schema()

    def make() -> None:
        source.changed()
        source.frame(View())

    hundred = cpu(lambda: [make() for _ in range(100)])
    size = len(source.frame(View()))
    print(
        f"frame of {ROBOTS} robots: {size / 1e3:.0f} kB, made in {hundred * 10:.3f} ms CPU "
        f"{judged(hundred * 10, FRAME_MS)}"
    )
    print(
        "  per run of the reference (10 products of 400² matrices): "
        f"{hundred / 100 / reference_loop():.4f}"
    )


# -- viewers without a browser, in a separate process


def _masked(text: bytes) -> bytes:
    """Return a WebSocket text frame of a client (RFC 6455, section 5.2), masked with zeros."""
    head = (
        bytes([0x81, 0x80 | len(text)])
        if len(text) < 126
        else b"\x81\xfe" + struct.pack(">H", len(text))
    )
    return head + bytes(4) + text


async def _look(port: int, dead: bool) -> None:
    """Do as little work as possible as a viewer, so that the simulator keeps its processor: count
    frames without decoding them. A dead viewer reads nothing.

    A dead one reads nothing.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    writer.write(
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: "
        f"http://127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
        "AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        _masked(
            json.dumps(
                {"type": "hello", "token": TOKEN, "version": messages.VERSION}
            ).encode()
        )
    )
    while dead:
        await asyncio.sleep(3600)
    while True:
        kind, size = await reader.readexactly(2)
        if size >= 126:
            size = int.from_bytes(
                await reader.readexactly(2 if size == 126 else 8), "big"
            )

        data = await reader.readexactly(size)
        if kind == 0x82:
            writer.write(
                _masked(
                    b'{"type":"ack","number":%d}'
                    % int.from_bytes(data[28:32], "little")
                )
            )


async def _watch(port: int, count: int, pipe: Connection, dead: bool) -> None:
    tasks = [asyncio.ensure_future(_look(port, dead)) for _ in range(count)]
    await asyncio.to_thread(pipe.recv)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def watch(port: int, count: int, pipe: Connection, dead: bool) -> None:
    asyncio.run(_watch(port, count, pipe, dead))


async def _steps(
    sim: Simulation, viewers: int, dead: bool = False, seconds: float = 5.0
) -> dict[str, float]:
    """Step in real time; return the mean time of a step, the CPU time of the whole process, and
    the frames sent.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    async with serving(sim, 0.05) as (hub, server):
        process = context.Process(
            target=watch, args=(server.address[1], viewers, theirs, dead)
        )
        process.start()
        while len(server.desk.viewers) < viewers:
            await asyncio.sleep(0.05)
        await asyncio.sleep(2.0)
        times: list[float] = []
        stepping: list[float] = []
        step = hub.sim.step

        def timed() -> None:
            begin, begin_cpu = time.perf_counter(), time.thread_time()
            step()
            times.append(time.perf_counter() - begin)
            stepping.append(time.thread_time() - begin_cpu)

        # `Simulation` refuses new values of its attributes, so write past its setter.
        vars(hub.sim)["step"] = timed
        sent = sum(v.frames_sent for v in server.desk.viewers)
        begin_cpu, begin_tick, overruns = time.process_time(), sim.tick, hub.overruns
        await asyncio.sleep(seconds)
        used = time.process_time() - begin_cpu
        frames_sent = sum(v.frames_sent for v in server.desk.viewers) - sent
        ticks = sim.tick - begin_tick
        del vars(hub.sim)["step"]
        ours.send(None)
        process.join(10)
        return {
            "step": statistics.median(times) * 1e3,
            "beside": (used - sum(stepping)) / ticks * 1e3,
            "frames": frames_sent,
            "ticks": ticks,
            "overruns": hub.overruns - overruns,
        }


def viewers(sim: Simulation) -> None:
    pairs = []
    # Measure in turns, because the speed of a shared machine changes.
    for _ in range(5):
        pairs.append(
            [asyncio.run(_steps(sim, *how)) for how in ((0,), (10,), (10, True))]
        )

    for k, count in enumerate(("no viewers", "10 viewers", "10 dead ones")):
        runs = [pair[k] for pair in pairs]
        print(
            f"{count}: step {statistics.median(r['step'] for r in runs):.3f} ms "
            "(median of medians), CPU beside steps "
            f"{statistics.median(r['beside'] for r in runs):.3f} ms a step, "
            f"{sum(r['frames'] for r in runs):.0f} frames sent in "
            f"{sum(r['ticks'] for r in runs):.0f} steps"
        )

    ratio, dead = (
        statistics.median(p[k]["step"] / p[0]["step"] for p in pairs) for k in (1, 2)
    )
    per_frame = statistics.median(
        (b["beside"] - a["beside"]) * b["ticks"] / b["frames"] for a, b, _ in pairs
    )
    print(
        f"step time with 10 viewers / with none: {ratio:.3f}, with 10 dead ones: {dead:.3f}"
    )
    print(f"server CPU for each frame sent: {per_frame:.3f} ms")


async def _browse(sim: Simulation, renderer: str, program: str) -> None:
    from playwright.async_api import async_playwright

    async with serving(sim, 0.05) as (_, server), async_playwright() as driver:
        flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
        browser = await driver.chromium.launch(executable_path=program, args=flags)
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        kept = json.dumps({"renderer": renderer})
        await context.add_init_script(
            f"localStorage.setItem('botyard', JSON.stringify({kept}))"
        )
        page = await context.new_page()
        await page.goto(server.url())
        await asyncio.sleep(12)
        await page.evaluate("__sim.painter.costs.length = 0")
        begin = time.perf_counter()
        await asyncio.sleep(12)
        costs = sorted(await page.evaluate("__sim.painter.costs"))
        rate = len(costs) / (time.perf_counter() - begin)
        drawn = await page.evaluate(
            "JSON.stringify([__sim.painter.renderer, __sim.painter.drawn])"
        )
        if costs:
            print(
                f"{renderer}: main thread {statistics.median(costs):.2f} ms "
                f"median, {costs[int(0.9 * len(costs))]:.2f} ms 90 % "
                f"of {len(costs)} frames, {rate:.1f} a second "
                f"{judged(rate, PICTURES_PER_S, least=True)}; drawn {drawn}"
            )

        await browser.close()


def main() -> None:
    print(f"map: {map_path()[1]}, {ROBOTS} p3dx, 181 readings each")
    sim = world()
    frames(sim)
    viewers(sim)
    program = shutil.which("chromium")
    if program is None or not (STATIC / "index.html").is_file():
        print(
            "no Chromium, or the page is not built (make web): the browser's side is not measured"
        )
        return

    for renderer in ("webgl2", "canvas2d"):
        asyncio.run(_browse(sim, renderer, program))
