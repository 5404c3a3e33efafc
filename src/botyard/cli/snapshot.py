"""``botyard snapshot``: picture of a world after some time, without opening any port."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from botyard.app.checks import check_can_be_written, check_options, check_picture
from botyard.app.options import RunOptions
from botyard.cli.listing import FORCE
from botyard.cli.pictureoptions import DURATION, chosen_picture, with_picture_options
from botyard.cli.run import caller_of, warm_up
from botyard.cli.runoptions import with_some_options
from botyard.errors import CommandLineError
from botyard.names import escaped

# With a wrong unit, such as 5000h, the simulation would otherwise run for days before
# the picture is drawn.
MAX_AT_S: Final = 1e6
"""Maximum simulated time before the picture, s."""
OPTIONS: Final = (
    "map",
    "stageworld",
    "nomap",
    "resolution",
    "max_read",
    "adf",
    "robots",
    "start",
    "controller",
    "simulate_batteries",
    "update_sim_time",
    "seed",
    "sensor_noise",
    "odom_error_mode",
    "no_error",
    "threads",
)
PICTURE: Final = ("area", "follow", "trails", "scans", "size", "theme", "colors")


@click.command("snapshot")
@click.argument(
    "output", metavar="OUTPUT", type=click.Path(dir_okay=False, path_type=Path)
)
@click.option(
    "--at",
    type=DURATION,
    default=0.0,
    metavar="TIME",
    help="Simulated time before the picture: 5s, 2min. [default: 0s]",
)
@with_picture_options
@with_some_options(*OPTIONS)
@FORCE
@click.pass_context
def command(context: click.Context, /, output: Path, at: float, **given: Any) -> int:
    """Simulate without clients, and draw the world at one time.

    OUTPUT is a .png, .jpg, .webp or .pdf file, among others.
    """
    picture = chosen_picture(**{name: given.pop(name) for name in PICTURE})
    if at > MAX_AT_S:
        raise CommandLineError(f"--at: expected at most {MAX_AT_S:g} s, found {at:g} s")
    if not (given["map"] or given["stageworld"] or given["nomap"]):
        raise CommandLineError(
            "expected a map (-m FILE), or --nomap for an empty plane, found neither"
        )

    # Without the page no user is asked, so a missing model folder is an error and not a
    # question.
    o = RunOptions(**given, no_gui=True)
    check_options(o)
    check_can_be_written("OUTPUT", output, force=o.force)
    check_picture("OUTPUT", str(output))

    def warn(text: str) -> None:
        click.echo(f"warning: {escaped(text)}", err=True)

    from botyard.app.firstworld import load_world, make_simulation

    world, o = load_world(o, caller_of(context, warn))
    from botyard.app.assembly import add_robots, assemble
    from botyard.pictures.files import save_picture
    from botyard.pictures.filming import SOURCE, picture_after

    sim = make_simulation(world, o, warm_up)
    # The parts are assembled although no port opens, because they place the robots and
    # start their controllers.
    parts = assemble(sim, world, o, None)
    try:
        add_robots(parts.robot_servers, world, o, o.chosen_robots(bool(world.robots)))
        if picture.scans is True:
            for robot in sim.robots.values():
                for laser in robot.lasers:
                    # Lasers scan only for subscribers, so without this the picture
                    # would show no scans.
                    laser.subscribe(SOURCE)

        image = picture_after(sim, at, picture)
    finally:
        parts.close()

    try:
        save_picture(image, output, force=o.force)
    except (OSError, ValueError) as error:
        raise CommandLineError(f"OUTPUT: cannot write {output}: {error}") from None

    click.echo(f"{output} written: {sim.time:g} s, {len(sim.robots)} robots")
    return 0
