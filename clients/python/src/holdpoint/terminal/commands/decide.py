"""`holdpoint decide GATE VERDICT`: decides a gate, after showing what the decision does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ... import json_pointer
from .. import decisions, describe, exits, forms, reviewing
from ..lines import BOLD, Span, make_line, make_span, render_lines
from .common import Wrong, as_json, ask_to_confirm, make_parser, open_connection, parse_and_run, read_json
from .show import state_of

VERDICTS = ("approve", "edit", "reject", "respond", "answer", "each")
DOES = """Decide a gate. What it would do is shown first, and it is recorded only if it still does exactly that.

  approve   all that the gate asks
  edit      with --set /ACTION/place=value, or --arguments JSON
  reject    with --comment, and --stop or --back
  respond   with --response: the agent gets the answer, and the action does not run
  answer    the question of a recovery gate, with --choice
  each      with --actions JSON: a verdict for each action

At a terminal you are asked to confirm, unless --yes. In a script you are not."""


def main(arguments: Sequence[str]) -> int:
    """Decide it."""
    parser = make_parser("decide", DOES)
    parser.add_argument("gate", type=int, help="the gate's number")
    parser.add_argument("verdict", choices=VERDICTS)
    parser.add_argument("--comment", default="", help="the reason for a rejection, or a comment")
    parser.add_argument("--set", action="append", default=[], metavar="/ACTION/PLACE=VALUE", help="change one argument")
    parser.add_argument(
        "--arguments", default="", metavar="JSON", help="new arguments by action id; @file, - for stdin"
    )
    parser.add_argument(
        "--actions", default="", metavar="JSON", help="a verdict for each action, as the API takes them"
    )
    parser.add_argument("--response", default=None, metavar="TEXT", help="the answer, or JSON where it takes no text")
    parser.add_argument("--choice", default="", metavar="ID", help="the answer to the question")
    parser.add_argument("--value", default="", metavar="JSON", help="the value of that answer")
    then = parser.add_mutually_exclusive_group()
    then.add_argument("--stop", action="store_true", help="a rejection ends the run")
    then.add_argument("--back", nargs="?", const="", default=None, metavar="STEP", help="a rejection sends it back")
    words = "only if this optional precondition of the card still holds, by its id"
    parser.add_argument("--only-if", action="append", default=[], metavar="ID", help=words)
    parser.add_argument(
        "--drop", action="append", default=[], metavar="ID", help="without this preselected precondition"
    )
    parser.add_argument("--seen", default="", metavar="DIGEST", help="the `digest` that you read with show --json")
    parser.add_argument("--confirm", action="append", type=int, default=[], metavar="EFFECT", help="repeat this effect")
    parser.add_argument("--second-look", action="store_true", help="you looked once more, after many fast approvals")
    parser.add_argument("--yes", action="store_true", help="do not ask to confirm")
    parser.add_argument("--json", action="store_true", help="the recorded decision as JSON")
    return parse_and_run(_decide, parser, arguments)


def _decide(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        gate = threads.run(reviewing.gate(api, given.gate))
        body = body_of(given, gate)
        body |= {"preconditions": given.only_if} if given.only_if else {}
        body |= {"dropped": given.drop} if given.drop else {}
        if given.seen:
            body["seen"] = given.seen
        preview = threads.run(reviewing.preview(api, given.gate, body))
        lines = [
            *describe.gate(gate, threads.run(state_of(api, gate))),
            make_line(),
            make_line("You decide: ", Span(given.verdict, BOLD)),
        ]
        if changes := decisions.edits_of(gate, body):
            lines += [make_line("What you change:"), *describe.changed(changes)]
        lines += [make_line("What it does:"), *describe.impact(preview["impact"], missing=preview["left"])]
        sys.stderr.write(render_lines(lines, colour=sys.stderr.isatty()))
        missing = sorted(set(decisions.repeats(preview)) - set(given.confirm))
        if missing:
            sys.stderr.write(f"Nothing was recorded. Confirm each with --confirm: {', '.join(map(str, missing))}\n")
            return exits.INVALID
        if sys.stdin.isatty() and not given.yes and not ask_to_confirm("Decide so?"):
            sys.stderr.write("Nothing was recorded.\n")
            return exits.INTERRUPTED
        body = {**decisions.confirming(body, preview, given.confirm), "second_look": given.second_look}
        made = threads.run(reviewing.decide(api, given.gate, body))
    return told_of(made, as_line=given.json)


def told_of(decision: Mapping[str, Any], *, as_line: bool) -> int:
    """Write what was recorded, and return the exit code."""
    gate = decision["gate"]
    settles = gate["status"] == "open" and gate.get("settles_at")
    ends = settles or gate["status"] != "open"
    if as_line:
        sys.stdout.write(as_json(decision))
    else:
        left = gate["agreement"]["quorum"] - gate["agreement"]["agreed"]
        what = f"the gate is {gate['status']}" if ends else f"{left} more must approve"
        what = describe.settling(gate) if settles else what
        sys.stdout.write(render_lines([make_line("Recorded: ", make_span(decision["verdict"], BOLD), f"; {what}.")]))
    return exits.DONE if ends else exits.MORE_NEEDED


def body_of(given: argparse.Namespace, gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decision that the command line describes. Raises Wrong."""
    verdict, comment = given.verdict, given.comment
    then = {"then": decisions.STOP} if given.stop else {}
    then |= {} if given.back is None else {"then": decisions.BACK, "back_to": given.back}
    if then and verdict not in ("reject", "each"):
        raise Wrong("--stop and --back belong to a rejection")
    if verdict == "reject":
        if not then:
            raise Wrong("say what the run does after the rejection: --stop, or --back [STEP]")
        return decisions.reject(gate, comment, back_to=given.back)
    if verdict == "edit":
        return decisions.edit(gate, _arguments(given, gate), comment)
    if verdict == "answer":
        if not given.choice:
            raise Wrong("say which answer: --choice ID")
        return decisions.answer(gate, given.choice, read_json(given.value, "--value") if given.value else None, comment)
    if verdict == "respond":
        return decisions.decide_actions(gate, _responses(given, gate), comment)
    if verdict == "each":
        actions = read_json(given.actions or "{}", "--actions")
        if not isinstance(actions, dict) or not actions:
            raise Wrong('give each action a verdict: --actions \'{"wire": {"verdict": "approve"}}\'')
        return decisions.decide_actions(gate, actions, comment, **then)
    return decisions.approve(gate, comment)


