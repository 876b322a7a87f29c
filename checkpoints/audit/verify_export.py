"""Verifies an export by itself: it needs only the lines, and the key of the seals if one was used.

Without the key the events are still checked against the roots of their seals, and the seals against each other.
Whether the seals and the file were made with the key cannot be checked then, and the verdict says so.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from checkpoints.audit.export import FORMAT, ExportedEvent, from_json
from checkpoints.errors import ValueRefused
from checkpoints.seals import merkle
from checkpoints.seals.leaves import EventMark, IntegrityProblem, compare_seal, compute_leaf
from checkpoints.seals.seal import UNKNOWN, SealChain, SealFact
from checkpoints.values import canonical_json

from .export import END

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, ValueRefused)


class NoExport(Exception):
    """This is no export of the audit, or one of a later format: nothing in it can be verified."""


@dataclass
class ExportVerdict:
    """The result of checking an export. `notes` says what could not be checked."""

    header: dict[str, Any]
    events: int = 0
    sealed: int = 0
    seals: int = 0
    first: int = 0
    last: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass
class ExportCheck:
    """Reads an export line by line: `for problem in check.lines(file)`, then `check.verdict`."""

    key: bytes
    anchors: Mapping[int, bytes] = field(default_factory=dict)  # digests of seals, by number, that were kept elsewhere
    verdict: ExportVerdict = field(default_factory=lambda: ExportVerdict({}))
    seal: SealFact | None = None
    events: list[ExportedEvent] = field(default_factory=list)  # of the seal at hand; at most as many as it covers
    place: tuple[int, int] = (0, 0)
    ended: bool = False

    def lines(self, data: Iterable[bytes]) -> Iterator[IntegrityProblem]:
        """Yield the problems as they are found. Raises NoExport for what is no export."""
        sha, before = hashlib.sha256(), None
        for number, line in enumerate(data, 1):
            if before is not None:
                sha.update(before)
            before = line
            if number == 1:
                self._begin(line)
                continue
            yield from self._line(number, line, sha)
        yield from self._close_seal()
        yield from self._verdicts()
        if not self.ended:
            yield IntegrityProblem("the end", "is missing: the file was cut off")

    def _begin(self, line: bytes) -> None:
        try:
            header = canonical_json.parse_json(line)
            known = header["holdpoint"] == "audit export" and isinstance(header["filters"], dict)
        except UNREADABLE:
            header, known = {}, False
        if not known:
            raise NoExport("This is no export of the audit: its first line is not the header of one.")
        if header.get("format") != FORMAT:
            raise NoExport(f"This export has format {header.get('format')!r}; this version reads {FORMAT}.")
        self.verdict.header = header
        begins = header.get("before")
        self.chain = SealChain(self.key, begins=bytes.fromhex(begins["digest"]) if begins else None)

    def _line(self, number: int, line: bytes, sha: Any) -> Iterator[IntegrityProblem]:
        if self.ended:
            yield IntegrityProblem(f"line {number}", "stands after the end")
            return
        try:
            value = canonical_json.parse_json(line)
            if "end" in value:
                self.ended = True
                yield from self._close_seal()
                yield from self._end(value["end"], sha)
            elif "seal" in value:
                yield from self._close_seal()
                yield from self._seal(SealFact.from_json(value))
            else:
                yield from self._event(number, from_json(value))
        except UNREADABLE:
            yield IntegrityProblem(f"line {number}", "cannot be read: it was altered or cut")

    def _seal(self, seal: SealFact) -> Iterator[IntegrityProblem]:
        yield from self.chain.follow(seal)
        if self.anchors.get(seal.id, seal.digest) != seal.digest:
            yield IntegrityProblem(f"seal {seal.id}", "is not the one that was exported then: it was made again")
        self.seal = seal
        self.verdict.seals += 1
        self.verdict.first = self.verdict.first or seal.id
        self.verdict.last = seal.id

    def _event(self, number: int, event: ExportedEvent) -> Iterator[IntegrityProblem]:
        row = event.row
        self.verdict.events += 1
        if row.place <= self.place:
            yield IntegrityProblem(
                f"event {row.id}", f"(line {number}) stands after one that is later: the order was changed"
            )
        self.place = max(row.place, self.place)
        if event.text is not None and hashlib.sha256(b"".join(event.text)).digest() != row.text_digest:
            yield IntegrityProblem(f"event {row.id}", f"the text of event {row.id} is not what was written")
        if event.index is None:
            if self.seal is not None and row.place <= self.seal.last:
                words = f"({row.kind}) was slipped in: it lies in the range of seal {self.seal.id}, and in no seal"
                yield IntegrityProblem(f"event {row.id}", words)
        elif self.seal is None:
            yield IntegrityProblem(
                f"event {row.id}", f"(line {number}) stands under no seal: the line of its seal was removed"
            )
        else:
            self.events.append(event)

    def _close_seal(self) -> Iterator[IntegrityProblem]:
        """Check the events of the current seal, all of which have been read by now."""
        seal, heads = self.seal, self.events
        self.events = []
        if seal is None or not heads:
            return
        self.verdict.sealed += len(heads)
        if any(event.path is None for event in heads):
            yield from self._whole(seal, heads)
            return
        for event in heads:
            if merkle.climb(compute_leaf(event.row), event.index or 0, seal.count, event.path or []) != seal.root:
                yield from self._differing(seal, event)

    def _whole(self, seal: SealFact, events: list[ExportedEvent]) -> Iterator[IntegrityProblem]:
        """Check the events of a seal that was exported whole; report each missing or altered one."""
        if len(events) == seal.count and merkle.root([compute_leaf(event.row) for event in events]) == seal.root:
            return
        there = {event.index for event in events}
        missing = [index for index in range(seal.count) if index not in there]
        for index in missing[:20]:
            after = max(
                (event for event in events if (event.index or 0) < index), key=lambda e: e.row.place, default=None
            )
            beside = f" after event {after.row.id}" if after else ""
            yield IntegrityProblem(
                f"seal {seal.id}", f"the event that stood at place {index}{beside} was removed from the export"
            )
        if len(missing) > 20:
            yield IntegrityProblem(f"seal {seal.id}", f"and {len(missing) - 20} more of its events were removed")
        altered = [problem for event in events for problem in self._differing(seal, event)]
        yield from altered
        if not (missing or altered):
            yield IntegrityProblem(
                f"seal {seal.id}", "its events do not lead to its root: they are not what was sealed"
            )

    def _differing(self, seal: SealFact, event: ExportedEvent) -> Iterator[IntegrityProblem]:
        row, mark = event.row, EventMark(event.row.xid, event.row.id, event.mark[:32], event.mark[32:])
        found = compare_seal(seal.id, [mark], [row])
        yield from found
        if not found and event.path is not None:
            yield IntegrityProblem(f"event {row.id}", f"({row.kind}) is not what seal {seal.id} covers at its place")

    def _end(self, end: Any, sha: Any) -> Iterator[IntegrityProblem]:
        verdict = self.verdict
        for name, there in (("events", verdict.events), ("seals", verdict.seals)):
            if end[name] != there:
                yield IntegrityProblem("the end", f"says {end[name]} {name}, there are {there}")
        digest = sha.digest()
        if bytes.fromhex(end["sha256"]) != digest:
            yield IntegrityProblem(
                "the file", "is not as it was exported: its lines do not match the digest at its end"
            )
        elif end["hmac"] and self.key:
            if not hmac.compare_digest(hmac.digest(self.key, END + digest, "sha256"), bytes.fromhex(end["hmac"])):
                yield IntegrityProblem(
                    "the file", "was not made with this key: another key made it, or somebody without one"
                )
        elif self.key:
            yield IntegrityProblem("the file", "was made without a key, and one is set here")
        elif end["hmac"]:
            verdict.notes.append(
                "The key of the seals was not given (HOLDPOINT_SEAL_KEY): that nobody without it made this file, or "
                "left lines out of it, could not be checked."
            )

    def _verdicts(self) -> Iterator[IntegrityProblem]:
        """Yield what is wrong with the seals' digests, and note what could not be checked.

        Without the key, a seal made with a key looks like one that was altered.
        """
        for problem, (first, last, word) in zip(self.chain.digests(), self.chain.wrong, strict=True):
            if word == UNKNOWN:
                which = f"seal {first}" if first == last else f"seals {first} to {last}"
                self.verdict.notes.append(f"The digest of {which} could not be checked without the key of the seals.")
            else:
                yield problem
        unsealed = self.verdict.events - self.verdict.sealed
        if unsealed:
            self.verdict.notes.append(
                f"{unsealed} of the events were not sealed when this was exported: nothing proves them."
            )
        if self.verdict.header.get("filters"):
            self.verdict.notes.append(
                "Filters were set. Each event is proven by itself; that none was left out rests on the file's digest."
            )


def newest(header: dict[str, Any]) -> str:
    """Name the newest seal at the time of the export, to be compared with what was noted elsewhere."""
    found = header.get("newest")
    return f"seal {found['seal']}, {str(found['digest'])[:16]}…" if found else "none"
