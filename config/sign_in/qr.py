"""Draws a QR code as one SVG path, so that it stands in the page itself and the content policy stays strict."""

from __future__ import annotations

from dataclasses import dataclass

from qrcode.main import QRCode


@dataclass(frozen=True)
class Drawn:
    """A QR code: the squares of a side, with the quiet zone, and the path of its dark ones."""

    side: int
    path: str


def draw_code(text: str) -> Drawn:
    """Draw the text."""
    code = QRCode(border=4)
    code.add_data(text)
    code.make(fit=True)
    rows = code.get_matrix()
    dark = [(x, y) for y, row in enumerate(rows) for x, on in enumerate(row) if on]
    return Drawn(len(rows), "".join(f"M{x} {y}h1v1h-1z" for x, y in dark))
