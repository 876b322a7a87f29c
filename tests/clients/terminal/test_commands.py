"""The commands for scripts: what they write, and the exit codes that say what happened.

What agents write is shown in a terminal and never obeyed by it, and what people type in a form gets its type.
"""

from __future__ import annotations

import json
import signal
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from holdpoint import Holdpoint, json_pointer
from holdpoint.json_pointer import MISSING, Change, changes
from holdpoint.terminal import command_line as exits
from holdpoint.terminal import describe
from holdpoint.terminal.forms import JSON, NotValid, fields_of, filled
from holdpoint.terminal.lines import count_columns, make_visible, one_line, quote_text, render_lines
from hypothesis import given
from hypothesis import strategies as st

from agents.api.gates.form_data import FormPart
from approvals.forms import build
from approvals.models import Gate, Policy, versions
from checkpoints import actors
from tests.approvals.cards.preconditions.offering_gates import said_of
from tests.approvals.decisions.undoing.windows import make_held
from tests.clients.terminal.test_inbox import conditional
from tests.clients.terminal.world import Reviewer
from tests.factories import ann, bob, decide, make_action, make_card, make_gate, make_policy, make_team
from tests.factories.tokens import make_token
from tests.harness.waiting import until


def status(gate: Gate) -> str:
    return Gate.objects.get(pk=gate.pk).status


def test_a_gate_is_listed_shown_and_approved(at: Reviewer) -> None:
    done = at.runs("gates")
    assert (done.returncode, done.stderr) == (0, "")
    assert str(at.gate.pk) in done.stdout
    assert "Refund €120.00 to Marit" in done.stdout
    [told] = [json.loads(each) for each in at.runs("gates", "--json").stdout.splitlines()]
    assert (told["id"], told["title"]) == (at.gate.pk, "Refund €120.00 to Marit")
    done = at.runs("show", at.gate.pk)
    assert done.returncode == 0
    for words in ("She is right.", "amount: 120.00", "0 of 1 approved", "If you approve", "pay runs", "If you reject"):
        assert words in done.stdout
    told = json.loads(at.runs("show", at.gate.pk, "--json").stdout)
    assert told["digest"] == bytes(at.gate.standing().digest).hex()
    assert {each["choice"] for each in told["choices"]} == {"approve", "stop", "back"}
    with Holdpoint(at.url, at.token) as hp:
        assert hp.form(at.gate.pk)["digest"] == told["digest"]
    done = at.runs("decide", at.gate.pk, "approve", "--comment", "It matches.")
    assert (done.returncode, done.stdout) == (0, "Recorded: approve; the gate is decided.\n")
    assert "pay runs" in done.stderr
    made = at.gate.decisions.get()
    assert (made.user, made.verdict, bytes(made.comment)) == (at.user, "approve", b"It matches.")


def test_an_edit_says_what_it_changes_and_a_rejection_why_and_where_the_run_goes(at: Reviewer) -> None:
    gate = at.posted()
    done = at.runs("decide", gate.pk, "edit", "--set", "/wire/amount=100.00", "--set", "/wire/urgent=true", "--json")
    assert done.returncode == 0, done.stderr
    for words in ("to: ACME", "- 120.00", "+ 100.00", "+ true"):
        assert words in done.stderr
    assert json.loads(done.stdout)["gate"]["status"] == "decided"
    action = Gate.objects.get(pk=gate.pk).standing().card.action("wire")
    assert action is not None
    assert action.arguments == {"to": "ACME", "amount": "100.00", "urgent": True}
    assert at.runs("decide", at.gate.pk, "reject", "--comment", "No.").returncode == exits.USAGE
    assert at.runs("decide", at.gate.pk, "reject", "--stop").returncode == exits.INVALID
    assert status(at.gate) == "open"
    done = at.runs("decide", at.gate.pk, "reject", "--back", "propose", "--comment", "Not like this.")
    assert done.returncode == 0, done.stderr
    outcome = Gate.objects.get(pk=at.gate.pk).outcome
    assert (outcome.kind, outcome.then, outcome.back_to) == ("rejected", "back", "propose")


