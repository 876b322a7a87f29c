"""The file of exported seals, which reveals removed or remade seals, even if made by somebody with the key.

One line of JSON for each seal, appended after its commit; see SealFact.to_json. Keep copies out of reach of those who
can write the database; the log contains the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from checkpoints.errors import ValueRefused

from .problem import IntegrityProblem
from .seal import SealFact

BATCH = 1_000
Stored = Callable[[list[int]], Mapping[int, bytes]]


def check(lines: Iterable[str], stored: Stored, *, key: bytes, name: str, since: int = 0) -> Iterator[IntegrityProblem]:
    """Report exported seals that are missing from the database or differ there, and lines that are not seals.

    `stored` returns the digests of the stored seals among these ids, by id; seals up to `since` are skipped.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while batch := list(islice(numbered, BATCH)):
        seals: list[tuple[str, SealFact]] = []
        for number, text in batch:
            line, seal = f"line {number} of {name}", read(text)
            if seal is None:
                yield IntegrityProblem(line, "cannot be read")
            elif seal.id > since:
                seals.append((line, seal))
        found = stored([seal.id for _, seal in seals])
        for line, seal in seals:
            yield from _judge(line, seal, found.get(seal.id), key)


def read(line: str) -> SealFact | None:
    """Parse one line; None if it is not a seal."""
    try:
        return SealFact.from_json(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, ValueRefused, OverflowError):
        return None


def _judge(line: str, seal: SealFact, stored: bytes | None, key: bytes) -> Iterator[IntegrityProblem]:
    if stored == seal.digest:
        return
    if seal.digest_kind(key) == "other":
        yield IntegrityProblem(line, f"what it says of seal {seal.id} was altered, or made with another key")
    elif stored is None:
        yield IntegrityProblem(f"seal {seal.id}", f"was exported ({line}) and is gone")
    else:
        yield IntegrityProblem(f"seal {seal.id}", f"is not the one that was exported ({line}): it was made again")
