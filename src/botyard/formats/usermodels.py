"""Models that the user's include files add to every world (WLD-006)."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from botyard.errors import (
    FormatError,
)
from botyard.formats.base import Options
from botyard.formats.models import user_world_file
from botyard.model.world import Settings, World


def with_user_things(world: World, options: Options = Options()) -> World:
    """Return a world with the models that the user's include files add (WLD-006).

    Settings of those files are defaults of the world's own settings. A file that cannot
    be read is reported, and left out.

    Parameters
    ----------
    world : World
        World without these models. It is not changed.
    options : Options
        Limits for reading the files, and receiver of warnings.
    """
    found = user_world_file()
    if not found.entities and not found.properties:
        return world
    # Readers of Stage take long to import, and few users have such files.
    from botyard.formats import stagescene

    try:
        more = stagescene.to_world(found, "the user's include files", options)
    except FormatError as error:
        options.warn(f"{error}; the user's include files are ignored")
        return world

    # The world's own robots keep their names.
    names = {r.name for r in world.robots}
    robots = tuple(
        replace(r, name="" if r.name in names else r.name) for r in more.robots
    )
    scene, extra = world.scene, more.scene
    offset = len(scene.segments)
    special = tuple(
        # Row numbers of the added walls shift by the walls before them.
        replace(w, first=w.first + offset, last=w.last + offset)
        for w in extra.special_walls
    )
    traced = tuple(
        replace(c, first=c.first + offset, last=c.last + offset) for c in extra.traced
    )
    together = replace(
        scene,
        segments=np.concatenate([scene.segments, extra.segments]),
        special_walls=(*scene.special_walls, *special),
        traced=(*scene.traced, *traced),
        boxes=(*scene.boxes, *extra.boxes),
        areas=(*scene.areas, *extra.areas),
        view=scene.view or extra.view,
    )
    own, theirs = world.settings, more.settings
    settings = Settings(
        **{
            f.name: getattr(own, f.name)
            if getattr(own, f.name) is not None
            else getattr(theirs, f.name)
            for f in fields(Settings)
        }
    )
    return replace(
        world, scene=together, robots=(*world.robots, *robots), settings=settings
    )
