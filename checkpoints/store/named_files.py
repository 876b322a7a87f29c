"""The files that a state may name, checked for every checkpoint, whoever writes it.

A reference is a digest, and digests get around: agents read the files that their state names, and gates hand them out.
So a state may name a file that it named before, in the run's lineage (SEARCHED), and one that its team has: that a step
of the team's kept (`artifacts.kept_for`), or that a registered source tells of. What is saved otherwise, a card or a
signal, is held against the same rule where it comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from checkpoints.errors import ValueRefused
from checkpoints.layout import payloads
from checkpoints.layout.snapshot import CheckpointPlace, Header, RowDraft, Snapshot, draft_row
from checkpoints.models import Checkpoint, Chunk, Run
from checkpoints.values import artifacts
from checkpoints.values.artifacts import MARK
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import ListDigest
from checkpoints.values.ops import Append, Splice, Write

FOREIGN = "is a file that this run's team does not have; upload it at a gate, or keep it in a step of the run"
SEARCHED = 1000  # checkpoints, and as many chunks, of a lineage that are looked through before a refusal
_MARKED = encode_canonical(MARK) + b":"

Source = Callable[[int, set[str]], set[str]]  # of a team's number and digests, those that the team has
_sources: list[Source] = []


def look_in(source: Source) -> None:
    """Register a source of the files that teams have."""
    _sources.append(source)


def checked_draft(
    base: Snapshot | None,
    writes: Mapping[str, Write],
    header: Header,
    place: CheckpointPlace,
    *,
    list_format: type[ListDigest],
    id: UUID | None = None,
    team: int | None = None,
    lineage: int | None = None,
) -> RowDraft:
    """Draft a row as `layout.snapshot.draft_row` does, and check its files.

    A run that is not stored yet comes with its `team`, and with the `lineage` that it has files from.

    The draft's bytes say at once whether any part of it is a file; an anchor's are of the whole state.
    """
    made = draft_row(base, writes, header, place, list_format=list_format, id=id)
    changes = made.changes
    if any(_MARKED in line for line in changes.lines) or any(_MARKED in blob.content for blob in changes.blobs):
        grown = (Append, Splice)
        given = {name: list(append.items) if isinstance(append, grown) else append for name, append in writes.items()}
        if any(artifacts.references(given)):
            team = team or Run.objects.values_list("team", flat=True).get(pk=place.run_id)
            state = base.state if base else {}
            for at in foreign(given, team=team, lineage=lineage or place.lineage, state=state):
                raise ValueRefused(at, FOREIGN)
    return made


def foreign(value: Any, *, team: int, lineage: int, state: Any) -> list[str]:
    """List the pointers of files in `value` that a run of this team and lineage may not name; it names `state`'s."""
    found = [(at, str(item[MARK])) for at, item in artifacts.references(value)]
    new = {digest for _, digest in found}
    if new:
        new -= {str(item[MARK]) for _, item in artifacts.references(state)}
    if new:
        new -= artifacts.kept_by(team, new).union(*(source(team, new) for source in _sources))
    if new:
        new -= _named_before(lineage, new)
    return [at for at, digest in found if digest in new]


def _named_before(lineage: int, wanted: set[str]) -> set[str]:
    """Return those of the digests that a checkpoint of the lineage names, of the newest: anybody may send unknown ones.

    A file that was kept since files are marked is found without this.
    """
    marks = {_MARKED + encode_canonical(digest): digest for digest in wanted}
    found: set[str] = set()
    for content in _contents(lineage):
        found |= {digest for mark, digest in marks.items() if mark in content}
        if found == wanted:
            break
    return found


def _contents(lineage: int) -> Iterator[bytes]:
    checkpoints = Checkpoint.objects.filter(run__in=Run.objects.of_lineage(lineage)).order_by("-at", "-seq")
    for rows in (checkpoints, Chunk.objects.filter(lineage=lineage)):  # the latter lie by their digests
        for codec, payload in rows.values_list("codec", "payload")[:SEARCHED].iterator(chunk_size=50):
            with suppress(ValueError):  # which loads and verifications report
                yield payloads.unpack(codec, bytes(payload))
