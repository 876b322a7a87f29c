"""`holdpoint decide GATE VERDICT`: decides a gate, after showing what the decision does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ... import json_pointer
from .. import decisions, describe, exits, forms, reviewing
from ..lines import BOLD, Span, line, plain, said
from .common import Wrong, as_json, asks, parser, read_json, run, talking
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
    told = parser("decide", DOES)
    told.add_argument("gate", type=int, help="the gate's number")
    told.add_argument("verdict", choices=VERDICTS)
    told.add_argument("--comment", default="", help="the reason for a rejection, or a comment")
    told.add_argument("--set", action="append", default=[], metavar="/ACTION/PLACE=VALUE", help="change one argument")
    told.add_argument("--arguments", default="", metavar="JSON", help="new arguments by action id; @file, - for stdin")
    told.add_argument("--actions", default="", metavar="JSON", help="a verdict for each action, as the API takes them")
    told.add_argument("--response", default=None, metavar="TEXT", help="the answer, or JSON where it takes no text")
    told.add_argument("--choice", default="", metavar="ID", help="the answer to the question")
    told.add_argument("--value", default="", metavar="JSON", help="the value of that answer")
    then = told.add_mutually_exclusive_group()
    then.add_argument("--stop", action="store_true", help="a rejection ends the run")
    then.add_argument("--back", nargs="?", const="", default=None, metavar="STEP", help="a rejection sends it back")
    words = "only if this optional precondition of the card still holds, by its id"
    told.add_argument("--only-if", action="append", default=[], metavar="ID", help=words)
    told.add_argument("--drop", action="append", default=[], metavar="ID", help="without this preselected precondition")
    told.add_argument("--seen", default="", metavar="DIGEST", help="the `digest` that you read with show --json")
    told.add_argument("--confirm", action="append", type=int, default=[], metavar="EFFECT", help="repeat this effect")
    told.add_argument("--second-look", action="store_true", help="you looked once more, after many fast approvals")
    told.add_argument("--yes", action="store_true", help="do not ask to confirm")
    told.add_argument("--json", action="store_true", help="the recorded decision as JSON")
    return run(_decide, told, arguments)


def _decide(given: argparse.Namespace) -> int:
    with talking(given.server) as (api, threads, _):
        gate = threads.run(reviewing.gate(api, given.gate))
        body = body_of(given, gate)
        body |= {"preconditions": given.only_if} if given.only_if else {}
        body |= {"dropped": given.drop} if given.drop else {}
        if given.seen:
            body["seen"] = given.seen
        preview = threads.run(reviewing.preview(api, given.gate, body))
        told = [
            *describe.gate(gate, threads.run(state_of(api, gate))),
            line(),
            line("You decide: ", Span(given.verdict, BOLD)),
        ]
        if changes := decisions.edits_of(gate, body):
            told += [line("What you change:"), *describe.changed(changes)]
        told += [line("What it does:"), *describe.impact(preview["impact"], left=preview["left"])]
        sys.stderr.write(plain(told, colour=sys.stderr.isatty()))
        missing = sorted(set(decisions.repeats(preview)) - set(given.confirm))
        if missing:
            sys.stderr.write(f"Nothing was recorded. Confirm each with --confirm: {', '.join(map(str, missing))}\n")
            return exits.INVALID
        if sys.stdin.isatty() and not given.yes and not asks("Decide so?"):
            sys.stderr.write("Nothing was recorded.\n")
            return exits.INTERRUPTED
        body = {**decisions.confirming(body, preview, given.confirm), "second_look": given.second_look}
        made = threads.run(reviewing.decide(api, given.gate, body))
    return told_of(made, as_line=given.json)


def told_of(made: Mapping[str, Any], *, as_line: bool) -> int:
    """Write what was recorded, and return the exit code."""
    gate = made["gate"]
    settles = gate["status"] == "open" and gate.get("settles_at")
    ends = settles or gate["status"] != "open"
    if as_line:
        sys.stdout.write(as_json(made))
    else:
        left = gate["agreement"]["quorum"] - gate["agreement"]["agreed"]
        what = f"the gate is {gate['status']}" if ends else f"{left} more must approve"
        what = describe.settling(gate) if settles else what
        sys.stdout.write(plain([line("Recorded: ", said(made["verdict"], BOLD), f"; {what}.")]))
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
        return decisions.each(gate, _responses(given, gate), comment)
    if verdict == "each":
        actions = read_json(given.actions or "{}", "--actions")
        if not isinstance(actions, dict) or not actions:
            raise Wrong('give each action a verdict: --actions \'{"wire": {"verdict": "approve"}}\'')
        return decisions.each(gate, actions, comment, **then)
    return decisions.approve(gate, comment)


def _arguments(given: argparse.Namespace, gate: Mapping[str, Any]) -> dict[str, Any]:
    now = decisions.arguments_of(gate)
    new = read_json(given.arguments, "--arguments") if given.arguments else {}
    if not isinstance(new, dict):
        raise Wrong("--arguments is an object: new arguments by action id")
    schemas = {str(each["id"]): each.get("schema") or {} for each in gate["card"].get("actions") or ()}
    for each in given.set:
        pointer, equals, typed = each.partition("=")
        name, *rest = json_pointer.parts_of(pointer) if pointer.startswith("/") else [""]
        if not equals or name not in now:
            raise Wrong(f"--set takes /ACTION/PLACE=VALUE, with an action out of {', '.join(now)}; unlike {each!r}")
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
