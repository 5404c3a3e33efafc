"""Encoding of a gripper's switches in one byte, in two incompatible layouts.

Source: pioneer-protocol §10.1.
"""

from __future__ import annotations

from botyard.model.readings import GripperState

LAYOUTS = ("aria", "p2os")


def aria(g: GripperState) -> int:
    """Return the byte in ARIA's layout: SIP byte 14, and the gripper packet.

    Parameters
    ----------
    g : GripperState
        State of paddles, lift and beams.

    Returns
    -------
    int
        Bits 0 to 7: paddles not open, lift between its ends, outer and inner beam
        broken, left and right paddle without contact, lift moves, paddles move.
    """
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

    In this layout, the beams are among the digital inputs; see `p2os_inputs`.

    Parameters
    ----------
    g : GripperState
        State of paddles, lift and beams.

    Returns
    -------
    int
        Bits 0 to 2: open, closed, paddles move. Bits 4 to 6: lift up, lift down, lift
        moves.
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
    """Return digital inputs with the beams in bits 1 and 2: 1 if the beam is broken.

    Parameters
    ----------
    g : GripperState
        State with the two beams.
    inputs : int
        First byte of digital inputs. Its bits 1 and 2 are replaced.

    Returns
    -------
    int
        The byte with the outer beam in bit 1, and the inner beam in bit 2.
    """
    return inputs & 0b1111_1001 | g.outer_beam << 1 | g.inner_beam << 2


def switches(g: GripperState, layout: str) -> int:
    """Return the gripper's byte 14 of the SIP in one of the `LAYOUTS`.

    Parameters
    ----------
    g : GripperState
        State of paddles, lift and beams.
    layout : str
        ``p2os`` for Player's driver. Any other text counts as ``aria``.
    """
    return p2os(g) if layout == "p2os" else aria(g)
