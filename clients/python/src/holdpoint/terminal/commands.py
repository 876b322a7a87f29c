"""The commands for scripts and pipes, each a function from arguments to an exit code; none needs Textual."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import json_pointer
from ..errors import Problem, Unreachable
from . import describe, forms, reviewing
from .command_line import (
    DONE,
    INTERRUPTED,
    INVALID,
    MORE_NEEDED,
    Wrong,
    as_json,
    ask_to_confirm,
    make_parser,
    open_connection,
    parse_and_run,
    read_json,
)
from .lines import BOLD, SOFT, Line, Span, count_columns, make_line, one_line, pad_text, write_lines
from .reviewing import Json

GONE = 410
VERDICTS = ("approve", "edit", "reject", "respond", "answer", "each")
DECIDES = """Decide a gate. What it would do is shown first, and it is recorded only if it still does exactly that.

  approve   all that the gate asks
  edit      with --set /ACTION/place=value, or --arguments JSON
  reject    with --comment, and --stop or --back
  respond   with --response: the agent gets the answer, and the action does not run
  answer    the question of a recovery gate, with --choice
  each      with --actions JSON: a verdict for each action

At a terminal you are asked to confirm, unless --yes. In a script you are not."""


def list_gates(arguments: Sequence[str]) -> int:
    parser = make_parser("gates", "List the open gates that you may see, the longest open first.")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each, as the API has them")
    return parse_and_run(_list_gates, parser, arguments)


def _list_gates(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        gates = threads.run(reviewing.gates(api))
    if given.json:
        sys.stdout.write("".join(map(as_json, gates)))
        return DONE
    if not gates:
        sys.stderr.write("No gate is open.\n")
    room = shutil.get_terminal_size().columns
    wide = max((len(str(gate["id"])) for gate in gates), default=0)
    for gate in gates:
        who = f"{one_line(gate['agent'], 20)}, {one_line(gate['team'], 20)}"
        due = f", due in {describe.ago(gate['deadline'])}" if gate["deadline"] else ""
        end = f"  {who}, {describe.ago(gate['opened_at'])}{due}"
        number, risk, title = str(gate["id"]).rjust(wide) + "  ", describe.risk(gate), describe.title(gate)
        used = wide + 2 + max(count_columns(risk.text) + 2, 10)
        width = max(room - used - count_columns(end), 20)
        what = Span(pad_text(one_line(title.text, width), width), title.style)
        write_lines(
            [make_line(Span(number, SOFT), Span(pad_text(risk.text, 8), risk.style), "  ", what, Span(end, SOFT))]
        )
    return DONE


def show_gate(arguments: Sequence[str]) -> int:
    parser = make_parser("show", "Show what a gate asks, who has approved, and what each choice would do.")
    parser.add_argument("gate", type=int, help="the gate's number")
    parser.add_argument("--json", action="store_true", help="the gate as the API has it, with its choices in `choices`")
    return parse_and_run(_show_gate, parser, arguments)


def _show_gate(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        gate = threads.run(reviewing.gate(api, given.gate))
        choices = threads.run(reviewing.choices(api, gate))
        state = threads.run(reviewing.quoted_state(api, gate))
    lines = [*describe.gate(gate, state), *describe.choices(choices)]
    _write_answer(given, [{**gate, "choices": choices}], lines)
    return DONE


def decide_gate(arguments: Sequence[str]) -> int:
    parser = make_parser("decide", DECIDES)
    add = parser.add_argument
    add("gate", type=int, help="the gate's number")
    add("verdict", choices=VERDICTS)
    add("--comment", default="", help="the reason for a rejection, or a comment")
    add("--set", action="append", default=[], metavar="/ACTION/PLACE=VALUE", help="change one argument")
    add("--arguments", default="", metavar="JSON", help="new arguments by action id; @file, - for stdin")
    add("--actions", default="", metavar="JSON", help="a verdict for each action, as the API takes them")
    add("--response", default=None, metavar="TEXT", help="the answer, or JSON where it takes no text")
    add("--choice", default="", metavar="ID", help="the answer to the question")
    add("--value", default="", metavar="JSON", help="the value of that answer")
    then = parser.add_mutually_exclusive_group()
    then.add_argument("--stop", action="store_true", help="a rejection ends the run")
    then.add_argument("--back", nargs="?", const="", default=None, metavar="STEP", help="a rejection sends it back")
    words = "only if this optional precondition of the card still holds, by its id"
    add("--only-if", action="append", default=[], metavar="ID", help=words)
    add("--drop", action="append", default=[], metavar="ID", help="without this preselected precondition")
    add("--seen", default="", metavar="DIGEST", help="the `digest` that you read with show --json")
    add("--confirm", action="append", type=int, default=[], metavar="EFFECT", help="repeat this effect")
    add("--second-look", action="store_true", help="you looked once more, after many fast approvals")
    add("--yes", action="store_true", help="do not ask to confirm")
    add("--json", action="store_true", help="the recorded decision as JSON")
    return parse_and_run(_decide_gate, parser, arguments)


def _decide_gate(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        gate = threads.run(reviewing.gate(api, given.gate))
        gate["form"] = threads.run(reviewing.form(api, given.gate)) if given.set else {}
        body = body_of(given, gate)
        body |= {"preconditions": given.only_if} if given.only_if else {}
        body |= {"dropped": given.drop} if given.drop else {}
        body |= {"seen": given.seen} if given.seen else {}
        preview = threads.run(reviewing.preview(api, given.gate, body))
        card = describe.gate(gate, threads.run(reviewing.quoted_state(api, gate)))
        verdict = make_line("You decide: ", Span(given.verdict, BOLD))
        changes = describe.own_changes(reviewing.edits_of(gate, body))
        write_lines([*card, make_line(), verdict, *changes, *describe.effects(preview)], sys.stderr)
        if missing := sorted(set(reviewing.repeats(preview)) - set(given.confirm)):
            sys.stderr.write(f"Nothing was recorded. Confirm each with --confirm: {', '.join(map(str, missing))}\n")
            return INVALID
        if sys.stdin.isatty() and not given.yes and not ask_to_confirm("Decide so?"):
            sys.stderr.write("Nothing was recorded.\n")
            return INTERRUPTED
        body = {**reviewing.bind(body, preview, given.confirm), "second_look": given.second_look}
        decision = threads.run(reviewing.decide(api, given.gate, body))
    gate = decision["gate"]
    settles = gate["status"] == "open" and gate.get("settles_at")
    ends = settles or gate["status"] != "open"
    missing = gate["agreement"]["quorum"] - gate["agreement"]["agreed"]
    what = f"the gate is {gate['status']}" if ends else f"{missing} more must approve"
    what = describe.settling(gate) if settles else what
    _write_answer(given, [decision], [make_line("Recorded: ", Span(decision["verdict"], BOLD), f"; {what}.")])
    return DONE if ends else MORE_NEEDED


def body_of(given: argparse.Namespace, gate: Json) -> Json:
    """Return the decision that the command line describes. Raises Wrong."""
    verdict, comment = given.verdict, given.comment
    then = {"then": reviewing.STOP} if given.stop else {}
    then |= {} if given.back is None else {"then": reviewing.BACK, "back_to": given.back}
    if then and verdict not in ("reject", "each"):
        raise Wrong("--stop and --back belong to a rejection")
    if verdict == "reject":
        if not then:
            raise Wrong("say what the run does after the rejection: --stop, or --back [STEP]")
        return reviewing.reject(gate, comment, back_to=given.back)
    if verdict == "edit":
        return reviewing.edit(gate, _edited(given, gate), comment)
    if verdict == "answer":
        if not given.choice:
            raise Wrong("say which answer: --choice ID")
        value = read_json(given.value, "--value") if given.value else None
        return reviewing.answer(gate, given.choice, value, comment)
    if verdict == "respond":
        return reviewing.decide_actions(gate, _responses(given, gate), comment)
    if verdict == "each":
        actions = read_json(given.actions or "{}", "--actions")
        if not isinstance(actions, dict) or not actions:
            raise Wrong('give each action a verdict: --actions \'{"wire": {"verdict": "approve"}}\'')
        return reviewing.decide_actions(gate, actions, comment, **then)
    return reviewing.approve(gate, comment)


def _edited(given: argparse.Namespace, gate: Json) -> Json:
    now = reviewing.arguments_of(gate)
    new = read_json(given.arguments, "--arguments") if given.arguments else {}
    if not isinstance(new, dict):
        raise Wrong("--arguments is an object: new arguments by action id")
    parts = {action["id"]: action["form"] for action in gate["form"].get("actions", ())}
    for setting in given.set:
        pointer, equals, typed = setting.partition("=")
        name, *rest = json_pointer.parts_of(pointer) if pointer.startswith("/") else [""]
        if not equals or name not in now:
            raise Wrong(f"--set takes /ACTION/PLACE=VALUE, with an action out of {', '.join(now)}; unlike {setting!r}")
        place = json_pointer.pointer_to(*rest)
        fields = forms.fields_of(parts[name], new.get(name, now[name]))
        if place not in {field.part["pointer"] for field in fields}:
            raise Wrong(f"there is no value at {place or '/'} of {name}; give --arguments for all of them")
        try:
            new[name] = forms.filled(new.get(name, now[name]), fields, {place: typed})
        except forms.NotValid as fault:
            raise Wrong(str(fault)) from fault
    if not new:
        raise Wrong("say what you change: --set /ACTION/PLACE=VALUE, or --arguments JSON")
    return new


def _responses(given: argparse.Namespace, gate: Json) -> Json:
    actions = reviewing.actions_of(gate)
    if given.response is None or len(actions) != 1:
        raise Wrong("respond takes --response, for a gate with one action; for several use `each`")
    value = given.response if reviewing.takes_text(actions[0]) else read_json(given.response, "--response")
    return {actions[0]["id"]: {"verdict": reviewing.RESPOND, "response": value}}


def undo_decision(arguments: Sequence[str]) -> int:
    does = "Take your decision back, so that it counts no more. It works until the decision takes effect, where the\n"
    parser = make_parser("undo", f"{does}gate's policy gives time for that; `holdpoint show` says until when.")
    parser.add_argument("gate", type=int, help="the gate's number")
    parser.add_argument("--json", action="store_true", help="the decision that was undone, as JSON")
    return parse_and_run(_undo_decision, parser, arguments)


def _undo_decision(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        undone = threads.run(reviewing.undo(api, given.gate))
    what = f"; the gate is {undone['gate']['status']}."
    _write_answer(given, [undone], [make_line("Undone: ", Span(undone["verdict"], BOLD), what)])
    return DONE


def list_runs(arguments: Sequence[str]) -> int:
    parser = make_parser(
        "runs", "List the newest runs that you may see; or, of one run, its checkpoints, the newest first."
    )
    parser.add_argument("run", type=int, nargs="?", help="the number of a run")
    parser.add_argument("--status", default="", help="only runs with this status, as waiting")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each run, or for each checkpoint")
    return parse_and_run(_list_runs, parser, arguments)


def _list_runs(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        if given.run is None:
            rows = threads.run(reviewing.runs(api, status=given.status))
            lines = [_run_line(run) for run in rows]
        else:
            run = threads.run(reviewing.run(api, given.run))
            rows = threads.run(reviewing.checkpoints(api, given.run))
            lines = [*describe.run(run), *map(_checkpoint_line, rows)]
    _write_answer(given, rows, lines)
    return DONE


def _write_answer(given: argparse.Namespace, answers: Sequence[Json], lines: Sequence[Line]) -> None:
    """Write the lines; with --json the answers, each as a line of JSON."""
    if given.json:
        sys.stdout.write("".join(map(as_json, answers)))
    else:
        write_lines(lines)


def _run_line(run: Json) -> Line:
    status = Span(pad_text(one_line(run["status"], 10), 10), describe.status_style(run))
    words = f"  {one_line(run['agent'], 20)}, {describe.ago(run['created_at'])}"
    return make_line(Span(f"{run['id']}  ", SOFT), status, " ", one_line(run["title"], 60), Span(words, SOFT))


def _checkpoint_line(checkpoint: Json) -> Line:
    after = f"  then {one_line(checkpoint['next_step'] or 'the end', 30)}, {describe.ago(checkpoint['at'])} ago"
    return make_line(Span(f"{checkpoint['seq']}  ", BOLD), Span(describe.made_by(checkpoint)), Span(after, SOFT))


def rewind_run(arguments: Sequence[str]) -> int:
    does = "Send a run back to a checkpoint. What that does is shown first, and it is done just so or not at all."
    parser = make_parser("rewind", f"{does} At a\nterminal you are asked to confirm, unless --yes.")
    parser.add_argument("run", type=int, help="the run's number")
    parser.add_argument("checkpoint", type=int, help="the checkpoint's number, as `holdpoint runs RUN` lists it")
    parser.add_argument("--feedback", default="", help="what the agent should do differently")
    parser.add_argument("--again", action="store_true", help="do once more even what cannot be undone")
    parser.add_argument("--yes", action="store_true", help="do not ask to confirm")
    parser.add_argument("--json", action="store_true", help="what was recorded, as JSON")
    return parse_and_run(_rewind_run, parser, arguments)


def _rewind_run(given: argparse.Namespace) -> int:
    with open_connection(given.server) as (api, threads, _):
        run = threads.run(reviewing.run(api, given.run))
        impact = threads.run(reviewing.rewind_impact(api, given.run, given.checkpoint, given.feedback))
        head = make_line(f"Back to checkpoint {given.checkpoint}. What it does:")
        write_lines([*describe.run(run), head, *describe.impact(impact)], sys.stderr)
        if describe.repeats_for_good(impact) and not given.again:
            sys.stderr.write("Nothing was ordered. Confirm with --again that it is done once more for good.\n")
            return INVALID
        if sys.stdin.isatty() and not given.yes and not ask_to_confirm("Rewind it so?"):
            sys.stderr.write("Nothing was ordered.\n")
            return INTERRUPTED
        order = {"to": given.checkpoint, "feedback": given.feedback, "seen": impact["digest"], "confirm": given.again}
        rewound = threads.run(reviewing.rewind(api, given.run, order))
    words = f"Run {given.run} was sent back to checkpoint {given.checkpoint}."
    _write_answer(given, [rewound], [make_line(words)])
    return DONE


def watch_events(arguments: Sequence[str]) -> int:
    parser = make_parser("watch", "Write a line for each event that you may see, as it happens.")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each event, with its `cursor`")
    parser.add_argument("--after", default="", metavar="CURSOR", help="begin after this event; otherwise with new ones")
    parser.add_argument("--subject", default="", metavar="gate:42|run:7", help="events of this gate or run only")
    parser.add_argument("--cursor-file", default="", metavar="FILE", help="keep the place there, and begin there again")
    parser.add_argument("--once", action="store_true", help="write what there is, and end")
    return parse_and_run(_watch_events, parser, arguments)


def _watch_events(given: argparse.Namespace) -> int:
    place = Path(given.cursor_file) if given.cursor_file else None
    after = given.after or (place.read_text().strip() if place and place.exists() else "") or "now"
    with open_connection(given.server, patience=60.0) as (api, threads, _):
        while True:
            try:
                wait = 0.0 if given.once else reviewing.WAIT
                page = threads.run(reviewing.events(api, after, subject=given.subject, wait=wait))
            except Unreachable as error:
                sys.stderr.write(f"holdpoint: {error} It is tried again.\n")
                continue
            except Problem as refused:
                if refused.status != GONE:
                    raise
                sys.stderr.write(f"holdpoint: {refused.detail}\n")
                after = "now"
                continue
            for event in page["items"]:
                if given.json:
                    sys.stdout.write(as_json(event))
                else:  # an event does not say who wrote its title
                    title = f"  “{Span(event['title']).text}”" if event["title"] else ""
                    write_lines([make_line(Span(event["kind"], BOLD), "  ", Span(event["subject"], SOFT), title)])
                sys.stdout.flush()
                _keep_cursor(place, event["cursor"])  # after its line: a line may come twice, and none is lost
            after = page["next"]
            _keep_cursor(place, after)
            if given.once and not page["more"]:
                return DONE


def _keep_cursor(place: Path | None, cursor: str) -> None:
    if place is not None:
        new = place.with_name(f".{place.name}.new")
        new.write_text(cursor + "\n")
        new.replace(place)
