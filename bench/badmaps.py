"""Hostile map files: decompression bombs, oversized and malformed files. For
``bench.reliability uploads``.
"""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)

    return out.getvalue()


def _png(width: int, height: int) -> bytes:
    """Return a picture whose header declares a huge size, with the data of a few rows."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress(bytes(width + 1) * 100))
        + chunk(b"IEND", b"")
    )


def _laughs(levels: int) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)
    ]
    return (
        "botyard: 1\nmap: office\n" + "\n".join(lines) + f"\nrobots: *a{levels - 1}\n"
    ).encode()


def _svg(levels: int) -> bytes:
    parts = ['<g id="a0"><rect x="0" y="0" width="9" height="9"/></g>']
    parts += [
        f'<g id="a{i}">{f"""<use href="#a{i - 1}"/>""" * 10}</g>'
        for i in range(1, levels)
    ]
    return f'<svg xmlns="http://www.w3.org/2000/svg"><defs>{"".join(parts)}</defs><use href="#a{levels - 1}"/></svg>'.encode()


def _dxf(levels: int) -> bytes:
    """Return a DXF file with blocks that insert each other in rows and columns."""

    def block(name: str, inner: str) -> str:
        return f"0\nBLOCK\n2\n{name}\n70\n0\n10\n0\n20\n0\n30\n0\n{inner}0\nENDBLK\n"

    def insert(name: str) -> str:
        return f"0\nINSERT\n2\n{name}\n10\n0\n20\n0\n70\n1000\n71\n1000\n44\n1\n45\n1\n"

    blocks = block("a0", "0\nLINE\n8\n0\n10\n0\n20\n0\n11\n1\n21\n1\n")
    blocks += "".join(block(f"a{i}", insert(f"a{i - 1}")) for i in range(1, levels))
    entities = insert(f"a{levels - 1}")
    return f"0\nSECTION\n2\nBLOCKS\n{blocks}0\nENDSEC\n0\nSECTION\n2\nENTITIES\n{entities}0\nENDSEC\n0\nEOF\n".encode()


def _armap(lines: list[str], points: int = 0, extent: int = 1_000_000) -> bytes:
    head = (
        f"2D-Map\nLineMinPos: 0 0\nLineMaxPos: {extent} {extent}\nNumLines: "
        f"{len(lines)}\nNumPoints: {points}\nResolution: 20\nLINES\n"
    )
    return (head + "\n".join(lines) + "\n").encode()


def bad_maps() -> dict[str, bytes]:
    """Return the name and the contents of each bad map."""
    rng = random.Random(1)

    def crossing(count: int, extent: int) -> list[str]:
        return [
            " ".join(str(rng.randrange(extent)) for _ in range(4)) for _ in range(count)
        ]

    def ring(corners: int) -> str:
        return ",".join(
            f"[{rng.random():.9f},{rng.random():.9f}]" for _ in range(corners)
        )

    globe = '{"type":"Polygon","coordinates":[[[-179,-80],[179,-80],[179,80],[-179,80],[-179,-80]]]}'
    return {
        "bomb.zip": _zip({"a.map": bytes(2**31)}),
        "laughs.yaml": _laughs(12),
        "robots.yaml": b"botyard: 1\nmap: office\nrobots:\n  - {model: p3dx, count: 1000000}\n",
        "deep.yaml": b"botyard: 1\nmap: office\nrobots: "
        + b"[" * 100_000
        + b"]" * 100_000
        + b"\n",
        "use.svg": _svg(12),
        "blocks.dxf": _dxf(6),
        "huge.png": _png(60_000, 60_000),
        "far.map": _armap(
            ["0 0 1000 0", f"{10**15} {10**15} {10**15} 0"], extent=10**15
        ),
        "announced.map": b"2D-Map\nMinPos: 0 0\nMaxPos: 9 9\nNumPoints: "
        b"2000000000\nResolution: 20\nDATA\n1 1\n",
        "crossing.map": _armap(crossing(200_000, 1_000_000)),
        "globe.geojson": f'{{"type":"FeatureCollection","features":[{{"type":"Feature","properties":{{}},"geometry":{globe}}}]}}'.encode(),
        "corners.geojson": f'{{"type":"Polygon","coordinates":[[{ring(1_000_000)}]]}}'.encode(),
        "noise.map": rng.randbytes(30_000_000),
        "ones.map": b"2D-Map\nDATA\n" + b"1 1\n" * 8_000_000,
        "half.map": _armap(crossing(400_000, 50_000)[:300_000], points=5),
        "crowd.yaml": b"botyard: 1\nwalls: [[[-50, -50], [50, -50]]]\nrobots:\n  "
        b"- {model: small-box, count: 900}\n",
        "broken.world": b'define a model ( size [1 1 1] a ( ) )\na ( a ( a ( name "x"\n'
        * 1000,
    }


__all__ = ["bad_maps"]
