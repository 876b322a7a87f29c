"""A refused output goes back to its step, then to whoever made its inputs, ring by ring, then to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Failure
from agents.moves import fork as forks
from checkpoints import store
from checkpoints.audit import verify_runs
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.factories import ann
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
    trail,
)
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import form_of, post, signed_in

from .killable_workers import KillableWorkers, go_on


def ran(ledger: Path) -> list[str]:
    return [line.split()[0] for line in ledger.read_text().splitlines()]


def refused(run: Run) -> list[tuple[str, str, int]]:
    """(validator, step, ring) of every refusal."""
    return [(each.validator, each.step, each.ring) for each in failures(run)]


def test_a_refused_output_is_no_checkpoint_and_its_step_runs_again_with_the_validators_words(ledger: Path) -> None:
    run = advance(make_run("drafter", ledger=str(ledger)))
    assert (run.status, state(run)["draft"]) == ("completed", 1)
    assert trail(run) == [("input", "input"), ("repair", "write"), ("step", "write"), ("step", "send")]
    assert state(run)["feedback"] == [{"text": "0 is less than 1 \0", "by": "enough", "gate": 0}]
    assert refused(run) == [("enough", "write", 0)]
    assert failures(run)[0].error == "0 is less than 1"
    assert (failures(run)[0].base, failures(run)[0].seq) == (Checkpoint.objects.get(run=run, seq=1).id, 1)
    assert verify_runs.verify_run(run) == []
    event = Event.objects.get(run_id=run.pk, kind="step.refused")
    assert decode_canonical(bytes(event.data)) == {"step": "write", "validator": "enough", "ring": 0, "attempt": 1}


def test_validators_judge_what_would_be_saved_whatever_the_step_says_of_it(ledger: Path) -> None:
    run = advance(make_run("drafter", ledger=str(ledger), mode="lie"))
    assert run.status == "waiting"
    assert (state(run)["draft"], state(run)["claim"]) == (-1, "")
    assert refused(run) == [("enough", "write", 0), ("enough", "write", 1)]


def test_every_validator_says_its_words_and_the_output_counts_as_refused_once(ledger: Path) -> None:
    run = advance(make_run("drafter", ledger=str(ledger), mode="even", floor=2))
    # 0: too little. 1, after one word: too little and odd. No producer to go further back to: a person.
    assert refused(run) == [("enough", "write", 0), ("enough", "write", 1), ("even", "write", 1)]
    assert open_gate(run).standing().card.summary == "enough: 1 is less than 2 \0\neven: 1 is odd\nmake it even"
    row = Failure.objects.get(run=run, validator="even")
    assert bytes(row.traceback).decode() == "1 is odd\nmake it even"  # which a page may read as a whole


def test_a_validator_that_raises_or_says_neither_words_nor_nothing_fails_the_step(ledger: Path) -> None:
    run = advance(make_run("drafter", ledger=str(ledger), mode="raise"))
    assert (run.status, state(run)["draft"]) == ("queued", -1)
    assert advance(run).status == "waiting"
    assert [(each.error, each.validator) for each in failures(run)] == [("ValueError: the judge is ill", "")] * 2
    run = advance(make_run("drafter", ledger=str(ledger), mode="odd answer"))
    assert (run.status, len(failures(run))) == ("waiting", 1)
    assert failures(run)[0].error.endswith("The validator enough returned 7; it returns None, a text or texts.")


def test_a_step_without_a_list_for_words_reads_them_from_the_runtime_as_often_as_each_ring_is_tried() -> None:
    run = advance(make_run("mute"))
    assert (run.status, state(run)["guess"]) == ("completed", 2)
    assert state(run)["heard"] == ["over"]  # until it is accepted
    heard = Checkpoint.objects.get(run=run, kind="step", step="think")
    assert store.load_checkpoint(heard.id).state["heard"] == ["0 is not 2", "1 is not 2"]
    run = advance(make_run("mute", floor=9))
    assert (run.status, refused(run)) == ("waiting", [("enough", "think", 0)] * 3 + [("enough", "think", 1)])


def test_the_next_ring_runs_the_producer_and_reuses_what_the_repair_does_not_touch(ledger: Path) -> None:
    run = advance(make_run("builder", ledger=str(ledger)))
    assert (run.status, state(run)["product"]) == ("completed", 2)
    assert ran(ledger) == ["start", "shape", "other", "order", "build", "build", "shape", "build"]
    assert trail(run)[1:] == [
        ("step", "start"), ("step", "shape"), ("gate", "review"), ("step", "other"), ("step", "order"),
        ("repair", "build"),
        ("repair", "build"), ("step", "shape"), ("reused", "review"), ("reused", "other"), ("reused", "order"),
        ("step", "build"),
    ]  # fmt: skip
    assert verify_runs.verify_run(run) == []
    assert [row.status for row in effects(run)] == ["done"]
    assert (ran(ledger).count("order"), ran(ledger).count("cancel")) == (1, 0)
    assert state(run)["receipt"] == effects(run)[0].key
    assert [(each["by"], each["text"]) for each in state(run)["feedback"]] == [("fits", "0 is less than 2")] * 2


def test_the_ring_after_that_runs_the_producers_producer(ledger: Path) -> None:
    run = advance(make_run("builder", ledger=str(ledger), fault="first", floor=3))
    assert (run.status, state(run)["product"]) == ("completed", 3)
    assert refused(run) == [("fits", "build", ring) for ring in (0, 1, 2)]
    assert ran(ledger) == [
        "start", "shape", "other", "order", "build", "build", "shape", "build", "start", "shape", "build",
    ]  # fmt: skip


def test_past_the_last_ring_a_person_reads_who_refused_and_why_and_may_take_it_as_it_is_shown(ledger: Path) -> None:
    run = advance(make_run("builder", ledger=str(ledger), floor=1000))
    assert (run.status, refused(run)) == ("waiting", [("fits", "build", ring) for ring in (0, 1, 2, 3)])
    card = open_gate(run).standing().card
    assert card.title.startswith("The result of “Build” was refused")
    assert card.summary == "fits: 3 is less than 1000"
    assert card.reasons == ("What “Build” returned did not pass “Fits”",)
    assert [choice["id"] for choice in card.question["choices"]] == ["retry", "accept", "skip", "stop"]  # type: ignore[index]
    assert card.action("returned").arguments == {"product": 3}  # type: ignore[union-attr]
    gate, reviewer = open_gate(run), ann(run.team)
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    for words in (card.summary, "Accept what “Build” returned", "What “Build” returned", ">product<"):
        assert words in page
    assert post(reviewer, gate, form_of(gate, "answer", answer="accept")).status_code == 303
    assert advance(run).status == "completed"
    assert (state(run)["product"], trail(run)[-1]) == (3, ("step", "build"))
    assert ran(ledger).count("build") == 4


def test_a_refused_output_that_is_too_large_to_show_cannot_be_taken(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.steps.repair.SHOWN", 5)
    run = advance(make_run("builder", ledger=str(ledger), floor=1000))
    card = open_gate(run).standing().card
    assert [choice["id"] for choice in card.question["choices"]] == ["retry", "skip", "stop"]  # type: ignore[index]
    assert card.actions == ()


def test_a_person_who_has_it_tried_again_starts_the_count_anew_and_passes_the_words_on(ledger: Path) -> None:
    run = advance(make_run("drafter", ledger=str(ledger), floor=3))
    assert (run.status, len(state(run)["feedback"])) == ("waiting", 1)
    answer(run, "retry")
    advance(run)
    assert (run.status, state(run)["draft"]) == ("completed", 3)
    assert [each["text"][:1] for each in state(run)["feedback"]] == ["0", "1", "2"]
    run = advance(make_run("drafter", ledger=str(ledger), floor=9))
    answer(run, "skip")
    assert advance(run).status == "completed"
    assert (state(run)["draft"], state(run)["sent"]) == (-1, False)


def test_a_repair_goes_back_over_no_effect_and_no_gate_to_what_was_before_them(ledger: Path) -> None:
    run = advance(make_run("sided", ledger=str(ledger)))
    decide(run, "edit", arguments={"buy": 5})
    advance(run)
    # `bought` is the effect's and `amount` the reviewer's: nobody's input is made by a step that may run again.
    assert (run.status, refused(run)) == ("waiting", [("never", "build", 0), ("never", "build", 1)])
    assert ran(ledger) == ["propose", "buy", "build", "build"]
    assert state(run)["amount"] == 5


def test_a_repair_never_goes_back_past_a_persons_sending_back(ledger: Path) -> None:
    run = advance(make_run("builder", ledger=str(ledger), fault="asked", floor=1000))
    decide(run, "reject", then="back", back_to="shape")
    advance(run)
    decide(run)
    assert advance_to_rest(run).status == "waiting"
    assert open_gate(run).kind == "recovery"
    assert refused(run) == [("fits", "build", ring) for ring in (0, 1, 2)]
    assert ran(ledger) == ["start", "shape", "shape", "other", "order", "build", "build", "shape", "build"]


def test_a_repair_in_a_fork_asks_rather_than_go_back_past_where_somebody_forked_it(ledger: Path) -> None:
    run = advance(make_run("builder", ledger=str(ledger)))
    assert run.status == "completed"
    shaped = Checkpoint.objects.filter(run=run, step="shape").order_by("seq")[0]
    patch = [{"op": "replace", "path": "/floor", "value": 1000}]
    fork = advance(forks.fork(run, at=shaped.seq, by=ann(run.team), patch=patch))
    answer(fork, "take")
    advance(fork)
    assert (fork.status, open_gate(fork).step) == ("waiting", "build")
    assert [ring for _, _, ring in refused(fork)] == [0, 1, 2], "to other, which ran in the fork, and no further"
    assert verify_runs.verify_run(fork) == []


def test_a_repair_goes_back_over_what_cannot_be_undone_only_where_it_is_not_done_again(ledger: Path) -> None:
    """It was told twice, on the word of a validator alone."""
    run = advance_to_rest(make_run("told", ledger=str(ledger)))
    assert ran(ledger) == ["make", "tell"]
    assert (run.status, open_gate(run).kind, open_gate(run).step) == ("waiting", "recovery", "check")
    answer(run, "accept")
    assert advance_to_rest(run).status == "completed"
    assert ran(ledger) == ["make", "tell"]
    ledger.unlink()
    run = advance_to_rest(make_run("announced", ledger=str(ledger)))  # what it tells is taken over
    assert (run.status, ran(ledger)) == ("completed", ["make", "tell", "make"])
    assert ("reused", "tell") in trail(run)


@pytest.mark.parametrize(("place", "hit"), first_alone([("before_repair@build", 2), ("before_save@shape", 2)]))
def test_a_worker_killed_in_a_repair_has_refused_nothing_twice(
    place: str, hit: int, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("builder", ledger=str(ledger), fault="first", floor=3)
    workers.kill(run, place, hit)
    go_on(run)
    assert (run.status, state(run)["product"]) == ("completed", 3)
    assert refused(run) == [("fits", "build", ring) for ring in (0, 1, 2)]
    assert [kind for kind, _ in trail(run)].count("repair") == 3
    assert [row.status for row in effects(run)] == ["done"]
    assert ledger.read_text().count("order") == 1
    assert verify_runs.verify_run(run) == []


def test_a_worker_killed_when_it_asks_a_person_asks_once_and_one_killed_in_every_repair_ends_there(
    ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("drafter", ledger=str(ledger), floor=2)
    workers.kill(run, "after_gate@write")
    go_on(run)
    assert (run.status, run.gates.count(), len(failures(run))) == ("waiting", 1, 2)
    answer(run, "accept")
    assert go_on(run).status == "completed"
    assert state(run)["draft"] == 1
    run = make_run("drafter", ledger=str(ledger))
    for _ in range(2):
        workers.kill(run, "before_repair@write")
        Run.objects.filter(pk=run.pk).update(lease_until="2000-01-01T00:00:00Z")
    go_on(run)
    assert (run.status, open_gate(run).step) == ("waiting", "write")
    assert "2 workers died in this step" in failures(run)[0].error
