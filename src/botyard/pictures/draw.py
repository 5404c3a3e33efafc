"""Pictures of a scene, a robot model, and a world at one moment.

`main` is the function of a child process that draws one picture (see
`botyard.processes.child_process`). Thus the picture of one client does not delay the
other clients.
"""

from __future__ import annotations

import io
from typing import Final

from PIL import Image

from botyard.geometry import Pose, transform_point
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.pictures.canvas import Mask, Size, fit
from botyard.pictures.layers import paste
from botyard.pictures.options import PictureOptions
from botyard.pictures.painter import Painter, draw_body
from botyard.pictures.palette import theme
from botyard.pictures.still import Figure, Looks, Still, boxes_of
from botyard.pictures.wheels import wheel_shapes
from botyard.processes.child_process import Send, serve

MODULE: Final = "botyard.pictures.draw"
TYPES: Final = {"png": bytes}
"""Messages from the child process: ``png`` carries the bytes of the PNG file."""


def render_scene(
    scene: Scene, *, size: Size = 1000, theme: str = "light"
) -> Image.Image:
    """Draw a scene without robots.

    Parameters
    ----------
    scene : Scene
        The map. Its boxes are drawn at their initial poses.
    size : int or tuple of int
        Largest width, or width and height, pixels; see `canvas.fit`.
    theme : str
        One of `palette.THEMES`.

    Returns
    -------
    Image
        Picture (RGB).

    Raises
    ------
    WorldError
        The size is out of range, or the scene has no finite bounds.
    """
    return render_still(boxes_of(scene), PictureOptions(size=size, theme=theme))


def render_robot(spec: RobotSpec, *, size: int = 400) -> Image.Image:
    """Draw one robot model with its sensors, `size` pixels wide.

    Parameters
    ----------
    spec : RobotSpec
        The model; its front points to the right.
    size : int
        Width and height, pixels.

    Returns
    -------
    Image
        Picture (RGB).
    """
    colors = theme("light")

    # The margin around the body shows the cones of its sonar.
    reach = max(spec.radius * 1.6, 0.5)
    view = fit((-reach, -reach, reach, reach), size, 0.0)
    image = Image.new("RGBA", (view.width, view.height), colors.ground)

    ring = spec.sonar
    cones, lines = Mask(view, (*colors.sonar[:3], 40)), Mask(view, colors.sonar)
    for t in ring.transducers if ring else ():
        half = ring.fov / 2 if ring else 0.0
        tip = Pose(t.pose.x, t.pose.y, t.pose.th)
        arc = [
            transform_point(Pose(tip.x, tip.y, tip.th + a), reach / 3, 0.0)
            for a in (-half, 0.0, half)
        ]
        cones.polygon([(tip.x, tip.y), *arc])
        lines.line([(tip.x, tip.y), *arc], closed=True)

    paste([*cones.finish(), *lines.finish()], image)

    looks = Looks((*spec.parts, spec.outline), spec.color, bool(spec.drive))
    figure = Figure(0, "", marks=wheel_shapes(spec.kinematics, 0.0))
    draw_body(image, looks, figure, Pose(), view, colors)

    inside, edge = Mask(view, (*colors.laser_edge[:3], 255)), Mask(view, colors.outline)
    for laser in spec.lasers:
        hx, hy = laser.size[0] / 2, laser.size[1] / 2
        case = [
            transform_point(laser.pose, x, y)
            for x, y in ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))
        ]
        inside.polygon(case)
        edge.line(case, closed=True)

    paste([*inside.finish(), *edge.finish()], image)
    return image.convert("RGB")


def render_still(still: Still, options: PictureOptions | None = None) -> Image.Image:
    """Draw the world at one moment.

    Parameters
    ----------
    still : Still
        Moment of a world.
    options : PictureOptions, optional
        Contents of the picture. By default the whole world is shown.

    Returns
    -------
    Image
        Picture (RGB).

    Raises
    ------
    WorldError
        The size is out of range, or no finite part of the world is shown.
    """
    return Painter(options or PictureOptions()).draw(still)


def png(still: Still) -> bytes:
    """Draw the world at one moment as a PNG file."""
    return encoded(render_still(still))


def encoded(image: Image.Image) -> bytes:
    """Return a picture as a PNG file.

    Parameters
    ----------
    image : Image
        The picture.
    """
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _answer(still: Still, send: Send) -> None:
    send("png", png(still))


def main() -> None:
    """Draw the picture that a request describes (main function of the child process)."""
    serve({"draw": Still}, TYPES, _answer)


__all__ = [
    "MODULE",
    "TYPES",
    "encoded",
    "main",
    "png",
    "render_robot",
    "render_scene",
    "render_still",
]