@pytest.mark.long
def test_actions_are_answered_for_judged_apart_and_allowed_on_conditions(at: Reviewer) -> None:
    card = make_card(actions=[make_action(verdicts=["approve", "reject", "respond"])])
    gate = make_gate(team=at.gate.team, card=card)
    assert at.runs("decide", gate.pk, "respond", "--response", "I paid it by card.").returncode == 0
    assert gate.decisions.get().by_action == {"refund": "respond"}
    gate = make_gate(team=at.gate.team, card=make_card(actions=[make_action(), make_action(id="other", effect="")]))
    actions = {"refund": {"verdict": "approve"}, "other": {"verdict": "reject", "reason": "No."}}
    assert at.runs("decide", gate.pk, "each", "--actions", "-", typed=json.dumps(actions)).returncode == 0
    assert gate.decisions.get().by_action == {"refund": "approve", "other": "reject"}
    gate = conditional(at)
    assert "only if the balance is still 0.00 EUR  balance, if added" in at.runs("show", gate.pk).stdout
    assert at.runs("decide", gate.pk, "approve", "--only-if", "balance", "--drop", "mood").returncode == 0
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
    done = at.runs("logout")
    assert done.returncode == exits.USAGE
    assert "HOLDPOINT_TOKEN is set, and is not what login stored" in done.stderr
    reads = make_token(at.user, "gates:read")[1]
    done = at.runs("decide", at.gate.pk, "approve", env={"HOLDPOINT_TOKEN": reads})
    assert (done.returncode, "gates:decide" in done.stderr) == (exits.NOT_ALLOWED, True)
    done = at.runs("gates", env={"HOLDPOINT_TOKEN": make_token(ann(make_team()))[1]})
    assert (done.returncode, done.stdout, "No gate is open" in done.stderr) == (0, "", True)
    two = make_gate(policy=make_policy(at.gate.team, name="two", quorum=2))
    done = at.runs("decide", two.pk, "approve")
    assert (done.returncode, done.stdout) == (exits.MORE_NEEDED, "Recorded: approve; 1 more must approve.\n")
    seen = json.loads(at.runs("show", at.gate.pk, "--json").stdout)["digest"]
    decide(at.gate, bob(at.gate.team))
    late = at.runs("decide", at.gate.pk, "approve", "--seen", seen)
    assert late.returncode == exits.CHANGED
    assert "Bob Lindqvist already decided this" in late.stderr


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


def test_what_an_agent_writes_reaches_no_terminal_as_it_is(at: Reviewer) -> None:
    card = make_card(title="\x1b[2JPay\u202e", summary="\x1b]0;mine\x07\nsecond", risk="low")
    gate = make_gate(team=at.gate.team, card=card)
    for command in (["gates"], ["show", gate.pk], ["gates", "--json"], ["show", gate.pk, "--json"]):
        done = at.runs(*command)
        assert done.returncode == 0
        assert not set("\x1b\x07\u202e") & set(done.stdout), command
    assert "<U+001B>[2JPay<U+202E>" in at.runs("show", gate.pk).stdout


DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;mine\x07", "<U+001B>[2J<U+001B>]0;mine<U+0007>"),
        ("\x9b31m a\rb pay\x08", "<U+009B>31m a<U+000D>b pay<U+0008>"),
        ("100\u202e001 \u2066x\u2069", "100<U+202E>001 <U+2066>x<U+2069>"),
        ("no\u200bw tag\U000e0041 a\ufe01 \u3164 \ud800", "no<U+200B>w tag<U+E0041> a<U+FE01> <U+3164> <U+D800>"),
        ("z" + "\u0301" * 9, "z" + "<U+0301>" * 9),
        ("\u0e01" + "\u0e31" * 5, "\u0e01" + "\u0e31" * 3 + "<U+0E31>" * 2),
        ("one\ntwo\r\nthree", "one ⏎ two ⏎ three"),
        ("a\tb\u2003c 5\u00a0km", "a b<U+2003>c 5 km"),
        ("Grüße, 日本 ❤️ 👩\u200d💻", "Grüße, 日本 ❤️ 👩\u200d💻"),
    ],
)
def test_what_is_not_seen_or_moves_what_is_becomes_a_code_point(text: str, shown: str) -> None:
    assert make_visible(text) == shown


@pytest.mark.examples
@given(st.text(st.characters(codec=None)))
def test_no_text_leaves_anything_that_a_terminal_obeys(text: str) -> None:
    for shown in (make_visible(text), one_line(text, 20), render_lines(quote_text(text)).replace("\n", "")):
        for at, character in enumerate(shown):
            joins = character == "\u200d" and 0 < at < len(shown) - 1
            assert joins or unicodedata.category(character) not in DANGEROUS


def test_a_box_in_which_one_edits_gets_no_control_characters_either() -> None:
    arguments = {"text": "\x1b[2J", "more": ["\x7f\u202e"], "plain": "fine"}
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("text", "plain")}}
    fields = fields_of(form(arguments, schema), arguments)
    for field in fields:
        assert make_visible(field.text) == field.text
    assert [field.kind for field in fields] == [JSON, "text", JSON]
    assert filled(arguments, fields, {field.part["pointer"]: field.text for field in fields}) is arguments
    assert filled(arguments, fields, {"/text": json.dumps("clean")})["text"] == "clean"


