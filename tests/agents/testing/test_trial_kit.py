"""The kit for authors: what each answer does to a run, what can be read of it, and what it says when it is misused."""

from __future__ import annotations

import pytest

from agents.definition import registry
from agents.errors import AgentError, InputRefused
from agents.testing import Trial, TrialStuck
from approvals.errors import DecisionRefused
from tests.agents.testing import trial_agents
from tests.agents.testing.trial_agents import SENT, Apart, Later, Letters, Wrong


@pytest.fixture(autouse=True)
def nothing_sent() -> None:
    SENT.clear()


def test_what_a_run_asks_is_read_and_answered() -> None:
    run = Trial(Letters, to="Ada")
    assert (run.status, run.asks, run.title) == ("waiting", "review", "trial-letters")
    assert [each.id for each in run.card.actions] == ["first", "second"]
    assert run.state["first"] == {"text": "Dear Ada"}
    assert run.approve().status == "completed"
    assert SENT == ["Dear Ada", "Yours"]
    assert [(each.step, each.status, each.wrote) for each in run.effects] == [
        ("send_first", "done", {}),
        ("send_second", "done", {"told": "sent"}),
    ]
    assert run.steps == ["draft", "review", "send_first", "send_second", "end"]
    with pytest.raises(TrialStuck, match=r"The run asks nothing\. It is completed\."):
        run.approve()


def test_an_edit_changes_one_field_and_leaves_the_rest() -> None:
    run = Trial(Letters, to="Ada").edit("first", text="Hello")
    assert (run.status, SENT) == ("completed", ["Hello", "Yours"])


def test_each_action_gets_its_own_verdict() -> None:
    run = Trial(Letters, to="Ada")
    run.decide({"first": {"verdict": "reject", "reason": "No."}, "second": {"verdict": "approve"}})
    assert (run.status, SENT) == ("completed", ["Yours"])


def test_an_answer_in_the_place_of_an_action_reaches_the_state() -> None:
    run = Trial(Letters, to="Ada").respond("second", "I called them.")
    assert (run.status, SENT, run.state["told"]) == ("completed", ["Dear Ada"], "I called them.")


def test_a_rejection_without_a_way_back_ends_the_run() -> None:
    assert Trial(Letters, to="Ada").reject("No.").status == "cancelled"
    assert Trial(Letters, to="Ada").stop("No.").status == "cancelled"
    assert SENT == []


def test_a_deadline_that_passes_is_no_answer() -> None:
    run = Trial(Letters, to="Ada").expire()
    assert (run.status, run.state["expired"], SENT) == ("completed", True, [])


def test_a_quorum_is_of_different_people() -> None:
    run = Trial(Letters, to="Ada", quorum=2).approve(by="ann")
    assert run.status == "waiting"
    with pytest.raises(DecisionRefused):
        run.approve(by="ann")
    assert run.approve(by="mira").status == "completed"


def test_a_failure_asks_and_is_answered() -> None:
    run = Trial(Letters, to="nobody")
    assert run.asks == "draft"
    assert run.failures == ["draft: nobody is no address"]
    run.answer("stop")
    assert run.status == "failed"


def test_another_version_takes_the_run_over_and_asks_anew() -> None:
    run = Trial(Letters, to="Ada").upgrade(Later)
    assert (run.version, run.asks) == ("2", "review")
    assert run.card.actions[1].arguments == {"text": "Kind regards"}
    run.approve()
    assert SENT == ["Dear Ada", "Kind regards"]
    with pytest.raises(
        TrialStuck, match=r"Version 3 does not take the run over\. It is waiting at review; asks: Write to Ada\."
    ):
        Trial(Letters, to="Ada").upgrade(Apart)


def test_fields_called_as_an_option_and_a_configuration_are_given() -> None:
    run = Trial(Letters, {"team": "Blue"}, to="Ada", config={"greeting": "Hi"})
    assert (run.state["team"], run.state["first"]) == ("Blue", {"text": "Hi Ada"})


def test_what_cannot_be_tried_is_said() -> None:
    refused = r"Wrong cannot be used: The effect wrong\.act has no undo and is not declared irreversible"
    with pytest.raises(AgentError, match=refused):
        Trial(Wrong)
    with pytest.raises(InputRefused, match="/to: This is needed"):
        Trial(Letters)
    with pytest.raises(TrialStuck, match="asks about no action third; its actions: first, second"):
        Trial(Letters, to="Ada").edit("third", text="x")


def test_a_trial_changes_nothing_that_others_in_its_process_know() -> None:
    before = set(registry.agents())
    Trial(Letters, to="Ada").approve()
    assert set(registry.agents()) == before
    assert ("trial-letters", "1") not in registry.agents()
    assert trial_agents.__name__ not in str(registry.faults())
