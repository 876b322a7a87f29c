"""A question at an open gate is answered once, by the agent's own method, which changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.definition.plan_builder import plan_of
from agents.errors import AgentError
from agents.questions import answering
from agents.questions.answering import answer
from agents.ringing import doorbell
from agents.serving.sweeper import Sweeper
from approvals.errors import Invalid
from approvals.gates import questions, remarks, thread
from approvals.models import AgentQuestion, Gate
from approvals.schema.redact import MASK
from checkpoints import actors
from checkpoints.models import Checkpoint, Event, Run
from tests.agents.questions.questioned_agents import Silent, Talker
from tests.agents.steps.killable_workers import KillableWorkers
from tests.factories import ann, bob, eve, make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness import services
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in
from tests.harness.waiting import until

Starter = Callable[..., services.Service]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What really ran, a line a call."""
    return tmp_path / "ledger"


def waiting_gate(ledger: Path, agent: str = "talker", *, quorum: int = 1, **input: Any) -> Gate:
    """An open gate of the agent, at which so many people have to agree."""
    policy = make_policy(make_team(), name="payments", quorum=quorum)
    run = advance_to_rest(make_run(agent, team=policy.team, ledger=str(ledger), **input))
    return open_gate(run)


def ask(gate: Gate, text: str = "Why seven?", key: str = "k1", by: object = None) -> AgentQuestion:
    return questions.ask(gate, by=by or ann(gate.team), text=text, key=key)  # type: ignore[arg-type]


def said(gate: Gate) -> list[tuple[str, str | None]]:
    return [(each.kind, each.text) for each in thread.of_gate(gate)]


def test_an_agent_answers_from_the_checkpoint_the_proposal_and_the_thread_and_nothing_else_changes(
    ledger: Path,
) -> None:
    gate = waiting_gate(ledger, secret="sesame-open")
    remarks.remark(gate, by=bob(gate.team), text="Too much?", key="r1")
    asked = ask(gate)
    before = (Run.objects.values().get(pk=gate.run_id), Checkpoint.objects.filter(run=gate.run).count())
    assert answer(asked.pk)
    assert not answer(asked.pk)
    assert (Run.objects.values().get(pk=gate.run_id), Checkpoint.objects.filter(run=gate.run).count()) == before
    told = f"You, Ann Okafor, asked “Why seven?”. 7, now 7. {MASK} [Bob Lindqvist: Too much?] <b>bold</b>"
    assert said(gate)[1:] == [("gate.question", "Why seven?"), ("gate.answered", told)]
    assert ledger.read_text() == "asked Why seven?\n"
    page = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "Too much?" in page
    assert "&lt;b&gt;bold" in page
    assert "<b>bold" not in page


def test_what_keeps_an_agent_from_answering_is_told_in_the_thread(ledger: Path) -> None:
    keeps = {
        "fails": "ValueError: no idea", "dumb": "It gave no words.", "keeps": "outside a running step",
        "pays": "may not call pay", "hangs": "time limit of 1 s",
    }  # fmt: skip
    for mode, words in keeps.items():
        gate = waiting_gate(ledger, mode=mode, secret="sesame-open")
        assert answer(ask(gate).pk)
        [_, (kind, text)] = said(gate)
        assert kind == "gate.unanswered"
        assert words in (text or "")
        assert "sesame" not in (text or "")
        decide(gate.run)  # the gate is as open as before
    assert "paid" not in ledger.read_text()
    assert "could not answer" in signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()


def test_a_worker_killed_while_it_answers_leaves_the_question_to_the_next_and_one_that_kills_every_worker_ends(
    ledger: Path, workers: KillableWorkers
) -> None:
    gate = waiting_gate(ledger)
    asked, deadly = ask(gate), ask(gate, key="k2")
    for point in ("question_taken", "question_answered"):
        assert workers.tell(f"question:{asked.pk} {point}:kill:1") == -9
        assert not answer(asked.pk)  # held until the dead worker's time is over
        AgentQuestion.objects.filter(pk=asked.pk).update(busy_until=Now())
    assert answer(asked.pk)
    assert [kind for kind, _ in said(gate)].count("gate.answered") == 1
    assert ledger.read_text().count("asked") == 2
    AgentQuestion.objects.filter(pk=deadly.pk).update(attempts=answering.ATTEMPTS - 1)
    assert workers.tell(f"question:{deadly.pk} question_taken:kill:1") == -9
    AgentQuestion.objects.filter(pk=deadly.pk).update(busy_until=Now())
    assert answer(deadly.pk)
    assert "stopped 3 times" in str(said(gate)[-1])