def _arguments(given: argparse.Namespace, gate: Mapping[str, Any]) -> dict[str, Any]:
    now = decisions.arguments_of(gate)
    new = read_json(given.arguments, "--arguments") if given.arguments else {}
    if not isinstance(new, dict):
        raise Wrong("--arguments is an object: new arguments by action id")
    schemas = {str(action["id"]): action.get("schema") or {} for action in gate["card"].get("actions") or ()}
    for setting in given.set:
        pointer, equals, typed = setting.partition("=")
        name, *rest = json_pointer.parts_of(pointer) if pointer.startswith("/") else [""]
        if not equals or name not in now:
            raise Wrong(f"--set takes /ACTION/PLACE=VALUE, with an action out of {', '.join(now)}; unlike {setting!r}")
        place = json_pointer.pointer_to(*rest)
        fields = forms.fields_of(new.get(name, now[name]), schemas[name])
        if place not in {field.pointer for field in fields}:
            raise Wrong(f"there is no value at {place or '/'} of {name}; give --arguments for all of them")
        try:
            new[name] = forms.filled(new.get(name, now[name]), fields, {place: typed})
        except forms.NotValid as fault:
            raise Wrong(str(fault)) from fault
    if not new:
        raise Wrong("say what you change: --set /ACTION/PLACE=VALUE, or --arguments JSON")
    return new


def _responses(given: argparse.Namespace, gate: Mapping[str, Any]) -> dict[str, Any]:
    asked = gate["card"].get("actions") or []
    if given.response is None or len(asked) != 1:
        raise Wrong("respond takes --response, for a gate with one action; for several use `each`")
    takes_text = (asked[0].get("response") or {"type": "string"}).get("type") == "string"
    value = given.response if takes_text else read_json(given.response, "--response")
    return {asked[0]["id"]: {"verdict": "respond", "response": value}}
