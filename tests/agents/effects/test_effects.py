"""Effects: done, provably not done and unknown told apart; never performed twice for one key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from agents import EffectFailed, EffectUnknown
from agents.effects import classify_failure, readback
from agents.models import Effect
from approvals.consequences.gate import GateImpacts
from approvals.errors import Invalid
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.moves.moved_runs import rewind
from tests.factories import change_effects
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    effects,
    failures,
    make_run,
    open_gate,
    state,
)
from tests.harness.racing_threads import meet_lock


def sent(ledger: Path) -> list[list[str]]:
    """Each request as [step, key, …]."""
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


def test_a_refused_effect_is_failed_and_a_person_may_have_it_tried_under_a_new_key(ledger: Path) -> None:
    run = advance(make_run("sender", ledger=str(ledger), ends=["failed"]))
    assert (run.status, effects(run)[0].status) == ("waiting", "failed")
    assert [choice["id"] for choice in open_gate(run).standing().card.question["choices"]] == ["retry", "stop"]  # type: ignore[index]
    answer(run, "retry")
    assert advance(run).status == "completed"
    assert [(row.status, row.generation) for row in effects(run)] == [("failed", 0), ("done", 1)]
    assert sent(ledger)[0][1] != sent(ledger)[1][1]


def test_an_effect_that_was_never_sent_is_tried_again_by_itself_under_the_same_key(ledger: Path) -> None:
    run = advance(make_run("sender", ledger=str(ledger), ends=["unsent", "unsent"]))
    assert (run.status, effects(run)[0].status) == ("queued", "failed")
    assert advance_to_rest(run).status == "completed"
    (row,) = effects(run)
    assert (row.status, row.attempts) == ("done", 3)
    assert len({key for _, key, _ in sent(ledger)}) == 1
    ledger.unlink()
    run = advance_to_rest(make_run("sender", ledger=str(ledger), ends=["unsent"] * 9))
    assert (run.status, len(sent(ledger)), len(failures(run))) == ("waiting", 3, 3)


@pytest.mark.parametrize("fate", ["failed", "unknown"])
def test_what_an_effect_says_that_cannot_be_stored_is_asked_about_all_the_same(ledger: Path, fate: str) -> None:
    """The card was refused: what had provably failed became unknown, and the runner failed over and over."""
    run = advance(make_run("sender", ledger=str(ledger), ends=[f"odd {fate}"]))
    assert (run.status, effects(run)[0].status, len(sent(ledger))) == ("waiting", fate, 1)
    assert open_gate(run).standing().card.summary == effects(run)[0].error == "a b c"


@pytest.mark.parametrize("end", ["unknown", "bug", "misfit"])
def test_an_effect_that_may_have_happened_is_not_repeated_and_a_person_is_asked(ledger: Path, end: str) -> None:
    run = advance(make_run("sender", ledger=str(ledger), ends=[end]))
    assert (run.status, effects(run)[0].status, len(sent(ledger))) == ("waiting", "unknown", 1)
    card = open_gate(run).standing().card
    assert card.question is not None
    assert effects(run)[0].key in card.question["text"]
    assert [choice["id"] for choice in card.question["choices"]] == ["happened", "not_happened", "again", "stop"]


def test_it_happened_takes_the_result_and_goes_on(ledger: Path) -> None:
    run = advance(make_run("sender", ledger=str(ledger), ends=["unknown"]))
    answer(run, "happened", {"receipt": "R-1"})
    assert advance(run).status == "completed"
    assert (state(run)["receipt"], len(sent(ledger))) == ("R-1", 1)
    assert (effects(run)[0].status, effects(run)[0].returned) == ("done", {"receipt": "R-1"})
    ledger.unlink()
    stopped = advance(make_run("sender", ledger=str(ledger), ends=["unknown"]))
    answer(stopped, "stop")
    assert (advance(stopped).status, effects(stopped)[0].status) == ("failed", "unknown")


@pytest.mark.parametrize(("choice", "status"), [("not_happened", "failed"), ("again", "abandoned")])
def test_it_did_not_happen_or_is_done_again_sends_it_under_a_new_key(choice: str, status: str, ledger: Path) -> None:
    run = advance(make_run("sender", ledger=str(ledger), ends=["unknown"]))
    answer(run, choice)
    assert advance(run).status == "completed"
    assert [(row.status, row.generation) for row in effects(run)] == [(status, 0), ("done", 1)]
    assert len({key for _, key, _ in sent(ledger)}) == 2


def test_a_guarded_effect_that_is_ordered_again_runs_on_the_answers_own_grant(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger), mode="unknown mail"))
    decide(run)
    assert advance(run).status == "waiting"
    answer(run, "again")
    assert advance(run).status == "waiting"  # the mail's line is cut again
    first, second = effects(run, "mail")
    assert (first.status, second.status) == ("abandoned", "unknown")
    assert first.grant_id != second.grant_id is not None
    with pytest.raises(Invalid):
        answer(run, "happened", {"mailed": "perhaps"})  # which does not fit the step
    answer(run, "happened", {"mailed": True})
    assert advance(run).status == "completed"
    assert [words[0] for words in sent(ledger)] == ["pay", "mail", "mail"]


def test_what_may_have_happened_is_named_where_doing_it_again_came_to_nothing(ledger: Path) -> None:
    """Once it was begun under another key, whoever agreed to do it was not told of the first, whatever came of that."""
    run = advance(make_run("payer", ledger=str(ledger), mode="unknown mail"))
    decide(run)
    advance(run)
    answer(run, "again")
    advance(run)
    first, second = effects(run, "mail")
    assert first.status == "abandoned"
    change_effects(Effect.objects.filter(pk=second.pk), status="failed")
    rewind(run, to=1, feedback="less")
    advance(run)
    gate = open_gate(run)
    for then in ("undone", ""):
        told = GateImpacts(gate, gate.standing().card, []).approve().repeats
        assert [(each.effect, each.done) for each in told if each.step == "mail"] == [(first.pk, False)]
        if then:
            change_effects(Effect.objects.filter(pk=second.pk), status=then)


def test_a_fenced_workers_late_report_settles_its_effect_and_nothing_is_sent_again(ledger: Path) -> None:
    """Its checkpoint may not land; that the effect happened is a fact all the same."""
    run = advance(make_run("sender", ledger=str(ledger), ends=["stolen"]))
    assert (run.status, run.seq) == ("queued", 1)
    assert [row.status for row in effects(run)] == ["done"]
    assert advance(run).status == "completed"
    assert (len(sent(ledger)), state(run)["receipt"]) == (1, sent(ledger)[0][1])


def test_a_late_report_answers_whoever_was_asked(ledger: Path) -> None:
    run = advance(make_run("sender", ledger=str(ledger), ends=["unknown"]))
    gate = open_gate(run)
    readback.done(effects(run)[0], {"receipt": "R-9"})
    gate.refresh_from_db()
    assert gate.status == "withdrawn"
    assert advance(run).status == "completed"
    assert (state(run)["receipt"], len(sent(ledger))) == ("R-9", 1)


def test_a_report_that_waited_for_another_change_of_its_effect_is_no_fault(ledger: Path) -> None:
    """Its statement has the row after that change, and read the events before it."""
    row = effects(advance(make_run("sender", ledger=str(ledger), ends=["unknown"])))[0]
    row.retried(token=row.token, by=SYSTEM)
    other = Effect.objects.get(pk=row.pk)
    met = meet_lock(lambda: other.unknown("gone", by=SYSTEM), lambda: row.done({"receipt": "R-9"}, by=SYSTEM))
    assert (met, row.status, row.version) == (None, "done", other.version + 1)
    row.verified()


def test_one_approval_allows_an_effect_once_and_the_second_time_asks_again(ledger: Path) -> None:
    run = advance(make_run("repeater", ledger=str(ledger)))
    decide(run)
    assert advance(run).status == "waiting"
    assert (len(sent(ledger)), open_gate(run).step, run.gates.count()) == (1, "review", 2)
    decide(run)
    assert advance(run).status == "completed"
    assert [row.occurrence for row in effects(run)] == [0, 1]
    assert len({row.key for row in effects(run)}) == len(sent(ledger)) == 2


@pytest.mark.parametrize("later", ["failed", "unsent"])
def test_a_refusal_of_a_later_attempt_proves_nothing_about_one_in_doubt(ledger: Path, later: str) -> None:
    """A timeout, then a 4xx under the same key, was filed as provably not done: "try again" paid twice."""
    run = advance_to_rest(make_run("resender", ledger=str(ledger), ends=["unknown", later, later]))
    (row,) = effects(run)
    assert (run.status, row.status, len({key for _, key, _ in sent(ledger)})) == ("waiting", "unknown", 1)
    assert "timed out" in row.error
    card = open_gate(run).standing().card
    assert [choice["id"] for choice in card.question["choices"]] == ["happened", "not_happened", "again", "stop"]  # type: ignore[index]


def test_trying_again_gives_no_permission_that_no_gate_gave(ledger: Path, settings: Any) -> None:
    """Workers died before the permission was looked for; "try again", which shows no arguments, then allowed it."""
    settings.HOLDPOINT_TIME_SLICE = 0
    run = advance(make_run("bypasser", ledger=str(ledger)))
    Run.objects.filter(pk=run.pk, next_step="act").update(attempts=9)
    gate = open_gate(advance_to_rest(run))
    assert (gate.kind, gate.step) == ("review", "review")
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert len(sent(ledger)) == 1


def test_an_http_error_is_failed_only_where_nothing_can_have_been_done() -> None:
    for error in (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol):
        found = classify_failure.classify(error("refused"))
        assert isinstance(found, EffectFailed), error
        assert found.retry == (error is not httpx.UnsupportedProtocol)
    for doubt in (httpx.ReadTimeout, httpx.WriteTimeout, httpx.ReadError, httpx.RemoteProtocolError):
        assert isinstance(classify_failure.classify(doubt("slow")), EffectUnknown), doubt
    assert classify_failure.classify(ValueError("x")) is None


def test_a_4xx_is_a_refusal_and_a_5xx_is_unknown() -> None:
    refusals, open_ends = [400, 404, 409, 422, 429], [302, 408, 500, 502, 503]
    for status in (*refusals, *open_ends):
        meaning = EffectFailed if status in refusals else EffectUnknown
        transport = httpx.MockTransport(lambda request, status=status: httpx.Response(status, text="said so"))
        with httpx.Client(transport=transport) as client, pytest.raises(meaning, match="said so"):
            classify_failure.send(client, client.build_request("POST", "http://pay.test/"))
