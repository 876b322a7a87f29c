"""Removes artifacts that nothing names any more, and marks those that an earlier release kept.

A file is old if it was not kept again for a while: `artifacts.keep` renews its time, so an upload whose checkpoint is
not saved yet is left alone. Old files are searched for in everything that may name one: rows, chunks and what other
apps register. A file that nothing names is first moved aside and its time checked again, so that one that is kept
again at that very moment is put back. After a crash in between, the next run puts back the moved files that are named.

An earlier release wrote no `<SHA-256>.<team>` beside its files. Without a mark a state may name a file only where its
own lineage named it before: not what a child kept, or the result of an effect or of `once`. So everything that a team's
runs name is marked for it, once at the update and again at its end, when the old processes that went on beside it are
gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.files.storage import storages
from django.db.models import QuerySet
from psycopg.types.numeric import Int4, Int8

from checkpoints import crash_points
from checkpoints.layout import payloads
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import artifacts

GRACE = timedelta(days=2)  # longer than any step takes from keeping a file to saving its reference
ASIDE = "gone"
_NAMED = re.compile(rb'"\$artifact":"([0-9a-f]{64})"')
_FILE = re.compile(r"[0-9a-f]{64}(\.\d+)?")  # an artifact, or the mark of a team that it was kept for

AT_ONCE = 100  # rows that one statement reads
_CHECKPOINTS = """
SELECT run_id, seq, codec, payload FROM checkpoints_checkpoint
WHERE (run_id, seq) > ($1, $2) ORDER BY run_id, seq LIMIT $3
"""
_CHUNKS = """
SELECT lineage, digest, codec, payload FROM checkpoints_chunk
WHERE (lineage, digest) > ($1, $2) ORDER BY lineage, digest LIMIT $3
"""

Source = Callable[[], Iterator[Iterable[bytes]]]
_sources: list[Source] = []
_MARKED = "marked"  # an empty file beside the artifacts' folders
_TEAM_CHECKPOINTS = """
SELECT c.run_id, c.seq, ARRAY[r.team_id], c.codec, c.payload
FROM checkpoints_checkpoint c JOIN checkpoints_run r ON r.id = c.run_id
WHERE (c.run_id, c.seq) > ($1, $2) ORDER BY c.run_id, c.seq LIMIT $3
"""
_TEAM_CHUNKS = """
SELECT c.lineage, c.digest, ARRAY(
  SELECT DISTINCT r.team_id FROM checkpoints_run r
  WHERE r.id = c.lineage OR (r.lineage = c.lineage AND r.forked_from IS NOT NULL)
), c.codec, c.payload
FROM checkpoints_chunk c WHERE (c.lineage, c.digest) > ($1, $2) ORDER BY c.lineage, c.digest LIMIT $3
"""
TeamSource = Callable[[], Iterator[tuple[int, bytes]]]  # of teams' numbers, and canonical JSON that their runs hold
_team_sources: list[TeamSource] = []


def look_in(source: Source) -> None:
    """Register `source()`, whose contents, iterables of canonical JSON, are searched too."""
    _sources.append(source)


def remove(*, grace: timedelta = GRACE) -> int:
    """Remove the artifacts that are old and named nowhere; return the bytes freed."""
    root = Path(storages["artifacts"].path(""))
    since = datetime.now(UTC) - grace
    old = [path for path in _files(root) if _time(path) < since]
    aside = [path for path in (root / ASIDE).glob("*") if _FILE.fullmatch(path.name)]
    if not old and not aside:
        return 0
    named = _named({_digest(path) for path in (*old, *aside)})
    for path in aside:
        if _digest(path) in named:
            _put_back(root, path)
    return sum(_removed(root, path, since) for path in (*aside, *old) if _digest(path) not in named)


def _digest(path: Path) -> str:
    return path.name[:64]


def _files(root: Path) -> Iterator[Path]:
    """Yield the artifacts and their marks: each is in a folder named by the first two digits of its digest."""
    for path in root.glob("??/*"):
        if _FILE.fullmatch(path.name):
            yield path


def _time(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        return datetime.now(UTC)


def _named(wanted: Iterable[str]) -> set[str]:
    """Return those of the digests that stored data names."""
    left = set(wanted)
    found: set[str] = set()
    for content in _contents():
        found |= digests_in(content) & left
        if found == left:
            break
    return found


def _contents() -> Iterator[bytes]:
    """Yield all stored content that may name an artifact.

    The states come last: what a source names gets into a state before the source drops it.
    """
    for source in _sources:
        for contents in source():
            yield from contents
    for codec, payload in chain(by_key(_CHECKPOINTS, (Int8(0), Int4(0))), by_key(_CHUNKS, (Int8(0), b""))):
        yield payloads.unpack(codec, payload)


def digests_in(content: bytes) -> set[str]:
    """Return the digests that canonical JSON names."""
    return {match.decode() for match in _NAMED.findall(content)}


def by_key(statement: str, after: tuple[Int8, Int4 | bytes]) -> Iterator[Sequence[Any]]:
    """Yield the rows of a table after a key, which is their first two columns, without it; a bounded number at once.

    So no statement lasts as long as reading the whole table. The rows come in the order of their keys, in which states
    are handed on: what a row names, if its checkpoint is removed meanwhile, is named by a later row of that run or of
    a fork, or by a chunk.
    """
    while rows := run_sql(statement, [*after, Int8(AT_ONCE)]):
        yield from (row[2:] for row in rows)
        run, second = rows[-1][:2]
        after = (Int8(run), second if isinstance(second, bytes) else Int4(second))


def column(queryset: QuerySet[Any], name: str) -> Iterator[Any]:
    """Yield a column of rows with integer keys, a bounded number per statement; a helper for sources."""
    return (value for (value,) in columns(queryset, name))


def columns(queryset: QuerySet[Any], *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield columns of rows, as `column` does."""
    after = 0
    while rows := list(queryset.filter(pk__gt=after).order_by("pk").values_list("pk", *names)[:AT_ONCE]):
        yield from (row[1:] for row in rows)
        after = rows[-1][0]


