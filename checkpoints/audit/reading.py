"""Reads events and seals in bounded pages by key, never by a cursor that holds a transaction open."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from checkpoints.models import Event, Seal
from checkpoints.postgresql.sql import run_sql, to_microseconds
from checkpoints.seals.leaves import SealedRow
from checkpoints.seals.seal import SealFact

PAGE = 5_000
SEALS = 200
# No writer writes a time that Python cannot represent.
COLUMNS = """id, xid, CASE WHEN isfinite(at) THEN (extract(epoch FROM at) * 1000000)::bigint END,
kind, run_id, team_id, subject, version, actor, actor_name, data, text_digest"""
_RANGE = f"""
SELECT {COLUMNS} FROM checkpoints_event
WHERE (xid, id) > ($1, $2) AND (xid, id) <= ($3, $4) AND NOT (kind = 'checkpoint.saved')
ORDER BY xid, id LIMIT {PAGE}"""  # noqa: S608 - constants
_BY_ID = f"SELECT {COLUMNS} FROM checkpoints_event WHERE id = ANY($1)"  # noqa: S608 - constants
# The kinds of stored events, by one index lookup for each.
_KINDS = """
WITH RECURSIVE found AS (
  (SELECT kind FROM checkpoints_event WHERE NOT (kind = 'checkpoint.saved') ORDER BY kind LIMIT 1)
  UNION ALL
  SELECT (SELECT kind FROM checkpoints_event WHERE kind > found.kind AND NOT (kind = 'checkpoint.saved')
    ORDER BY kind LIMIT 1)
  FROM found WHERE found.kind IS NOT NULL
) SELECT kind FROM found WHERE kind IS NOT NULL"""


def seal_fact(seal: Seal) -> SealFact:
    """Return a stored seal as plain data."""
    heads, marks = bytes(seal.heads), bytes(seal.marks)
    return SealFact(
        id=seal.pk,
        at=to_microseconds(seal.at),
        first=(seal.first_xid, seal.first_id),
        last=(seal.last_xid, seal.last_id),
        count=seal.count,
        root=bytes(seal.merkle_root),
        heads=heads,
        heads_digest=hashlib.sha256(heads).digest(),
        previous=bytes(seal.previous) if seal.previous else None,
        marks=marks,
        marks_digest=hashlib.sha256(marks).digest(),
        digest=bytes(seal.digest),
    )


def row_of(event: Event) -> SealedRow:
    """Return an event as plain data."""
    digest = None if event.text_digest is None else bytes(event.text_digest)
    return SealedRow(
        event.pk, event.xid, to_microseconds(event.at), event.kind, event.run_id, event.team_id, event.subject,
        event.version, event.actor, event.actor_name, bytes(event.data), digest,
    )  # fmt: skip


def seals(after: int, upto: int, *, events: int) -> list[SealFact]:
    """Return the next seals after `after`, up to and including `upto`, that cover about `events`; at least one."""
    sizes = Seal.objects.filter(pk__gt=after, pk__lte=upto).order_by("pk").values_list("pk", "count")[:SEALS]
    wanted: list[int] = []
    covered = 0
    for pk, count in sizes:
        if wanted and covered + count > events:
            break
        wanted.append(pk)
        covered += count
    return [seal_fact(seal) for seal in Seal.objects.filter(pk__in=wanted).order_by("pk")]


def events(after: tuple[int, int], upto: tuple[int, int]) -> Iterator[SealedRow]:
    """Yield, in order, the events between two places that seals cover, the second place included."""
    at: Sequence[int] = after
    while found := run_sql(_RANGE, [*at, *upto]):
        rows = [SealedRow._make(columns) for columns in found]
        yield from rows
        at = rows[-1].place
        if len(rows) < PAGE:
            return


def elsewhere(ids: Sequence[int]) -> dict[int, SealedRow]:
    """Find events by their ids, whatever their place."""
    return {row.id: row for row in map(SealedRow._make, run_sql(_BY_ID, [list(ids)]))}


def kinds() -> list[str]:
    """List the kinds of all stored events."""
    return [kind for (kind,) in run_sql(_KINDS, [])]


def seal_before(seal: int) -> SealFact | None:
    """Return the seal before this one; None if there is none."""
    found = Seal.objects.filter(pk__lt=seal).order_by("-pk").first()
    return seal_fact(found) if found else None


class RowStream:
    """A stream of events, consumed in stretches; `next` is the first that was not consumed yet."""

    def __init__(self, rows: Iterator[SealedRow]) -> None:
        self.rows = rows
        self.next = next(rows, None)

    def until(self, place: tuple[int, int]) -> Iterator[SealedRow]:
        """Yield the rows up to a place, itself included."""
        while self.next is not None and self.next.place <= place:
            row, self.next = self.next, next(self.rows, None)
            yield row

    def pages(self, size: int) -> Iterator[list[SealedRow]]:
        """Yield all remaining rows, `size` at a time."""
        left = chain(() if self.next is None else (self.next,), self.rows)
        while page := list(islice(left, size)):
            yield page
