from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from approvals.audit import exporting
from approvals.english import count_of, noun_for
from checkpoints.actors import OPERATOR
from checkpoints.audit import database, sealer, verify_export
from checkpoints.audit.database import VerificationWalk
from checkpoints.audit.filters import AuditFilters, NoFilter
from checkpoints.events import event_proof
from checkpoints.models import Seal
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.seals.seal import read_line

SHOWN = 50  # findings that are printed; all are counted
CANNOT = 2
INTERRUPTED = 130  # the exit status of a shell


class Command(BaseCommand):
    help = "Verify the audit, here or from an export alone, and export it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verify = verbs.add_parser("verify", help="verify the seals and every event they cover, or an export")
        verify.add_argument("file", nargs="?", help="an export (JSON Lines); no database is needed then")
        verify.add_argument("--since", default="", help="begin with this seal's number or this time")
        verify.add_argument(
            "--anchors", help="a copy of the file of exported seals (default: the one in HOLDPOINT_HOME)"
        )
        verify.add_argument("--json", action="store_true", help="print the result as JSON")
        export = verbs.add_parser("export", help="export events, with proof or as a table")
        export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl", help="jsonl: with proof")
        export.add_argument("-o", "--output", help="the file to write (default: standard output)")
        export.add_argument("--texts", action="store_true", help="include people's texts that are not erased")
        for name in AuditFilters.__dataclass_fields__:
            export.add_argument(f"--{name}", default="", help="leaves the others out")

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            if verb == "export":
                self._export(**options)
            elif options["file"]:
                self._verify_file(Path(options["file"]), options["anchors"], as_json=options["json"])
            else:
                self._verify(options["since"], options["anchors"], as_json=options["json"])
        except DatabaseError as error:
            raise CommandError(f"The database cannot be read: {error}".strip(), returncode=CANNOT) from error
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}", returncode=CANNOT) from error

    def _verify(self, since: str, copy: str | None, *, as_json: bool) -> None:
        walks: list[VerificationWalk] = []
        after = self._after(since)
        found = database.verify(after=after, exported=Path(copy) if copy else None, on_step=walks.append)
        try:
            problems, count = self._shown(found, as_json=as_json)
        except KeyboardInterrupt:
            raise CommandError(_interrupted(walks), returncode=INTERRUPTED) from None
        walk, tail = walks[-1] if walks else None, sealer.tail()
        notes = []
        if tail.count:
            more = "+" if tail.count == sealer.COUNTED else ""
            late = ": is the sweeper running?" if tail.late else ", which is usual for a moment"
            notes.append(f"{tail.count}{more} {noun_for(tail.count, 'event is', 'events are')} not sealed yet{late}")
        if walk and walk.erased:
            notes.append(f"{walk.erased} texts were erased, each by an order that is in the audit")
        if not event_proof.seal_key():
            notes.append(database.NO_KEY)
        events, seals = (walk.events, walk.seals) if walk else (0, 0)
        checked = f"{count_of(events, 'event')} in {count_of(seals, 'seal')}"
        words = f"{checked} are as they were written, and so are approvals and effects."
        self._verdict(problems, count, words, notes, {"events": events, "seals": seals}, as_json=as_json)

    def _verify_file(self, path: Path, copy: str | None, *, as_json: bool) -> None:
        check = verify_export.ExportCheck(event_proof.seal_key(), anchors=_anchors(copy))
        with path.open("rb") as file:
            try:
                problems, count = self._shown(check.lines(file), as_json=as_json)
            except verify_export.NoExport as error:
                raise CommandError(str(error), returncode=CANNOT) from error
        found = check.verdict
        which = f"seals {found.first} to {found.last}" if found.seals > 1 else f"seal {found.first}"
        text = f"{found.sealed:,} of them sealed, in {which}" if found.seals else "none of them sealed"
        words = f"{count_of(found.events, 'event is', 'events are')} as they were written; {text}."
        notes = [*found.notes, f"When this was exported, the newest seal was {verify_export.newest(found.header)}"]
        data = {"events": found.events, "sealed": found.sealed, "seals": found.seals}
        self._verdict(problems, count, words, notes, data, as_json=as_json)

    def _shown(self, findings: Iterator[IntegrityProblem], *, as_json: bool) -> tuple[list[IntegrityProblem], int]:
        """Return the first findings, printed as they come, and the number of all."""
        problems, count = [], 0
        for problem in findings:
            count += 1
            if count <= SHOWN:
                problems.append(problem)
                if not as_json:
                    self.stderr.write(str(problem))
        return problems, count

    def _verdict(
        self,
        problems: list[IntegrityProblem],
        count: int,
        words: str,
        notes: list[str],
        data: dict[str, int],
        *,
        as_json: bool,
    ) -> None:
        if as_json:
            findings = [problem._asdict() for problem in problems]
            self.stdout.write(
                json.dumps({"ok": not count, **data, "faults": count, "findings": findings, "notes": notes})
            )
        else:
            for note in notes:
                self.stdout.write(f"Note: {note.rstrip('.')}.")
        if count:
            shown = f"; the first {SHOWN} are shown" if count > SHOWN else ""
            raise CommandError(f"{count} fault{'s' if count > 1 else ''} found{shown}.")
        if not as_json:
            self.stdout.write(words)

    def _after(self, since: str) -> int:
        """Return the number of the seal before the first one to check."""
        if not since:
            return 0
        if since.isascii() and since.isdigit():
            return max(int(since) - 1, 0)
        try:
            at = AuditFilters.read({"since": since}).since
        except NoFilter as error:
            raise CommandError(str(error), returncode=CANNOT) from error
        return Seal.objects.filter(at__lt=at).order_by("-pk").values_list("pk", flat=True).first() or 0

    def _export(self, *, format: str, output: str | None, texts: bool, **options: Any) -> None:
        try:
            filters = AuditFilters.read({name: options[name] for name in AuditFilters.__dataclass_fields__})
        except NoFilter as error:
            raise CommandError(str(error), returncode=CANNOT) from error
        export = exporting.prepare(filters, format=format, texts=texts, by=OPERATOR)
        with ExitStack() as stack:
            target: BinaryIO = stack.enter_context(Path(output).open("wb")) if output else sys.stdout.buffer
            for line in export.lines:
                target.write(line)
        self.stderr.write(f"{count_of(export.count, 'event')} exported.")


def _interrupted(walks: list[VerificationWalk]) -> str:
    """Say up to which seal the audit was verified before the interruption."""
    if not walks:
        return "Interrupted before any seal was checked: nothing is verified."
    walk = walks[-1]
    return (
        f"Interrupted: {walk.seals:,} seals were checked, up to seal {walk.at}; those after it, up to seal "
        f"{walk.upto}, and the file of exported seals are not verified. Go on with --since {walk.at + 1}."
    )


def _anchors(name: str | None) -> dict[int, bytes]:
    """Read the digests, by seal, from a copy of the file of exported seals."""
    if name is None:
        return {}
    with Path(name).open(encoding="utf-8", errors="replace") as file:
        return {seal.id: seal.digest for seal in map(read_line, file) if seal}