def _removed(root: Path, path: Path, since: datetime) -> int:
    """Remove one file, unless it was kept again meanwhile; return its size."""
    place = root / ASIDE / path.name
    try:
        if path != place:
            place.parent.mkdir(mode=0o700, exist_ok=True)
            path.rename(place)
        crash_points.point("artifact_aside", path.name)
        if _time(place) >= since:
            _put_back(root, place)
            return 0
        size = place.stat().st_size
        place.unlink()
    except FileNotFoundError:  # another pruner was there
        return 0
    return size


def _put_back(root: Path, aside: Path) -> None:
    home = root / aside.name[:2] / aside.name
    home.parent.mkdir(parents=True, exist_ok=True)
    aside.unlink() if home.exists() else aside.rename(home)


def mark_also(source: TeamSource) -> None:
    """Register `source()`, whose contents name files of their teams too."""
    _team_sources.append(source)


def mark_files(*, again: bool = False) -> int:
    """Mark what the teams' runs name, unless that is done or there are no files; return how many marks are new."""
    root = Path(storages["artifacts"].path(""))
    if not root.is_dir() or ((root / _MARKED).exists() and not again):
        return 0
    pairs = ((digest, team) for teams, content in _team_contents() for digest in digests_in(content) for team in teams)
    made = sum(artifacts.mark_for(digest, team) for digest, team in pairs)
    (root / _MARKED).touch()
    return made


def _team_contents() -> Iterator[tuple[list[int], bytes]]:
    for source in _team_sources:
        yield from (([team], content) for team, content in source())
    for teams, codec, payload in chain(
        by_key(_TEAM_CHECKPOINTS, (Int8(0), Int4(0))), by_key(_TEAM_CHUNKS, (Int8(0), b""))
    ):
        with suppress(ValueError):  # which loads and verifications report
            yield teams, payloads.unpack(codec, payload)
