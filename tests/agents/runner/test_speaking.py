"""What a step says while it runs: shown as long as it does, by whoever holds the run, and never in the way."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection
from pydantic import BaseModel, SecretStr

from agents import Agent, Retry, step
from agents.definition.agent import RunInfo
from agents.models import Spoken
from agents.models.step_checkpoint import SpokenQuerySet
from agents.steps.mid_step import LONGEST
from checkpoints.models import Run
from checkpoints.store import claims
from config.housekeeping import clear_drafts
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state
from tests.harness.known_agents import fixtures_of
from tests.harness.sent_statements import sent


class Speaker(Agent):
    """Says things, and notes what a page would have been shown."""

    name = "speaker"

    class State(BaseModel):
        mode: str = ""
        secret: SecretStr = SecretStr("hunter2-hunter2")
        shown: list[str] = []

    @step(backoff=0)
    def speak(self, mode: str) -> dict[str, Any]:
        """Say something, look at what is shown, and say more at once, which is passed over."""
        words = {
            "secret": "It is hunter2-hunter2.", "odd": "a\0b\ud800", "long": "x" * 30_000 + "end",
            "unfinished": "It is hunter2-hun", "cut": "It is hunter2-hunter2" + "x" * (LONGEST - 8),
        }  # fmt: skip
        self.progress(words.get(mode, f"attempt {self.attempt}"))
        self.progress("too soon after that")
        shown = [f"{each.step} {each.attempt}: {each.text}" for each in Spoken.objects.filter(run=self.run.id)]
        if mode == "fails once" and self.attempt == 1:
            raise Retry("Once more.")
        return {"shown": shown}

    @step
    def keep_quiet(self, shown: list[str]) -> None:
        """Say nothing."""


own_agents, workers = fixtures_of(__name__)


def test_a_step_is_heard_while_it_runs_starts_over_with_each_attempt_and_is_gone_when_it_has_ended() -> None:
    run = make_run("speaker", mode="fails once")
    assert advance(run).status == "queued"
    assert not Spoken.objects.filter(run=run).exists()
    with sent() as statements:
        assert advance_to_rest(run).status == "completed"
    assert state(run)["shown"] == ["speak 2: attempt 2"]
    assert not Spoken.objects.filter(run=run).exists()
    assert len([each for each in statements if "agents_spoken" in each]) <= 3  # said, read by the test's own step, gone


@pytest.mark.parametrize(("mode", "plain"), [("secret", "It is"), ("unfinished", "It is "), ("cut", "x" * 100)])
def test_no_part_of_a_secret_of_the_state_is_shown_whole_or_not(mode: str, plain: str) -> None:
    """All but its last characters stood there until those came, and its end where a long text was cut."""
    [shown] = state(advance_to_rest(make_run("speaker", mode=mode)))["shown"]
    assert plain in shown
    assert not [part for part in ("hun", "ter2") if part in shown]


def test_what_no_text_column_takes_is_shown_as_replaced_and_a_long_text_by_its_end() -> None:
    [odd] = state(advance_to_rest(make_run("speaker", mode="odd")))["shown"]
    assert odd == "speak 1: a\ufffdb?"
    [long] = state(advance_to_rest(make_run("speaker", mode="long")))["shown"]
    assert len(long) < 21_000
    assert long.endswith("xend")


def test_a_worker_that_lost_the_run_is_not_heard_any_more() -> None:
    run = make_run("speaker")
    stale = claims.claim(run.pk, plan_ids=[run.plan_id], worker="stale", lease=10)
    assert stale is not None
    run.refresh_from_db()
    said: Any = {"base": run.head, "step": "speak", "attempt": 1}
    assert run.head is not None
    assert Spoken.objects.say(run.pk, token=stale.token, text="mine", **said)
    spoken = Spoken.objects.of(run)
    assert spoken is not None
    assert spoken.text == "mine"
    Run.objects.filter(pk=run.pk).update(token=stale.token + 1)
    run.refresh_from_db()
    assert Spoken.objects.of(run) is None
    assert not Spoken.objects.say(run.pk, token=stale.token, text="still mine", **said)
    assert Spoken.objects.say(run.pk, token=run.token, text="theirs", **said)
    Spoken.objects.forget(run.pk, token=stale.token)
    spoken = Spoken.objects.of(run)
    assert spoken is not None
    assert spoken.text == "theirs"


def test_a_database_that_does_not_take_it_costs_the_step_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*args: Any, **more: Any) -> bool:
        raise DatabaseError("lost")

    monkeypatch.setattr(SpokenQuerySet, "say", lost)
    assert advance_to_rest(make_run("speaker")).status == "completed"
    # Outside a running step nobody hears it.
    assert Speaker(RunInfo(1, "one"), 1).progress("anybody?") is None  # type: ignore[func-returns-value]
    assert not Spoken.objects.filter(run=1, text="anybody?").exists()


def test_what_a_killed_worker_left_behind_is_cleared_after_an_hour() -> None:
    run = make_run("speaker")
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="killed", lease=10)
    assert claim is not None
    assert run.head is not None
    Spoken.objects.say(run.pk, token=claim.token, base=run.head, step="speak", attempt=1, text="last words")
    clear_drafts()
    assert Spoken.objects.filter(run=run).exists()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agents_spoken SET at = at - interval '61 minutes' WHERE run_id = %s", [run.pk])
    clear_drafts()
    assert not Spoken.objects.filter(run=run).exists()