def test_labels_and_names_are_shown_safely_too() -> None:
    hostile = "\x1b[31m"
    gate = {
        "id": 1, "run": 2, "title": hostile, "agent": hostile, "team": hostile, "risk": hostile, "status": "open",
        "opened_at": "2026-03-02T09:15:05Z", "deadline": None, "url": "https://h/gates/1/", "outside": True,
        "unsupported": [hostile], "tokens_decide": True, "step_up": False,
        "agreement": {"quorum": 1, "agreed": 0, "who": hostile, "voices": [
            {"name": hostile, "verdict": hostile, "comment": hostile, "counts": True}]},
        "card": {"summary": hostile, "for_whom": hostile, "amount": hostile, "reasons": [hostile],
                 "quotes": [{"label": hostile, "role": hostile, "pointer": "/x"}],
                 "actions": [{"id": hostile, "title": hostile, "tool": hostile, "undo": hostile,
                              "verdicts": ["approve"], "arguments": {hostile: hostile}, "pinned": []}],
                 "question": {"text": hostile, "choices": [{"id": hostile, "label": hostile}]},
                 "preconditions": [{"id": hostile, "label": hostile, "value": hostile}]},
    }  # fmt: skip
    impact = {"rows": [{"step": hostile, "kind": "step", "verdict": hostile, "on": [hostile], "asks": False,
                        "kept": False, "again": False, "irreversible": False, "title": hostile}],
              "asks": hostile, "ends": False, "children": [{"run": 3, "fate": hostile}],
              "repeats": [{"effect": 1, "title": hostile, "step": hostile, "at": None}]}  # fmt: skip
    assert "\x1b" not in render_lines([*describe.gate(gate, {"x": hostile}), *describe.impact(impact)])


def test_an_edit_is_drawn_as_a_diff_beside_its_exact_texts() -> None:
    draws = [{"kind": "diff", "before": "/old", "at": "/new"}, {"kind": "command", "at": "/new"}]
    arguments = {"old": "a\nb\nc", "new": "a\nB\x1b\nc"}
    told = render_lines(describe.action({"id": "edit", "title": "", "arguments": arguments, "draws": draws}))
    assert "     a\n    -b\n    +B<U+001B>\n     c\n" in told
    assert told.count("+B") == 1
    assert "│ B<U+001B>" in told
    was = render_lines(describe.action({"id": "write", "title": "", "arguments": {"new": "a\nb"},
                                 "draws": [{"kind": "diff", "at": "/new", "was": "a\nc"}]}))  # fmt: skip
    assert "compared with what the agent found there when it asked:" in was
    assert "    -c\n    +b\n" in was
    long = {"old": "a\n" * 1001, "new": "b"}
    assert "@@" not in render_lines(describe.action({"id": "edit", "title": "", "arguments": long, "draws": draws}))


def drawn(old: list[str], new: list[str]) -> list[str]:
    arguments = {"old": "\n".join(old), "new": "\n".join(new)}
    return render_lines(describe.draw_diff({"kind": "diff", "before": "/old", "at": "/new"}, arguments)).splitlines()


def test_lines_that_are_costly_to_compare_are_drawn_as_replaced() -> None:
    """An edit of 1,000 like lines held the terminal for half a minute, and an action may carry fifty of them."""
    old, new = ["a"] * 300, ["a", "b"] * 150
    assert drawn(["x", *old, "y"], ["x", *new, "y"]) == [
        "     x", "     a", *["    -a"] * 299, *["    +b", "    +a"] * 149, "    +b", "     y",
    ]  # fmt: skip


def test_a_long_text_with_few_changes_is_compared_between_them() -> None:
    old = [f"{at}" if at % 5 else "" for at in range(300)]
    new = ["first", *old[1:-1], "last"]
    changes = [text for text in drawn(old, new) if text[4:5] in ("-", "+")]
    assert changes == ["    -", "    +first", "    -299", "    +last"]


ORDER: dict[str, Any] = {
    "to": {"name": "ACME", "street": "Quay 7"}, "amount": "120.00", "count": 3, "share": 1.0, "huge": 2**70,
    "urgent": False, "speed": "slow", "lines": [{"sku": "COF-250"}], "note": None,
}  # fmt: skip
SCHEMA: dict[str, Any] = {
    "$defs": {
        "Address": {
            "type": "object",
            "properties": {"name": {"type": "string", "title": "Name"}, "street": {"type": "string"}},
        },
    },
    "type": "object",
    "properties": {
        "to": {"$ref": "#/$defs/Address"}, "amount": {"type": "string", "description": "in EUR"},
        "count": {"type": "integer"}, "share": {"type": "number"}, "huge": {"type": "integer"},
        "urgent": {"type": "boolean"}, "speed": {"enum": ["slow", "fast"]}, "memo": {"type": "string"},
    },
    "required": ["amount", "count"],
}  # fmt: skip