def test_a_late_answer_of_a_worker_that_was_given_up_is_not_shown(ledger: Path) -> None:
    gate = waiting_gate(ledger)
    asked = ask(gate)
    slow = AgentQuestion.objects.take(asked.pk, lease=answering.SLACK)
    AgentQuestion.objects.filter(pk=asked.pk).update(busy_until=Now())
    assert answer(asked.pk)
    assert slow is not None
    assert not questions.end(slow, "late", by=actors.of_agent("talker"), token=slow.token)
    assert [kind for kind, _ in said(gate)] == ["gate.question", "gate.answered"]


def test_of_two_workers_one_answers_and_a_form_sent_twice_at_once_asks_once(ledger: Path) -> None:
    gate = waiting_gate(ledger)
    asker = ann(gate.team)
    [asked] = set(race([lambda: ask(gate, by=asker).pk] * 4))
    assert AgentQuestion.objects.filter(gate=gate).count() == 1
    assert sorted(race([lambda: answer(asked)] * 4)) == [False, False, False, True]
    assert ledger.read_text().count("asked") == 1


def test_a_lost_doorbell_is_rung_again_by_the_sweeper(ledger: Path) -> None:
    gate = waiting_gate(ledger)
    AgentQuestion.objects.all().delete()
    asked = ask(gate)
    doorbell.client().delete("agent.talker.1")
    sweeper = Sweeper()
    assert [sweeper.ring_for_questions(), sweeper.ring_for_questions()] == [1, 0]
    assert answer(asked.pk)
    assert sweeper.ring_for_questions() == 0


def test_a_closed_gate_takes_no_question_and_one_that_was_open_is_left(ledger: Path) -> None:
    gate = waiting_gate(ledger)
    asked = ask(gate)
    decide(gate.run)
    assert not answer(asked.pk)
    with pytest.raises(Invalid, match="closed"):
        ask(gate, key="k2")
    page = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "closed before an answer came" in page


def test_an_agent_without_the_method_is_not_asked(ledger: Path) -> None:
    gate = waiting_gate(ledger, "silent")
    browser = signed_in(ann(gate.team))
    page = browser.get(f"/gates/{gate.pk}/").content.decode()
    assert "This agent takes no questions." in page
    assert f"/gates/{gate.pk}/questions/" not in page
    assert browser.post(f"/gates/{gate.pk}/questions/", {"text": "Why?", "key": "k"}).status_code == 422
    assert not AgentQuestion.objects.filter(gate=gate).exists()


def test_questions_are_counted_and_an_outsider_asks_none(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = waiting_gate(ledger)
    assert signed_in(eve()).post(f"/gates/{gate.pk}/questions/", {"text": "Why?", "key": "k"}).status_code == 404
    reader = make_user("Rita", gate.team)
    for key in ("k1", "k1", "k2", "k3"):
        assert signed_in(reader).post(f"/gates/{gate.pk}/questions/", {"text": "Why?", "key": key}).status_code == 303
    with pytest.raises(Invalid, match="3 questions here have no answer"):
        ask(gate, key="k4")
    for each in gate.questions.all():
        answer(each.pk)
    monkeypatch.setattr(questions, "MOST", 3)
    with pytest.raises(Invalid, match="which is the most"):
        ask(gate, key="k4")
    assert Event.objects.filter(subject=gate.subject, kind="gate.question").count() == 3


@pytest.mark.long
def test_a_real_worker_answers_and_the_page_shows_it(ledger: Path, celery_worker: Starter) -> None:
    gate = waiting_gate(ledger)
    browser = signed_in(ann(gate.team))
    celery_worker()
    browser.post(f"/gates/{gate.pk}/questions/", {"text": "Why seven?", "key": "k"})
    until(lambda: "asked “Why seven?”" in browser.get(f"/gates/{gate.pk}/status/").content.decode(), what="the answer")


def test_a_method_that_reads_what_is_no_field_is_refused() -> None:
    class Strange(Talker):
        name = "strange"

        def answer(self, question: object, weather: str) -> str:  # type: ignore[override]
            return weather

    with pytest.raises(AgentError, match="reads weather, which is not a field"):
        plan_of(Strange)
    assert plan_of(Talker).steps == plan_of(Silent).steps, "a plan is the same with and without the method"
