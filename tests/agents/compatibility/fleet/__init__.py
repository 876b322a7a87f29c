"""A parent and its children in two versions; what the children really did is in a file."""

from __future__ import annotations

from pathlib import Path


def note(ledger: str, line: str) -> None:
    """Write down what was done."""
    with Path(ledger).open("a") as file:
        file.write(f"{line}\n")
