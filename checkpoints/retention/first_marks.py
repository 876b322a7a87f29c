"""Marks the files that runs of an earlier release kept: that one wrote no `<SHA-256>.<team>` beside them.

Without a mark a state may name a file only where its own lineage named it before: not what a child kept, or the result
of an effect or of `once`. So everything that a team's runs name is marked for it, once at the update and again at its
end, when the old processes that went on beside it are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from django.core.files.storage import storages
from psycopg.types.numeric import Int4, Int8

from checkpoints.layout import payloads
from checkpoints.values import artifacts

from .stray_artifacts import by_key, digests_in

_DONE = "marked"  # an empty file beside the artifacts' folders
_CHECKPOINTS = """
SELECT c.run_id, c.seq, ARRAY[r.team_id], c.codec, c.payload
FROM checkpoints_checkpoint c JOIN checkpoints_run r ON r.id = c.run_id
WHERE (c.run_id, c.seq) > ($1, $2) ORDER BY c.run_id, c.seq LIMIT $3
"""
_CHUNKS = """
SELECT c.lineage, c.digest, ARRAY(
  SELECT DISTINCT r.team_id FROM checkpoints_run r
  WHERE r.id = c.lineage OR (r.lineage = c.lineage AND r.forked_from IS NOT NULL)
), c.codec, c.payload
FROM checkpoints_chunk c WHERE (c.lineage, c.digest) > ($1, $2) ORDER BY c.lineage, c.digest LIMIT $3
"""

Source = Callable[[], Iterator[tuple[int, bytes]]]  # of teams' numbers, and canonical JSON that their runs hold
_sources: list[Source] = []


def look_in(source: Source) -> None:
    """Register `source()`, whose contents name files of their teams too."""
    _sources.append(source)


def mark_files(*, again: bool = False) -> int:
    """Mark what the teams' runs name, unless that is done or there are no files; return how many marks are new."""
    root = Path(storages["artifacts"].path(""))
    if not root.is_dir() or ((root / _DONE).exists() and not again):
        return 0
    pairs = ((digest, team) for teams, content in _contents() for digest in digests_in(content) for team in teams)
    made = sum(artifacts.mark_for(digest, team) for digest, team in pairs)
    (root / _DONE).touch()
    return made


def _contents() -> Iterator[tuple[list[int], bytes]]:
    for source in _sources:
        yield from (([team], content) for team, content in source())
    for teams, codec, payload in chain(by_key(_CHECKPOINTS, (Int8(0), Int4(0))), by_key(_CHUNKS, (Int8(0), b""))):
        with suppress(ValueError):  # which loads and verifications report
            yield teams, payloads.unpack(codec, payload)
