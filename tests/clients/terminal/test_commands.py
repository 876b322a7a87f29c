"""The commands for scripts: what they write, and the exit codes that say what happened."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from holdpoint.terminal import command_line as exits

from agents.models import Token
from approvals.models import Gate, Policy, versions
from checkpoints import actors
from tests.approvals.cards.preconditions.offering_gates import said_of
from tests.approvals.decisions.undoing.windows import make_held
from tests.factories import ann, bob, decide, make_action, make_card, make_gate, make_policy, make_team
from tests.factories.tokens import make_token
from tests.harness.waiting import until

from .test_inbox import conditional
from .world import Reviewer


@pytest.fixture
def at(web: str, tmp_path: Path) -> Reviewer:
    """Ann at a terminal, with an open gate."""
    return Reviewer(web, tmp_path)


def status(gate: Gate) -> str:
    return Gate.objects.get(pk=gate.pk).status


def test_gates_are_listed_for_people_and_for_programs(at: Reviewer) -> None:
    done = at.runs("gates")
    assert (done.returncode, done.stderr) == (0, "")
    assert str(at.gate.pk) in done.stdout
    assert "Refund €120.00 to Marit" in done.stdout
    [told] = [json.loads(each) for each in at.runs("gates", "--json").stdout.splitlines()]
    assert (told["id"], told["title"]) == (at.gate.pk, "Refund €120.00 to Marit")


def test_a_gate_is_shown_with_what_each_choice_does(at: Reviewer) -> None:
    done = at.runs("show", at.gate.pk)
    assert done.returncode == 0
    for words in ("She is right.", "amount: 120.00", "0 of 1 approved", "If you approve", "pay runs", "If you reject"):
        assert words in done.stdout
    told = json.loads(at.runs("show", at.gate.pk, "--json").stdout)
    assert told["digest"] == bytes(at.gate.standing().digest).hex()
    assert {each["choice"] for each in told["choices"]} == {"approve", "stop", "back"}


def test_approving_says_what_it_does_and_records_it(at: Reviewer) -> None:
    done = at.runs("decide", at.gate.pk, "approve", "--comment", "It matches.")
    assert (done.returncode, done.stdout) == (0, "Recorded: approve; the gate is decided.\n")
    assert "pay runs" in done.stderr
    made = at.gate.decisions.get()
    assert (made.user, made.verdict, bytes(made.comment)) == (at.user, "approve", b"It matches.")


def test_an_edit_says_what_it_changes_and_keeps_the_type(at: Reviewer) -> None:
    gate = at.posted()
    done = at.runs("decide", gate.pk, "edit", "--set", "/wire/amount=100.00", "--set", "/wire/urgent=true", "--json")
    assert done.returncode == 0, done.stderr
    for words in ("to: ACME", "- 120.00", "+ 100.00", "+ true"):
        assert words in done.stderr
    assert json.loads(done.stdout)["gate"]["status"] == "decided"
    action = Gate.objects.get(pk=gate.pk).standing().card.action("wire")
    assert action is not None
    assert action.arguments == {"to": "ACME", "amount": "100.00", "urgent": True}


def test_a_rejection_says_why_and_where_the_run_goes(at: Reviewer) -> None:
    assert at.runs("decide", at.gate.pk, "reject", "--comment", "No.").returncode == exits.USAGE
    assert at.runs("decide", at.gate.pk, "reject", "--stop").returncode == exits.INVALID
    assert status(at.gate) == "open"
    done = at.runs("decide", at.gate.pk, "reject", "--back", "propose", "--comment", "Not like this.")
    assert done.returncode == 0, done.stderr
    outcome = Gate.objects.get(pk=at.gate.pk).outcome
    assert (outcome.kind, outcome.then, outcome.back_to) == ("rejected", "back", "propose")


@pytest.mark.long
def test_a_response_is_given_in_the_place_of_the_action(at: Reviewer) -> None:
    card = make_card(actions=[make_action(verdicts=["approve", "reject", "respond"])])
    gate = make_gate(team=at.gate.team, card=card)
    done = at.runs("decide", gate.pk, "respond", "--response", "I paid it by card.")
    assert done.returncode == 0, done.stderr
    assert gate.decisions.get().by_action == {"refund": "respond"}


@pytest.mark.long
def test_each_action_gets_its_own_verdict(at: Reviewer) -> None:
    card = make_card(actions=[make_action(), make_action(id="other", effect="")])
    gate = make_gate(team=at.gate.team, card=card)
    actions = {"refund": {"verdict": "approve"}, "other": {"verdict": "reject", "reason": "No."}}
    done = at.runs("decide", gate.pk, "each", "--actions", "-", typed=json.dumps(actions))
    assert done.returncode == 0, done.stderr
    assert gate.decisions.get().by_action == {"refund": "approve", "other": "reject"}


@pytest.mark.long
def test_a_decision_adds_and_drops_conditions(at: Reviewer) -> None:
    gate = conditional(at)
    assert "only if the balance is still 0.00 EUR  balance, if added" in at.runs("show", gate.pk).stdout
    done = at.runs("decide", gate.pk, "approve", "--only-if", "balance", "--drop", "mood")
    assert done.returncode == 0, done.stderr
    assert (gate.decisions.get().added, said_of(gate)["dropped"]) == (["balance"], ["mood"])


@pytest.mark.long
def test_runs_are_listed_and_one_is_sent_back(at: Reviewer) -> None:
    run = at.gate.run
    [told] = [json.loads(each) for each in at.runs("runs", "--json", "--status", "waiting").stdout.splitlines()]
    assert told["id"] == run.pk
    assert str(run.pk) in at.runs("runs").stdout
    [first, *_] = [json.loads(each) for each in at.runs("runs", run.pk, "--json").stdout.splitlines()][::-1]
    assert f"{first['seq']}  " in at.runs("runs", run.pk).stdout
    done = at.runs("rewind", run.pk, first["seq"], "--feedback", "Look once more.")
    assert (done.returncode, done.stdout) == (0, f"Run {run.pk} was sent back to checkpoint {first['seq']}.\n")
    assert "What it does:" in done.stderr
    assert status(at.gate) == "withdrawn"
    assert at.runs("rewind", run.pk, 999).returncode in (exits.INVALID, exits.NOT_FOUND)


@pytest.mark.long
def test_a_gate_with_files_and_charts_names_the_page_that_has_them(at: Reviewer) -> None:
    file = {"type": "object", "properties": {"$artifact": {"type": "string"}}}
    gate = at.posted(schema={"type": "object", "properties": {"scan": file}})
    told = at.runs("show", gate.pk).stdout
    assert f"Files are read and uploaded on the gate's page: {at.url}/gates/{gate.pk}/" in told


def test_what_is_wrong_is_named_by_its_place(at: Reviewer) -> None:
    gate = at.posted()
    done = at.runs("decide", gate.pk, "edit", "--arguments", '{"nothing": {}}')
    assert done.returncode == exits.INVALID
    assert "/actions/nothing/arguments" in done.stderr
    for wrong in (["--set", "/wire/nothing=1"], ["--set", "/strange/amount=1"], ["--arguments", "{"], []):
        assert at.runs("decide", gate.pk, "edit", *wrong).returncode == exits.USAGE
    assert status(gate) == "open"


def test_exit_codes_tell_what_happened(at: Reviewer) -> None:
    assert at.runs("show", 2**40).returncode == exits.NOT_FOUND
    assert at.runs("show", "x").returncode == exits.USAGE
    assert at.runs("gates", env={"HOLDPOINT_TOKEN": "hp_wrong"}).returncode == exits.NO_TOKEN
    assert replace(at, signed_in=False).runs("gates").returncode == exits.NO_TOKEN
    assert at.runs("gates", env={"HOLDPOINT_URL": "nowhere"}).returncode == exits.NO_TOKEN
    seen = json.loads(at.runs("show", at.gate.pk, "--json").stdout)["digest"]
    decide(at.gate, bob(at.gate.team))
    late = at.runs("decide", at.gate.pk, "approve", "--seen", seen)
    assert late.returncode == exits.CHANGED
    assert "Bob Lindqvist already decided this" in late.stderr


def test_a_quorum_that_lacks_people_is_told_by_the_code(at: Reviewer) -> None:
    policy = make_policy(at.gate.team, name="two", quorum=2)
    gate = make_gate(policy=policy)
    done = at.runs("decide", gate.pk, "approve")
    assert (done.returncode, done.stdout) == (exits.MORE_NEEDED, "Recorded: approve; 1 more must approve.\n")


def test_a_decision_is_undone_until_it_takes_effect(at: Reviewer) -> None:
    """A decision within its undo window was told as one that 0 more people must approve."""
    gate = make_held(at.gate.team)
    assert at.runs("undo", gate.pk).returncode == exits.CHANGED
    done = at.runs("decide", gate.pk, "approve")
    assert done.returncode == exits.DONE, done.stderr
    words = f"UTC; `holdpoint undo {gate.pk}` takes yours back."
    assert words in done.stdout
    assert words in at.runs("show", gate.pk).stdout
    undone = at.runs("undo", gate.pk)
    assert (undone.returncode, undone.stdout) == (exits.DONE, "Undone: approve; the gate is open.\n")
    assert not gate.decisions.get().counts
    again = at.runs("undo", gate.pk)
    assert (again.returncode, "nothing to undo" in again.stderr) == (exits.CHANGED, True)


def test_a_policy_that_takes_no_tokens_sends_people_to_the_page(at: Reviewer) -> None:
    policy = Policy(team=at.gate.team, name="strict", tokens_decide=False)
    versions.write(policy, by=actors.SYSTEM)
    gate = make_gate(policy=policy)
    assert f"takes no decisions by token: decide at {at.url}/gates/{gate.pk}/" in at.runs("show", gate.pk).stdout
    done = at.runs("decide", gate.pk, "approve")
    assert done.returncode == exits.NOT_ALLOWED
    assert "decide on the gate's page" in done.stderr


def test_a_token_that_lacks_a_scope_says_which(web: str, tmp_path: Path) -> None:
    reads = Reviewer(web, tmp_path, scopes=("gates:read",))
    done = reads.runs("decide", reads.gate.pk, "approve")
    assert done.returncode == exits.NOT_ALLOWED
    assert "gates:decide" in done.stderr


def place(cursor: str) -> tuple[int, ...]:
    """A cursor as numbers, which are in order."""
    return tuple(map(int, cursor.strip().split(".")))


def test_watching_writes_a_line_for_each_event_and_begins_again_where_it_stopped(at: Reviewer, tmp_path: Path) -> None:
    kept = tmp_path / "seen"
    assert at.runs("watch", "--json", "--once", "--cursor-file", kept).stdout == ""
    with at.starts("watch", "--json", "--cursor-file", kept, "--subject", f"gate:{at.gate.pk}") as watching:
        assert watching.stdout is not None
        decide(at.gate, ann(at.gate.team))
        told = [json.loads(watching.stdout.readline()) for _ in range(2)]
        until(lambda: place(kept.read_text()) >= place(told[1]["cursor"]), what="the place is kept")
        watching.send_signal(signal.SIGINT)
        watching.wait()
    assert watching.returncode == exits.INTERRUPTED
    assert [each["kind"] for each in told] == ["gate.decided", "gate.closed"]
    other = make_gate(team=at.gate.team)
    lines = at.runs("watch", "--json", "--once", "--cursor-file", kept).stdout.splitlines()
    assert [(each["kind"], each["subject"]) for each in map(json.loads, lines) if each["kind"] == "gate.opened"] == [
        ("gate.opened", f"gate:{other.pk}")
    ]


def test_an_interruption_waits_for_no_connection(at: Reviewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDPOINT_TOKEN", at.token)

    def interrupted() -> None:
        with exits.open_connection(at.url) as (_, threads, _server):
            pool = threads.client._transport._pool  # type: ignore[attr-defined]
            pool._optional_thread_lock.__enter__()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_what_an_agent_writes_reaches_no_terminal_as_it_is(at: Reviewer) -> None:
    card = make_card(title="\x1b[2JPay\u202e", summary="\x1b]0;mine\x07\nsecond", risk="low")
    gate = make_gate(team=at.gate.team, card=card)
    for command in (["gates"], ["show", gate.pk], ["gates", "--json"], ["show", gate.pk, "--json"]):
        done = at.runs(*command)
        assert done.returncode == 0
        assert not set("\x1b\x07\u202e") & set(done.stdout), command
    assert "<U+001B>[2JPay<U+202E>" in at.runs("show", gate.pk).stdout


@pytest.mark.long
def test_a_reader_that_has_enough_ends_it_quietly(at: Reviewer) -> None:
    with at.starts("show", at.gate.pk) as shown:
        assert shown.stdout is not None
        shown.stdout.close()
        assert shown.stderr is not None
        assert shown.stderr.read() == ""
    assert shown.returncode == 0


def test_another_team_sees_nothing(at: Reviewer) -> None:
    _, sent = make_token(ann(make_team()))
    done = at.runs("gates", env={"HOLDPOINT_TOKEN": sent})
    assert (done.returncode, done.stdout) == (0, "")
    assert "No gate is open" in done.stderr
    assert Token.objects.count() > 0


def test_logout_leaves_a_token_of_the_environment_alone(at: Reviewer) -> None:
    done = at.runs("logout")
    assert done.returncode == exits.USAGE
    assert "HOLDPOINT_TOKEN is set, and is not what login stored" in done.stderr
    assert Token.objects.get(user=at.user).revoked_at is None


@pytest.mark.long
def test_every_command_has_help_and_the_table_of_codes(at: Reviewer) -> None:
    for command in ("gates", "show", "decide", "undo", "runs", "rewind", "watch", "login", "logout"):
        done = at.runs(command, "--help")
        assert done.returncode == 0
        assert "exit codes:" in done.stdout
