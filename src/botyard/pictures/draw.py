"""Pictures of a scene, a robot model, and a world at one moment.

`main` is a child process that draws one picture (see
`botyard.processes.child_process`), so that the picture of one client does not delay the
other clients.
"""

from __future__ import annotations

import io
from typing import Final

from PIL import Image

from botyard.geometry import Pose, transform_point
from botyard.model.robot import RobotSpec
from botyard.model.scene import Scene
from botyard.pictures.canvas import Mask, Size, fit, paste
from botyard.pictures.options import PictureOptions
from botyard.pictures.painter import Painter, draw_body
from botyard.pictures.palette import theme
from botyard.pictures.still import Figure, Looks, Still, boxes_of
from botyard.processes.child_process import Send, serve

MODULE: Final = "botyard.pictures.draw"
TYPES: Final = {"png": bytes}
"""Messages from the child process: the picture as a PNG file."""


def render_scene(
    scene: Scene, *, size: Size = 1000, theme: str = "light"
) -> Image.Image:
    """Draw a scene without robots."""
    return render_still(boxes_of(scene), PictureOptions(size=size, theme=theme))


def render_robot(spec: RobotSpec, *, size: int = 400) -> Image.Image:
    """Draw one robot model with its sensors, `size` pixels wide."""
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
        lines.line([(tip.x, tip.y), *arc, (tip.x, tip.y)])

    paste([*cones.finish(), *lines.finish()], image)
    looks = Looks((*spec.parts, spec.outline), spec.color, bool(spec.drive))
    draw_body(image, looks, Figure(0, ""), Pose(), view, colors)
    inside, edge = Mask(view, (*colors.laser_edge[:3], 255)), Mask(view, colors.outline)
    for laser in spec.lasers:
        hx, hy = laser.size[0] / 2, laser.size[1] / 2
        case = [
            transform_point(laser.pose, x, y)
            for x, y in ((-hx, -hy), (hx, -hy), (hx, hy), (-hx, hy))
        ]
        inside.polygon(case)
        edge.line([*case, case[0]])

    paste([*inside.finish(), *edge.finish()], image)
    return image.convert("RGB")


def render_still(still: Still, options: PictureOptions | None = None) -> Image.Image:
    """Draw the world at one moment."""
    return Painter(options or PictureOptions()).draw(still)


def png(still: Still) -> bytes:
    """Draw the world at one moment as a PNG file."""
    return encoded(render_still(still))


def encoded(image: Image.Image) -> bytes:
    """Return a picture as a PNG file."""
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _answer(still: Still, send: Send) -> None:
    send("png", png(still))


def main() -> None:
    """Run the child process."""
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
