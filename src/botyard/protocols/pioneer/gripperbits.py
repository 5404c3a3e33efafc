"""Encoding of a gripper's switches in one byte, in two incompatible layouts.

Source: pioneer-protocol §10.1.
"""

from __future__ import annotations

from botyard.model.readings import GripperState

LAYOUTS = ("aria", "p2os")


def aria(g: GripperState) -> int:
    """Return the byte in ARIA's layout: SIP byte 14, and the gripper packet."""
    return (
        (not g.open) << 0
        | (not (g.lift_up or g.lift_down)) << 1
        | g.outer_beam << 2
        | g.inner_beam << 3
        | (not g.left_touches) << 4
        | (not g.right_touches) << 5
        | g.lift_moves << 6
        | g.paddles_move << 7
    )


def p2os(g: GripperState) -> int:
    """Return the byte in the layout of Player's p2os driver: SIP byte 14.

    Its beams are among the digital inputs; see `p2os_inputs`.
    """
    return (
        g.open << 0
        | g.closed << 1
        | g.paddles_move << 2
        | g.lift_up << 4
        | g.lift_down << 5
        | g.lift_moves << 6
    )


def p2os_inputs(g: GripperState, inputs: int) -> int:
    """Return digital inputs with beams in bits 1 and 2; 1 is broken."""
    return inputs & 0b1111_1001 | g.outer_beam << 1 | g.inner_beam << 2


def switches(g: GripperState, layout: str) -> int:
    """Return byte 14 of the SIP in one of the `LAYOUTS`."""
    return p2os(g) if layout == "p2os" else aria(g)
