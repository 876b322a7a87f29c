"""Real workers, a real sweeper, a real Redis and a real mail server: told after the commit, killed in the middle."""

from __future__ import annotations

from email.message import EmailMessage

import pytest
import redis

from approvals.models import Gate
from tests.conftest import Starter
from tests.factories import ann, make_gate, make_team
from tests.harness.examples import first_alone
from tests.harness.waiting import until

from .mail_server import MailServer, text_of
from .told import abandoned, rows


@pytest.fixture(autouse=True)
def no_old_bells(redis_url: str) -> None:
    redis.Redis.from_url(redis_url).flushall()


LONG = 240  # seconds: the sweeper first ends what thousands of other tests left open


def about(gate: Gate, mails: MailServer) -> list[EmailMessage]:
    """The mails about a gate: the sweeper also ends what other tests left open, of which people are told."""
    return [mail for mail in mails.mails if f"/gates/{gate.pk}/" in text_of(mail)]


@pytest.mark.parametrize(
    ("place", "arrived"), first_alone([("notices_sent", 2), ("notices_taken", 1), ("notices_written", 1)])
)
def test_a_worker_killed_in_the_middle_loses_nothing_and_a_second_copy_has_the_same_id(
    place: str, arrived: int, mails: MailServer, celery_worker: Starter, sweeper: Starter
) -> None:
    to_here = {"EMAIL_URL": f"smtp://127.0.0.1:{mails.port}"}
    dies = celery_worker("-c", "1", "--pool", "solo", env={**to_here, "HOLDPOINT_CRASH": f"{place}:kill"})
    sweeper()
    team = make_team()
    ann(team)
    gate = make_gate(team=team)
    until(lambda: not dies.alive, what="the worker was killed")
    abandoned()
    celery_worker("-c", "1", env=to_here)
    until(lambda: [each[2] for each in rows(gate)] == ["sent"], within=LONG, what="another worker sent it")
    sent = about(gate, mails)
    assert len(sent) == arrived
    assert len({mail["Message-ID"] for mail in sent}) == 1
