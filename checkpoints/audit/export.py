"""The audit export: events as lines of JSON with their proofs, which can be verified on any machine.

A header; then seal by seal: the seal, and those of its events that were asked for, each with its path to the seal's
root unless all of the seal's events are there; then events that no seal covers yet; then the end, with counts and a
digest over all lines before it. No seal between the first and the last is left out, so that they form a chain.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import QuerySet

from checkpoints.events.commit_order import Cursor, events_after, events_until
from checkpoints.models import Event, EventText, Seal
from checkpoints.seals import leaves, merkle
from checkpoints.seals.leaves import SealedRow, compute_leaf, compute_tags
from checkpoints.seals.seal import SealFact, exact_bytes, format_instant, parse_instant, readable_value
from checkpoints.values.characters import escape_controls

from . import reading
from .reading import RowStream

FORMAT = 1
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999, in microseconds
PAGE = 2_000
END = b"holdpoint export\n"


@dataclass(frozen=True)
class ExportedEvent:
    """One event of an export. `index` is its place among its seal's events, None if it is in no seal.

    `mark` is its leaf and its tags, as the seal's marks have them; `path` leads from its leaf to the seal's root, and
    is None if all events of the seal are in the export.
    """

    row: SealedRow
    index: int | None = None
    path: list[bytes] | None = None
    mark: bytes = b""
    text: tuple[bytes, bytes] | None = None  # salt, words


def to_json(event: ExportedEvent) -> dict[str, Any]:
    """Write one line."""
    row = event.row
    values: dict[str, Any] = {
        "event": row.id,
        "xid": row.xid,
        "at": format_instant(row.at) if row.at is not None and _EARLIEST <= row.at <= _LATEST else row.at,
        "kind": row.kind,
        "run": row.run_id,
        "team": row.team_id,
        "subject": row.subject,
        "version": row.version,
        "actor": row.actor,
        "actor_name": row.actor_name,
        "data": readable_value(row.data),
        "text_digest": row.text_digest.hex() if row.text_digest is not None else None,
        "index": event.index,
        "mark": (event.mark or compute_leaf(row) + compute_tags(row)).hex(),
    }
    if event.path is not None:
        values["path"] = [sibling.hex() for sibling in event.path]
    if event.text is not None:
        values["text"] = {"salt": event.text[0].hex(), "words": readable_text(event.text[1])}
    return values


def from_json(line: Any) -> ExportedEvent:
    """Read that form. Raises ValueError, KeyError, TypeError or AttributeError for anything else."""
    at = line["at"]
    row = SealedRow(
        line["event"], line["xid"], parse_instant(at) if isinstance(at, str) else at, line["kind"], line["run"],
        line["team"], line["subject"], line["version"], line["actor"], line["actor_name"], exact_bytes(line["data"]),
        None if line["text_digest"] is None else bytes.fromhex(line["text_digest"]),
    )  # fmt: skip
    text = line.get("text")
    path = line.get("path")
    index = line["index"]
    if not (type(row.id) is type(row.xid) is int and (index is None or type(index) is int)):
        raise ValueError("an id is no whole number")
    return ExportedEvent(
        row=row,
        index=index,
        path=None if path is None else [bytes.fromhex(sibling) for sibling in path],
        mark=bytes.fromhex(line["mark"]),
        text=None if text is None else (bytes.fromhex(text["salt"]), exact_text(text["words"])),
    )


def readable_text(words: bytes) -> Any:
    """Show UTF-8 as text, anything else as {"hex": …}."""
    try:
        return words.decode()
    except UnicodeDecodeError:
        return {"hex": words.hex()}


def exact_text(shown: Any) -> bytes:
    """Return the bytes that `readable_text` showed."""
    return bytes.fromhex(shown["hex"]) if isinstance(shown, dict) else str(shown).encode()


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A request for an export: of `events` up to the cursor `upto`, those that `keep` selects from each page."""

    events: QuerySet[Event]
    upto: Cursor
    keep: Callable[[QuerySet[Event]], QuerySet[Event]]
    filters: dict[str, Any]
    made_at: str  # ISO 8601
    by: str
    texts: bool = False


@dataclass
class _Sum:
    """The digest over the lines so far, and their counts of events and seals."""

    key: bytes
    sha: Any = field(default_factory=hashlib.sha256)
    events: int = 0
    seals: int = 0

    def line(self, content: dict[str, Any]) -> bytes:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        data = escape_controls(text).encode() + b"\n"
        self.sha.update(data)
        return data

    def end(self) -> bytes:
        digest = self.sha.digest()
        mac = hmac.digest(self.key, END + digest, "sha256").hex() if self.key else None
        values = {"events": self.events, "seals": self.seals, "sha256": digest.hex(), "hmac": mac}
        return json.dumps({"end": values}).encode() + b"\n"


