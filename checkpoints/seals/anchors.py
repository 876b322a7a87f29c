"""The file of exported seals: what shows that seals were cut off or made again, even by somebody with the key.

One line of JSON for each seal, appended after its commit; see SealFact.to_json. Keep copies where whoever can write
the database cannot reach: the log says the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from checkpoints.errors import ValueRefused

from .problem import IntegrityProblem
from .seal import SealFact

BATCH = 1_000
Stored = Callable[[list[int]], Mapping[int, bytes]]


class SealAnchor(NamedTuple):
    """One line. `whole` where the line holds all of the seal, as lines do since marks are kept."""

    line: int
    seal: int
    digest: bytes
    whole: SealFact | None


def check(lines: Iterable[str], stored: Stored, *, key: bytes, name: str, since: int = 0) -> Iterator[IntegrityProblem]:
    """Report seals that the lines know and that are not stored, or are stored otherwise; and lines that are no seals.

    `stored` gives the digests of those seals that there are, by id; seals up to `since` are passed over.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while batch := list(islice(numbered, BATCH)):
        anchors = []
        for number, line in batch:
            anchor = read(number, line)
            if anchor is None:
                yield IntegrityProblem(f"line {number} of {name}", "cannot be read")
            elif anchor.seal > since:
                anchors.append(anchor)
        found = stored([anchor.seal for anchor in anchors])
        for anchor in anchors:
            yield from _judge(anchor, found.get(anchor.seal), key, name)


def read(number: int, line: str) -> SealAnchor | None:
    """Read one line; None where it is no seal."""
    try:
        said = json.loads(line)
        digest = bytes.fromhex(said["digest"])
        whole = SealFact.from_json(said) if "root" in said else None
        return SealAnchor(number, int(said["seal"]), digest, whole)
    except (ValueError, KeyError, TypeError, AttributeError, ValueRefused, OverflowError):
        return None


def _judge(anchor: SealAnchor, stored: bytes | None, key: bytes, name: str) -> Iterator[IntegrityProblem]:
    if stored == anchor.digest:
        return
    if anchor.whole and anchor.whole.made(key) == "other":
        yield IntegrityProblem(
            f"line {anchor.line} of {name}", f"what it says of seal {anchor.seal} was altered, or made with another key"
        )
    elif stored is None:
        yield IntegrityProblem(f"seal {anchor.seal}", f"was exported (line {anchor.line} of {name}) and is gone")
    else:
        yield IntegrityProblem(
            f"seal {anchor.seal}", f"is not the one that was exported (line {anchor.line} of {name}): it was made again"
        )
