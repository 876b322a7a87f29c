"""An export proves itself elsewhere, by its lines and the key alone; a spreadsheet shows one and runs none of it."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from approvals.audit import exporting
from checkpoints.actors import OPERATOR, Actor
from checkpoints.audit import database, verify_export
from checkpoints.audit.export import END
from checkpoints.audit.filters import AuditFilters
from checkpoints.events import event_log
from checkpoints.events.event_log import Entry
from checkpoints.models import Event
from tests.checkpoints.audit.sealed_events import forged, seal_all, three
from tests.factories import unique
from tests.harness import horizon
from tests.harness.examples import first_alone
from tests.harness.services import run
from tests.harness.session import ROOT

pytestmark = pytest.mark.whole_database
KEY = b"seals of the tests: 0123456789-abcdef"
Lines = list[dict[str, Any]]


def exported(*, texts: bool = False, **filters: str) -> list[bytes]:
    asked = AuditFilters.read(filters)
    return list(exporting.prepare(asked, format="jsonl", texts=texts, by=OPERATOR).lines)


def checked(lines: list[bytes], *, key: bytes = KEY, **more: Any) -> tuple[list[str], verify_export.ExportVerdict]:
    check = verify_export.ExportCheck(key, **more)
    return [str(problem) for problem in check.lines(lines)], check.verdict


def changed(lines: list[bytes], change: Callable[[Lines], Any], *, key: bytes = KEY) -> list[bytes]:
    """The export with a change, and the end made anew as somebody would who has this key."""
    said = [json.loads(line) for line in lines]
    change(said)
    body = [json.dumps(each, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for each in said[:-1]]
    digest = hashlib.sha256(b"".join(body)).digest()
    end = said[-1]["end"] | {
        "sha256": digest.hex(),
        "hmac": hmac.digest(key, END + digest, "sha256").hex() if key else None,
    }
    return [*body, json.dumps({"end": end}).encode() + b"\n"]


def line_of(said: Lines, event: Event) -> dict[str, Any]:
    return next(each for each in said if each.get("event") == event.pk)


def test_what_was_exported_verifies_whole_and_filtered() -> None:
    one, _, _, seal = three()
    found, verdict = checked(exported())
    assert found == []
    assert verdict.events == verdict.sealed > 3
    found, verdict = checked(exported(subject=one.subject))
    assert found == []
    assert (verdict.events, verdict.sealed, verdict.first, verdict.last) == (1, 1, seal.pk, seal.pk)
    assert any("Filters were set" in note for note in verdict.notes)


def test_each_line_holds_the_event_exactly_and_no_text_unless_it_was_asked_for() -> None:
    _, spoken, _, seal = three()
    (line,) = [json.loads(line) for line in exported(subject=spoken.subject) if b'"event"' in line]
    assert (line["event"], line["kind"], line["actor"], line["data"]) == (spoken.pk, "test.said", "user:7", {"n": 1})
    assert line["index"] == 1
    assert seal.count == 3
    assert "text" not in line
    lines = exported(subject=spoken.subject, texts=True)
    assert b'"words":"a secret"' in b"".join(lines)
    assert checked(lines)[0] == []
    found, _ = checked(changed(lines, lambda said: line_of(said, spoken)["text"].update(words="another")))
    assert found == [f"event {spoken.pk}: the text of event {spoken.pk} is not what was written"]


@pytest.mark.parametrize(
    ("filtered", "field", "value", "said"),
    [
        (False, "actor", "user:8", "its actor is"),
        (True, "data", {"n": 2}, "its data is"),
        (False, "at", "2020-01-01T00:00:00+00:00", "its time is"),
        (True, "text_digest", None, "the digest of its text is"),
    ],
)
def test_an_event_altered_in_the_file_is_named_even_by_somebody_with_the_key(
    filtered: bool, field: str, value: object, said: str
) -> None:
    _, event, _, _ = three()
    lines = exported(subject=event.subject) if filtered else exported()
    found, _ = checked(changed(lines, lambda all: line_of(all, event).update({field: value})))
    assert [each for each in found if f"{said} not what was sealed" in each and f"event {event.pk}:" in each] == found


def test_an_event_altered_with_its_mark_still_does_not_lead_to_the_root() -> None:
    _, event, _, seal = three()
    whole, one = exported(), exported(subject=event.subject)

    def change(said: Lines) -> None:
        from checkpoints.audit import export
        from checkpoints.seals import leaves

        line = line_of(said, event)
        line["actor"] = "user:8"
        row = export.from_json(line).row
        line["mark"] = (leaves.compute_leaf(row) + leaves.compute_tags(row)).hex()

    found, _ = checked(changed(whole, change))
    assert found == [f"seal {seal.pk}: its events do not lead to its root: they are not what was sealed"]
    found, _ = checked(changed(one, change))
    assert found == [f"event {event.pk}: (test.said) is not what seal {seal.pk} covers at its place"]


def test_an_event_removed_moved_or_slipped_in_is_named_by_its_place() -> None:
    one, event, _, seal = three()

    def remove(said: Lines) -> None:
        said.remove(line_of(said, event))
        said[-1]["end"]["events"] -= 1

    found, _ = checked(changed(exported(), remove))
    assert found == [
        f"seal {seal.pk}: the event that stood at place 1 after event {one.pk} was removed from the export"
    ]

    def swap(said: Lines) -> None:
        a, b = said.index(line_of(said, one)), said.index(line_of(said, event))
        said[a], said[b] = said[b], said[a]

    found, _ = checked(changed(exported(), swap))
    assert any(f"event {one.pk}: (line" in each and "the order was changed" in each for each in found)

    def insert(said: Lines) -> None:
        at = said.index(line_of(said, event))
        said.insert(at, line_of(said, event) | {"event": event.pk, "xid": event.xid - 1, "index": None})
        said[-1]["end"]["events"] += 1

    found, _ = checked(changed(exported(since=event.at.isoformat()), insert))
    assert any("was slipped in" in each and f"seal {seal.pk}" in each for each in found), found


def test_a_file_that_was_cut_or_whose_seals_were_made_again_is_found() -> None:
    three()
    lines = exported()
    assert "the end: is missing: the file was cut off" in checked(lines[:-1])[0]
    found, _ = checked([*lines[:-1], lines[-1][:20]])
    assert f"line {len(lines)}: cannot be read: it was altered or cut" in found
    assert f"line {len(lines) + 1}: stands after the end" in checked([*lines, lines[-2]])[0]
    *_, seal = three()
    assert checked(exported(), anchors={seal.pk: bytes(seal.digest)})[0] == []
    found, _ = checked(exported(), anchors={seal.pk: bytes(32)})
    assert found == [f"seal {seal.pk}: is not the one that was exported then: it was made again"]


def test_a_seal_that_was_altered_removed_or_swapped_is_named() -> None:
    *_, seal = three()
    lines = exported()

    def line(said: Lines) -> dict[str, Any]:
        return next(each for each in said if each.get("seal") == seal.pk)

    found, _ = checked(changed(lines, lambda said: line(said).update(at="2020-01-01T00:00:00+00:00")))
    assert found == [f"seal {seal.pk}: was made with another key, or its columns do not match its digest"]
    found, _ = checked(changed(lines, lambda said: said.remove(line(said))))
    assert any(each.startswith(f"seal {seal.pk + 1}: does not follow seal {seal.pk - 1}") for each in found)


def test_without_the_key_it_says_what_could_not_be_checked_and_with_another_refuses_every_seal() -> None:
    _, event, _, _ = three()
    found, verdict = checked(exported(), key=b"")
    assert found == []
    assert len([note for note in verdict.notes if "key" in note]) == 2
    altered = changed(exported(), lambda said: line_of(said, event).update(actor="user:8"))
    found, _ = checked(altered, key=b"")
    assert found == [f"event {event.pk}: was altered: its actor is not what was sealed"]
    three()
    found, _ = checked(exported(), key=b"another")
    assert any("made with another key" in each for each in found)
    assert any(each.startswith("the file: was not made with this key") for each in found)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[]\n", "This is no export"),
        (b'{"holdpoint":"audit export","format":99,"filters":{}}\n', "This export has format 99"),
        (b"\xff\n", "This is no export"),
    ],
)
def test_what_is_no_export_is_refused_with_the_reason(line: bytes, said: str) -> None:
    """JSON that is none was refused without a word."""
    with pytest.raises(verify_export.NoExport, match=said):
        list(verify_export.ExportCheck(KEY).lines([line]))


def elsewhere(*arguments: str, home: Path, **variables: str) -> Any:
    """The command as on another machine: no database, no Redis, nothing set."""
    ours = ("HOLDPOINT_", "DATABASE_", "REDIS_", "DJANGO_", "HPTEST_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    said = [f"{name}={value}" for name, value in (clean | variables | {"HOLDPOINT_HOME": str(home)}).items()]
    return run("env", "-i", *said, sys.executable, str(ROOT / "manage.py"), "audit", *arguments)


@pytest.mark.parametrize("count", first_alone([2_100, 10_000]))
def test_thousands_of_events_are_exported_and_verified_elsewhere_by_the_command(tmp_path: Path, count: int) -> None:
    team = 700_000 + os.getpid() + count
    by = Actor("user:7", "Ann")
    event_log.append_events(
        [Entry(kind="test.said", subject=f"test:{n}", by=by, team_id=team, data={"n": n}) for n in range(count)]
    )
    seal_all()
    file = tmp_path / "audit.jsonl"
    call_command("audit", "export", "-o", str(file), "--team", str(team))
    done = elsewhere("verify", str(file), home=tmp_path, HOLDPOINT_SEAL_KEY=KEY.decode())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count:,} events are as they were written" in done.stdout
    lines = file.read_bytes().splitlines(keepends=True)
    at = len(lines) // 2
    lines[at] = lines[at].replace(b'"actor":"user:7"', b'"actor":"user:8"')
    assert any(each.startswith(f"event {json.loads(lines[at])['event']}:") for each in checked(lines)[0])


def test_the_database_is_verified_by_the_command_which_says_what_is_wrong_and_how_much(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, event, _, _ = three()

    def told(*arguments: str) -> tuple[int, Any]:
        capsys.readouterr()
        try:
            call_command("audit", "verify", "--json", *arguments)
        except CommandError as error:
            return error.returncode, json.loads(capsys.readouterr().out or "null")
        return 0, json.loads(capsys.readouterr().out)

    code, said = told()
    assert (code, said["ok"]) == (0, True)
    with forged(f"UPDATE checkpoints_event SET actor = 'user:8' WHERE id = {event.pk}"):
        code, said = told()
        assert (code, said["ok"], said["findings"][0]["subject"]) == (1, False, f"event {event.pk}")
        assert told("--since", str(database.begin().upto))[0] == 0
    assert told("--since", "last week")[0] == told("--anchors", "/nowhere")[0] == 2


def test_no_line_holds_what_a_terminal_obeys_or_a_reader_takes_for_the_end_of_a_line() -> None:
    """JSON leaves U+0080 to U+009F and U+2028 as they are: `\\x9b2J` in a name cleared the screen that showed it."""
    odd = "".join(map(chr, [*range(0x7F, 0xA0), 0x2028, 0x2029, 0x202E, 0x2066])) + "é"
    with transaction.atomic():
        event_log.record(
            "test.said", subject=(subject := f"test:{secrets.token_hex(8)}"), by=Actor("user:7", odd), data={"n": odd},
            text=odd,
        )  # fmt: skip
    seal_all()
    lines = exported(subject=subject, texts=True)
    text = b"".join(lines).decode()
    assert not set(odd[:-1]) & set(text)
    assert len(text.splitlines()) == len(lines)
    assert "é" in text
    assert checked(lines)[0] == []
    (line,) = [json.loads(line) for line in lines if b'"event"' in line]
    assert (line["actor_name"], line["data"], line["text"]["words"]) == (odd, {"n": odd}, odd)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("\uff1d1", "'\uff1d1"),
        ("\n=1", "'\\u000a=1"),
        ("a;=1", "a;'=1"),
        ("a\t=1", "a\\u0009'=1"),
        ('a;"=1', "a;\"'=1"),
        ('""=1', '""\'=1'),
        ("\ufeff\u200b=1", "\ufeff\u200b'=1"),
        ("a=1", "a=1"),
        ("two\r\nlines", "two\\u000d\\u000alines"),
        ("\u202eevil", "\\u202eevil"),
        ("Grüße", "Grüße"),
    ],
)
def test_a_value_is_shown_and_never_run(value: str, shown: str) -> None:
    """Behind a semicolon and a quote one was run: where the cell is split, the quote is an empty one's, and is gone."""
    assert exporting.safe(value) == shown


def test_the_file_is_read_back_row_by_row_whatever_is_in_it() -> None:
    name, subject = unique('=cmd|"/c calc"!A1\r\n2026,forged'), unique("test:csv")
    event_log.record("test.said", subject=subject, by=Actor("user:7", name), data={"a": "=1", "b": "x\ny"})
    horizon.reached()
    export = exporting.prepare(AuditFilters(subject=subject), format="csv", texts=False, by=Actor("user:1", "Ann"))
    data = b"".join(export.lines)
    assert data.startswith(b'\xef\xbb\xbf"time (UTC)"')
    head, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    assert tuple(head) == exporting.COLUMNS
    (row,) = rows
    assert (len(row), row[head.index("who")][:5]) == (len(head), "'=cmd")
    assert data.count(b"\r\n") == data.count(b"\n") == 2
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in row)
