"""Measures mails to people: five gates that two thousand reviewers each are told of, through a real SMTP server.

Each reviewer gets as many mails as one address gets one by one: more that are due together are one mail with a list.

A worker of two processes opens the gates and sends the mails, as in a small installation, and one sweeper rings. While
the mails are sent, single runs are started, and the time until their gate asks is compared with that on a quiet server.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.relays import start, until
from benchmarks.parts.scratch import Scratch
from tests.harness.services import free_port

if TYPE_CHECKING:
    from django.contrib.auth.models import User

GATES, PEOPLE = 5, 2_000
MAILS = GATES * PEOPLE
PROBES, EVERY = 40, 0.5  # single runs on a quiet server, and seconds between those beside the mails
_OPEN = "SELECT count(*) FROM approvals_gate WHERE run_id = ANY($1)"
_TOOK = """
SELECT extract(epoch FROM gate.opened_at - run.created_at)::float8 * 1000
FROM approvals_gate gate JOIN checkpoints_run run ON run.id = gate.run_id WHERE run.id = ANY($1)
"""
_SENT = """
SELECT count(*) FILTER (WHERE status = 'sent'), extract(epoch FROM max(finished_at) - min(created_at))::float8
FROM approvals_notice WHERE kind = 'asked' AND status <> 'dropped'
"""


def main() -> None:
    """Print the rate of mails, and what they cost a gate."""
    with Scratch() as scratch:
        port, taken = free_port(), scratch.home / "mails"
        scratch.environment["EMAIL_URL"] = f"smtp://127.0.0.1:{port}"
        sink = [sys.executable, "-m", "benchmarks.outside.mail_sink", str(port), str(taken)]
        scratch.service("mail_sink", sink).says("ready", within=30)
        team = make_team()
        ann = make_person("ann", team)  # starts the runs, and may not decide them
        bob = make_person("bob", make_team("Aside"))  # starts those beside the mails, of which nobody is told
        scratch.worker()
        scratch.sweeper()
        until(lambda: _sweeps(), within=30, every=0.1)
        quiet = _probed(bob, PROBES)
        _reviewers(team.pk)
        scratch.analyze()
        runs = [start(ann) for _ in range(GATES)]
        until(lambda: _opened(runs) == GATES, within=120, every=0.1)
        beside: list[float] = []
        began = time.monotonic()
        while _sent()[0] < MAILS and time.monotonic() < began + 300:
            beside += _probed(bob, 1)
            time.sleep(EVERY)
        _report(taken, quiet, beside)


def _report(taken: Path, quiet: list[float], beside: list[float]) -> None:
    """Print the marks."""
    sent, seconds = _sent()
    ids = taken.read_text().split()
    assert len(ids) == len(set(ids)), "a mail came twice"
    assert len(ids) == sent == MAILS, "a mail was not sent"
    told = {"mails": f"{sent:,}", "seconds": f"{seconds:.1f}"}
    mark(
        f"{PEOPLE} people told of {GATES} gates by e-mail: mails a minute",
        sent / seconds * 60,
        least=10_000,
        beside=told,
    )
    for share in (50, 95):
        alone = f"{percentile(quiet, share):.1f} ms"
        mark(
            f"start -> gate while mails are sent, p{share}", percentile(beside, share), "ms", beside={"without": alone}
        )


def _probed(ann: User, many: int) -> list[float]:
    """Start single runs, one after the other; return for each the milliseconds until its gate was open."""
    from checkpoints.postgresql.sql import run_sql

    runs = []
    for _ in range(many):
        runs.append(start(ann))
        until(lambda: _opened(runs[-1:]) == 1, within=60, every=0.01)
    return [took for (took,) in run_sql(_TOOK, [runs])]


def _reviewers(team: int) -> None:
    from django.contrib.auth.models import Group, User

    made = User.objects.bulk_create(
        User(username=f"reviewer-{n}", email=f"reviewer-{n}@example.org", first_name="Reviewer", last_name=str(n))
        for n in range(PEOPLE)
    )
    Group.objects.get(pk=team).user_set.add(*made)


def _opened(runs: list[int]) -> int:
    from checkpoints.postgresql.sql import run_sql

    return int(run_sql(_OPEN, [runs])[0][0])


def _sent() -> tuple[int, float]:
    from checkpoints.postgresql.sql import run_sql

    ((count, seconds),) = run_sql(_SENT, [])
    return int(count), float(seconds or 1)


def _sweeps() -> bool:
    from approvals.models import NoticeCursor

    return NoticeCursor.objects.exists()


if __name__ == "__main__":
    main()
