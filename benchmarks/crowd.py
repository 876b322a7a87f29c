"""Fills the database like a large deployment's, by COPY: ended and waiting runs, and open gates of many teams.

The rows are for lists, filters, counts and indexes. They have no checkpoints: the pages of single runs and gates are
measured on runs that a real worker brought to their gates, among these rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg

from checkpoints.postgresql import xid_offset

TEAMS = 20
DAYS = 180
ENDED = ("completed",) * 8 + ("failed", "cancelled")
NAMES = ("Marit Ellery", "Ivo Petrov", "Nadia Haddad", "Tomasz Hale", "Chiara Bruni", "Lena Vogt")


def fill(owner_url: str, *, runs: int, gates: int, model: int, crowd: list[int]) -> None:
    """Add `runs` runs, `gates` of them waiting at an open gate, to the teams `crowd`; half of the gates to the first.

    `model` is the id of a real open gate, whose card the new gates repeat under titles of their own.
    """
    dice = random.Random(20261121)
    with psycopg.connect(owner_url) as connection:
        like = _Like(connection, model)
        first = _next_id(connection, "checkpoints_run") + 1000
        when = [datetime.now(UTC) - timedelta(days=DAYS) * (1 - n / runs) for n in range(runs)]
        teams = [crowd[0] if n % 2 else crowd[n // 2 % len(crowd)] for n in range(runs)]
        waits = _spread(runs, gates)
        _copy(connection, "checkpoints_run", _runs(like, dice, first, when, teams, waits))
        _copy(connection, "approvals_gate", _gates(like, dice, first, when, teams, waits))
        connection.execute("SELECT setval(pg_get_serial_sequence('checkpoints_run', 'id'), %s)", [first + runs])
        connection.execute("SELECT setval(pg_get_serial_sequence('approvals_gate', 'id'), %s)", [first + runs])
        connection.commit()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def events(owner_url: str, upto: int) -> None:
    """Add events of long ended runs up to `upto` in total: four saved checkpoints to one other event, as in real runs.

    They come before all later events: the offset of transactions is raised first.
    """
    with psycopg.connect(owner_url) as connection:
        [[there]] = connection.execute("SELECT count(*) FROM checkpoints_event").fetchall()
        if there >= upto:
            return
        connection.execute(_EVENTS, [upto - there])
        xid_offset.raise_offset(connection, lost_ids=0)
        connection.commit()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


# To readers, each event is in a transaction of its own.
_EVENTS = """
INSERT INTO checkpoints_event (xid, kind, run_id, team_id, subject, version, actor, actor_name, data)
SELECT newest + n, CASE n %% 5 WHEN 0 THEN 'run.running' ELSE 'checkpoint.saved' END, -n / 10, 1, 'run:' || -n / 10,
    n %% 10, 'agent:relay', 'relay', '{}'
FROM generate_series(1, %s) AS n, (SELECT coalesce(max(xid), 0) AS newest FROM checkpoints_event)
"""


class _Like:
    """The plan, the policies and the card that the new rows repeat."""

    def __init__(self, connection: psycopg.Connection[Any], gate: int) -> None:
        row = connection.execute(
            "SELECT r.plan_id, g.card, g.step FROM approvals_gate g JOIN checkpoints_run r ON r.id = g.run_id"
            " WHERE g.id = %s", [gate],
        ).fetchone()  # fmt: skip
        assert row is not None, "there is no such gate to be like"
        self.plan, self.card, self.step = row
        self.policies = dict(
            connection.execute("SELECT team_id, max(id) FROM approvals_policy GROUP BY team_id").fetchall()
        )


def _spread(runs: int, gates: int) -> Callable[[int], bool]:
    """Return a test of whether the n-th run waits: every k-th one does, up to the number of gates."""
    every = max(runs // gates, 1)
    return lambda n: n % every == 0 and n // every < gates


def _runs(
    like: _Like, dice: random.Random, first: int, when: Sequence[datetime], teams: Sequence[int], waits: Any
) -> Iterator[dict[str, Any]]:
    for n, at in enumerate(when):
        status = "waiting" if waits(n) else dice.choice(ENDED)
        yield {
            "id": first + n, "lineage": first + n, "plan_id": like.plan, "team_id": teams[n],
            "title": f"Refund order {20_000 + n} for {dice.choice(NAMES)}", "status": status, "version": 4,
            "head": UUID(int=n + 1), "seq": 4, "next_step": like.step, "token": 1, "worker": "", "attempts": 0,
            "reason": "asks: a question" if status == "waiting" else "", "started_as": "system",
            "environment": b"{}", "halt": False, "settling": False, "ending": "", "ending_reason": "",
            "ending_by": "", "ending_by_name": "", "created_at": at,
            "finished_at": None if status == "waiting" else at + timedelta(minutes=3),
        }  # fmt: skip


def _gates(
    like: _Like, dice: random.Random, first: int, when: Sequence[datetime], teams: Sequence[int], waits: Any
) -> Iterator[dict[str, Any]]:
    now = datetime.now(UTC)
    for n, at in enumerate(when):
        if not waits(n):
            continue
        due = now + timedelta(minutes=dice.randrange(5, 60 * 24 * 9)) if dice.random() < 0.7 else None
        yield {
            "id": first + n, "run_id": first + n, "team_id": teams[n], "policy_id": like.policies[teams[n]],
            "checkpoint": UUID(int=n + 1), "step": like.step, "kind": "review", "status": "open", "version": 1,
            "proposal": 1, "title": f"Refund order {20_000 + n} and reply to {dice.choice(NAMES)}",
            "risk": dice.choice(("low", "medium", "medium", "high")), "card": like.card, "deadline": due,
            "opened_at": at, "closed_at": None,
        }  # fmt: skip


def _copy(connection: psycopg.Connection[Any], table: str, rows: Iterable[dict[str, Any]]) -> None:
    """COPY the rows; the first one's keys are the columns."""
    each = iter(rows)
    row = next(each)
    columns = list(row)
    with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as out:
        while row:
            out.write_row([row[column] for column in columns])
            row = next(each, {})


def _next_id(connection: psycopg.Connection[Any], table: str) -> int:
    found = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    return int(found[0]) if found else 0