def lines(asked: ExportRequest, *, key: bytes) -> Iterator[bytes]:
    """Yield the export, line by line."""
    total = _Sum(key)
    rows = RowStream(in_order(asked))
    seal = _covering(rows.next)
    before = reading.seal_before(seal.id) if seal else None
    yield total.line(_header(asked, before))
    last = seal.id if seal else 0
    while seal is not None and rows.next is not None:
        for fact in _from(last, seal.id):
            yield from _sealed(fact, rows, asked, total)
        last = seal.id + 1
        seal = _covering(rows.next)
    for page in rows.pages(PAGE):
        for event in _with_texts([ExportedEvent(row) for row in page], asked):
            total.events += 1
            yield total.line(to_json(event))
    yield total.end()


def in_order(asked: ExportRequest) -> Iterator[SealedRow]:
    """Yield the requested events in the order of their places, reading page by page."""
    at = Cursor()
    while True:
        ahead = events_until(events_after(asked.events, at), asked.upto).order_by("xid", "id")
        page = list(ahead[:PAGE])
        kept = asked.keep(Event.objects.filter(pk__in=[event.pk for event in page]))
        yield from map(reading.row_of, kept.order_by("xid", "id"))
        if len(page) < PAGE:
            return
        at = Cursor.from_event(page[-1])


def events_without_proofs(asked: ExportRequest) -> Iterator[ExportedEvent]:
    """Yield the requested events without proofs, each with its text if texts are requested."""
    for page in RowStream(in_order(asked)).pages(PAGE):
        yield from _with_texts([ExportedEvent(row) for row in page], asked)


def _covering(row: SealedRow | None) -> SealFact | None:
    """Find the seal whose range includes an event."""
    if row is None:
        return None
    at = {"last_xid__gte": row.xid}
    found = Seal.objects.filter(**at).exclude(last_xid=row.xid, last_id__lt=row.id).order_by("last_xid", "last_id")
    seal = found.first()
    return reading.seal_fact(seal) if seal else None


def _from(first: int, last: int) -> Iterator[SealFact]:
    """Yield the seals from `first` to `last`, both included."""
    at = first - 1
    while found := reading.seals(at, last, events=PAGE):
        yield from found
        at = found[-1].id


def _sealed(seal: SealFact, rows: RowStream, asked: ExportRequest, total: _Sum) -> Iterator[bytes]:
    """Yield the lines of a seal and of its requested events."""
    total.seals += 1
    yield total.line(seal.to_json(heads=False))
    found = list(rows.until(seal.last))
    if not found:
        return
    for text in _with_texts(_proven(seal, found), asked):
        total.events += 1
        yield total.line(to_json(text))


def _proven(seal: SealFact, rows: list[SealedRow]) -> list[ExportedEvent]:
    """Return events of one seal with their index in it, and their paths if some of its events are left out."""
    marks = list(leaves.unpack(seal.marks or b""))
    index = {mark.place: n for n, mark in enumerate(marks)}
    whole = [row.place for row in rows] == [mark.place for mark in marks]
    tree = [] if whole else merkle.levels([mark.leaf for mark in marks])
    found = []
    for row in rows:
        at = index.get(row.place)
        if at is None:
            found.append(ExportedEvent(row))
        else:
            path, mark = None if whole else merkle.path(tree, at), marks[at]
            found.append(ExportedEvent(row, at, path, mark.leaf + mark.tags))
    return found


def _with_texts(events: list[ExportedEvent], asked: ExportRequest) -> list[ExportedEvent]:
    if not asked.texts:
        return events
    wanted = [event.row.id for event in events if event.row.text_digest is not None]
    found = {text.pk: (bytes(text.salt), bytes(text.text)) for text in EventText.objects.filter(pk__in=wanted)}
    return [replace(event, text=found.get(event.row.id)) for event in events]


def _header(asked: ExportRequest, before: SealFact | None) -> dict[str, Any]:
    newest = Seal.objects.order_by("-pk").values_list("pk", "digest").first()
    return {
        "holdpoint": "audit export",
        "format": FORMAT,
        "made": asked.made_at,
        "by": asked.by,
        "filters": asked.filters,
        "upto": str(asked.upto),
        "newest": {"seal": newest[0], "digest": bytes(newest[1]).hex()} if newest else None,
        "before": {"seal": before.id, "digest": before.digest.hex()} if before else None,
    }