def form(value: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """The form of a value as the server sends it."""
    return FormPart.from_orm(build(schema, value).root, context={"value": value}).model_dump()


FORM = form(ORDER, SCHEMA)


def typed(**by_pointer: str) -> Any:
    return filled(ORDER, fields_of(FORM, ORDER), {f"/{name}": each for name, each in by_pointer.items()})


def test_objects_are_followed_and_a_list_is_one_field_in_the_order_of_the_page() -> None:
    fields = {each.part["pointer"]: each for each in fields_of(FORM, ORDER)}
    assert list(fields) == ["/amount", "/count", "/to/name", "/to/street", "/share", "/huge", "/urgent", "/speed",
                            "/memo", "/lines", "/note"]  # fmt: skip
    assert (fields["/to/name"].part["label"], fields["/amount"].part["help"]) == ("Name", "in EUR")
    assert (list(fields["/speed"].choices), list(fields["/urgent"].choices)) == (["slow", "fast"], ["true", "false"])
    assert (fields["/memo"].value, fields["/memo"].text, fields["/lines"].kind) == (MISSING, "", JSON)


def test_the_chosen_shape_is_followed_what_can_be_none_is_emptied_and_a_secret_starts_empty() -> None:
    text, secret = {"type": "string"}, {"type": "string", "format": "password"}
    inner = {"type": "object", "properties": {"city": text}}
    schema = {
        "type": "object", "required": ["at", "back", "note", "level", "key"],
        "properties": {
            "at": {"anyOf": [inner, {"type": "null"}], "title": "At"}, "back": {"anyOf": [inner, {"type": "null"}]},
            "note": {"anyOf": [text, {"type": "null"}]}, "level": {"enum": [1, 2]}, "key": secret,
        },
    }  # fmt: skip
    value = {"at": {"city": "Lund"}, "back": None, "note": "By hand", "level": 2, "key": "•••••••• /key"}
    fields = fields_of(form(value, schema), value)
    texts = {each.part["pointer"]: each.text for each in fields}
    assert texts == {"/at/city": "Lund", "/back": "null", "/note": "By hand", "/level": "2", "/key": ""}
    assert filled(value, fields, texts) is value
    new = filled(value, fields, {"/at/city": "", "/back": '{"city": "Ystad"}', "/note": "", "/level": "1", "/key": "k"})
    assert new == {"at": {}, "back": {"city": "Ystad"}, "note": None, "level": 1, "key": "k"}


def test_what_was_not_touched_is_the_very_value_and_what_is_emptied_is_left_out() -> None:
    fields = fields_of(FORM, ORDER)
    assert filled(ORDER, fields, {each.part["pointer"]: each.text for each in fields}) is ORDER
    assert "speed" not in typed(speed="")


def test_what_is_typed_gets_its_type_and_what_does_not_fit_is_refused_with_its_label() -> None:
    for name, text, value in (
        ("amount", "100.00", "100.00"), ("amount", "1", "1"), ("count", "4", 4), ("share", "0.5", 0.5),
        ("share", "2", 2), ("huge", str(2**71), 2**71), ("urgent", "true", True), ("speed", "fast", "fast"),
        ("lines", '[{"sku": "TEA-100"}]', [{"sku": "TEA-100"}]), ("memo", "new", "new"),
    ):  # fmt: skip
        found = typed(**{name: text})[name]
        assert (found, type(found)) == (value, type(value))
    for name, text in (
        ("count", "4.5"), ("count", "many"), ("urgent", "1"), ("share", "NaN"), ("lines", "["), ("count", ""),
    ):  # fmt: skip
        with pytest.raises(NotValid, match=name.capitalize()):
            typed(**{name: text})


def test_a_line_is_cut_by_its_columns_and_a_value_replaced_in_a_copy() -> None:
    assert (one_line("日本日本", 5), count_columns("日本"), one_line("plain", 5)) == ("日本…", 4, "plain")
    before = {"a": [{"b": 1}]}
    assert json_pointer.replaced(before, "/a/0/b", 2) == {"a": [{"b": 2}]}
    assert json_pointer.replaced(before, "/a/0", MISSING) == {"a": []}
    assert before == {"a": [{"b": 1}]}


def test_differences_tell_one_number_from_another_of_the_same_value() -> None:
    assert list(changes({"a": 1, "b": [1, 2]}, {"a": 1.0, "b": [1, 3], "c/d": None})) == [
        Change("/a", 1, 1.0), Change("/b/1", 2, 3), Change("/c~1d", MISSING, None),
    ]  # fmt: skip
    assert list(changes(ORDER, json.loads(json.dumps(ORDER)))) == []
