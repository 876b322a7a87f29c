"""Describes gates, what decisions do, and runs, as lines. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from .. import json_pointer
from ..json_pointer import MISSING, Change
from .lines import (
    BOLD,
    GO,
    HOLD,
    PEN,
    PLAIN,
    QUOTE,
    SOFT,
    STOP,
    Line,
    Span,
    as_it_runs,
    make_line,
    quote_text,
    spell_unseen,
    value_span,
)

Json = Mapping[str, Any]
RISKS = {"low": SOFT, "medium": HOLD, "high": STOP, "critical": STOP}
VERDICTS = {
    "will": ("runs", GO), "may": ("may run", HOLD), "skipped": ("is skipped", SOFT), "stands": ("is reused", SOFT),
    "undone": ("is undone", STOP), "may_undone": ("may be undone", HOLD), "cannot": ("cannot be undone", STOP),
}  # fmt: skip
STATUS = {"waiting": HOLD, "failed": STOP, "completed": GO, "cancelled": SOFT}
FATES = {"stands": "goes on", "undone": "is undone", "may_undone": "may be undone", "cancelled": "is cancelled"}
CHOICES = {"approve": "If you approve", "stop": "If you reject and stop the run", "back": "If you send it back to"}
ABOUT = (("for", "for_whom"), ("amount", "amount"), ("about", "resource"))
DRAWN = 1000  # lines of a text at most
COST = 2_000_000  # pairs of equal lines, times lines: more take longer than people wait, and are drawn as replaced
LONG = 60  # characters of a value that are shown on its label's line


def ago(at: str, now: datetime | None = None) -> str:
    """Return how long ago a time was, or in how long it will be, as `5 min`."""
    try:
        then = datetime.fromisoformat(at.replace("Z", "+00:00"))
    except ValueError:
        return "?"
    seconds = abs(((now or datetime.now(timezone.utc)) - then).total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def risk(gate: Json) -> Span:
    """Return the risk as a word."""
    return Span(gate["risk"], RISKS.get(str(gate["risk"]), HOLD))


def title(gate: Json, style: str = BOLD) -> Span:
    """Return the title; in quotes where an external program wrote it."""
    words = Span(gate["title"], style)
    return Span(f"“{words.text}”", style) if gate.get("outside") else words


def gate(gate: Json, state: Json | None = None) -> list[Line]:
    """Describe a gate: what it asks, of whom, and how it ended. `state`: for the words that the card quotes."""
    card = gate["card"]
    # JSON Pointer into the card -> the mark of who says so; none for what is Holdpoint's own
    marks = {mark["at"]: mark["words"] for mark in gate.get("provenance") or () if mark["words"]}
    by = [Span(", "), Span(marks["/risk"], HOLD)] if marks.get("/risk") else []
    lines = [
        *marked(marks.get("/title")),
        make_line(title(gate)),
        make_line(Span(f"gate {gate['id']}", SOFT), ", risk ", risk(gate), *by, ", ", Span(gate["agent"]), " in ",
             Span(gate["team"]), f", run {gate['run']}, opened {ago(gate['opened_at'])} ago"),
    ]  # fmt: skip
    if gate["status"] != "open":
        lines += _ending(gate)
    elif gate.get("deadline"):
        lines.append(make_line("deadline in ", Span(ago(gate["deadline"]), HOLD)))
    about = [(label, name) for label, name in ABOUT if card.get(name)]
    lines += marked(next((marks[f"/{name}"] for _, name in about if marks.get(f"/{name}")), ""), ":")
    lines += [make_line(Span(f"{label}: ", SOFT), Span(card[name])) for label, name in about]
    lines += marked(marks.get("/reasons"), ":")
    lines += [make_line(Span("because: ", SOFT), Span(reason)) for reason in card.get("reasons") or ()]
    lines += [make_line(Span("! ", STOP), Span(words, STOP)) for words in gate.get("unsupported") or ()]
    if card.get("summary"):
        lines += [make_line(), *marked(marks.get("/summary") or "The agent says", ":"), *quote_text(card["summary"])]
    for at, quote in enumerate(card.get("quotes") or ()):
        lines += _quote(quote, state, marks.get(f"/quotes/{at}", ""))
    if card.get("charts"):
        lines.append(make_line(Span(f"{len(card['charts'])} charts are on the gate's page: {gate['url']}", SOFT)))
    for at, quote in enumerate(card.get("actions") or ()):
        lines += [make_line(), *action(quote, _within(marks, f"/actions/{at}"))]
    asked = [(action.get("arguments"), action.get("schema")) for action in card.get("actions") or ()]
    if '"$artifact"' in json.dumps(asked):  # arguments are files, or may be
        lines.append(make_line(Span(f"Files are read and uploaded on the gate's page: {gate['url']}", HOLD)))
    lines += _question(card) + _preconditions(card)
    return [*lines, make_line(), *agreement(gate)]


def marked(mark: str | None, end: str = "") -> list[Line]:
    """Return the line that says whose words follow; none without a mark."""
    return [make_line(Span(f"{mark}{end}", SOFT))] if mark else []


def action(action: Json, marks: Mapping[str, str] | None = None) -> list[Line]:
    """Describe an action: the tool and its arguments as they will run, the pinned ones first.

    `marks`: JSON Pointer into the action -> the mark of who says so.
    """
    marks, tool = marks or {}, Span(action.get("tool") or action["id"])
    name, own = Span(action["title"] or action["id"], BOLD), Span(f"  {action['id']}", SOFT)
    head = [Span("▸ ", PEN), name, own, Span(" → "), tool]
    if marks.get("/title"):  # a program's own words: its tool is the name
        words = [Span(f" “{name.text}”")] if action["title"] not in ("", tool.text) else []
        head = [Span("▸ ", PEN), Span(tool.text, BOLD), *words, own]
    lines = [make_line(*head)]
    if action.get("irreversible"):
        lines.append(make_line("  ", Span("cannot be undone", STOP)))
    elif action.get("undo"):
        by = Span(f", {marks['/undo']}" if marks.get("/undo") else "", SOFT)
        lines.append(make_line(Span("  undone by ", SOFT), Span(action["undo"], SOFT), by))
    arguments, pinned = action.get("arguments"), list(action.get("pinned") or ())
    for at, drawing in enumerate(action.get("draws") or ()):
        lines += draw_diff(drawing, arguments, marks.get(f"/draws/{at}", ""))
    lines += marked(next((marks[at] for at in marks if at.startswith("/arguments/")), ""), ":")
    for place in pinned:
        if (there := json_pointer.get(arguments, place)) is not MISSING:
            lines += labelled(place, there, BOLD)
    for place, there in leaves(arguments):
        if not any(place == pointer or place.startswith(pointer + "/") for pointer in pinned):
            lines += labelled(place, there)
    settled = action.get("settled")
    if settled:
        verdict = "rejected" if settled["verdict"] == "reject" else "answered instead"
        lines.append(make_line("  ", Span(f"{verdict} by ", HOLD), Span(settled["by"]), ": ",
                         Span(settled.get("reason") or json.dumps(settled.get("response")))))  # fmt: skip
    lines.append(make_line(Span(f"  takes: {', '.join(action.get('verdicts') or ()) or 'an answer'}", SOFT)))
    return lines


def labelled(place: str, argument: Any, style: str = PLAIN) -> list[Line]:
    """Return a value behind its place; a long text on lines of its own."""
    label = ".".join(json_pointer.parts_of(place)) or "value"
    if isinstance(argument, str) and ("\n" in argument or len(argument) > LONG):
        return [make_line("  ", Span(label, SOFT), ":"), *quote_text(as_it_runs(argument), indent="    ", style=style)]
    return [make_line("  ", Span(label, SOFT), ": ", value_span(argument, style))]


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is no object or list, and each empty one, with its pointer."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            yield from leaves(member, place + json_pointer.pointer_to(name))
    elif isinstance(value, list) and value:
        for at, member in enumerate(value):
            yield from leaves(member, place + json_pointer.pointer_to(at))
    elif value is not None or place:
        yield place, value


def agreement(gate: Json) -> list[Line]:
    """Describe who must approve, who has, and what the policy asks for."""
    tally = gate["agreement"]
    lines = [make_line(f"{tally['agreed']} of {tally['quorum']} approved; decided by ", Span(tally["who"]))]
    lines += [
        make_line(Span(words)) for words in (tally.get("needs"), tally.get("asked"), *tally.get("rules", ())) if words
    ]
    for vote in tally["voices"]:
        lapsed = Span("" if vote["counts"] else " (does not count any more)", SOFT)
        comment = [Span(": "), Span(vote["comment"], QUOTE)] if vote["comment"] else []
        lines.append(make_line("  ", Span(vote["name"]), " ", Span(vote["verdict"], BOLD), *comment, lapsed))
    if gate.get("settles_at"):
        lines.append(make_line(Span(f"Decided as {gate['settles_as']}: {settling(gate)}.", HOLD)))
    if gate["status"] == "open" and (gate.get("step_up") or not gate.get("tokens_decide", True)):
        why = "needs your password" if gate.get("step_up") else "takes no decisions by token"
        lines.append(make_line(Span(f"The policy {why}: decide at {gate['url']}", STOP)))
    return lines


def settling(gate: Json) -> str:
    """Say when a decision that can still be undone takes effect, and what undoes it."""
    return f"takes effect at {gate['settles_at'][11:19]} UTC; `holdpoint undo {gate['id']}` takes yours back"


def impact(impact: Json | None, *, missing: int = 0) -> list[Line]:
    """Describe what a choice or a rewind does, if nothing fails; `missing`: how many more must approve first."""
    if impact is None:
        return [make_line(Span("What it does is not known.", HOLD))]
    lines = [make_line(Span(f"{missing} more must approve before any of this happens.", HOLD))] if missing else []
    lines += [_row(step) for step in impact["rows"] if not step["kept"]]
    for child in impact.get("children") or ():
        lines.append(make_line("  run ", str(child["run"]), " ", Span(FATES.get(child["fate"], child["fate"]))))
    for child in impact.get("repeats") or ():
        when = f", done {ago(child['at'])} ago" if child.get("at") else ""
        lines.append(make_line(Span(f"! effect {child['effect']} would be done AGAIN: ", STOP),
                         Span(child.get("title") or child["step"], BOLD), when))  # fmt: skip
    if impact.get("asks"):
        lines.append(make_line("  then asks again at ", Span(impact["asks"])))
    elif impact.get("ends"):
        lines.append(make_line("  then the run ends"))
    return lines or [make_line("  Nothing runs.")]


def effects(preview: Json) -> list[Line]:
    """Describe what a decision does, by its preview."""
    return [make_line("What it does:"), *impact(preview["impact"], missing=preview["left"])]


def choices(choices: Iterable[Json]) -> list[Line]:
    """Describe what each choice at a gate would do."""
    lines: list[Line] = []
    for choice in choices:
        head = CHOICES.get(choice["choice"], f"If you answer {choice['of']}")
        step = [Span(" "), Span(choice["of"], BOLD)] if choice["choice"] == "back" else []
        lines += [make_line(), make_line(Span(head, BOLD), *step, ":")]
        lines += impact(choice["impact"], missing=choice["left"])
    return lines


def run(run: Json) -> list[Line]:
    """Describe a run in two lines, or three where there is a reason."""
    status = Span(run["status"], status_style(run))
    lines = [
        make_line(Span(run["title"], BOLD)),
        make_line(Span(f"run {run['id']}  ", SOFT), status, Span(f"  {run['agent']}", SOFT)),
    ]
    return lines + ([make_line(Span(run["reason"], HOLD))] if run["reason"] else [])


def status_style(run: Json) -> str:
    return STATUS.get(run["status"], BOLD)


def repeats_for_good(impact: Json) -> bool:
    """Tell whether a rewind does something once more that cannot be undone."""
    return any(row.get("again") and row["irreversible"] for row in impact["rows"])


def made_by(checkpoint: Json) -> str:
    """Return the step that was saved, with what made the checkpoint if that was no step."""
    kind, step = checkpoint["kind"], checkpoint["step"]
    return str(step) if kind in ("step", step) else f"{kind} {step}".strip()


def own_changes(changes: Sequence[Change]) -> list[Line]:
    """Describe what a decision changes; nothing where it changes nothing."""
    return [make_line("What you change:"), *changed(changes)] if changes else []


def changed(changes: Iterable[Change]) -> list[Line]:
    """Describe differences: what was, and what is instead."""
    lines: list[Line] = []
    for change in changes:
        lines.append(make_line("  ", Span(".".join(json_pointer.parts_of(change.pointer)) or "value", SOFT)))
        if change.before is not MISSING:
            lines += [make_line("    ", Span("- ", STOP), value_span(change.before, STOP))]
        if change.after is not MISSING:
            lines += [make_line("    ", Span("+ ", GO), value_span(change.after, GO))]
    return lines or [make_line(Span("  No value differs.", SOFT))]


def _row(row: Json) -> Line:
    words, style = VERDICTS.get(row["verdict"], (str(row["verdict"]), PLAIN))
    if row["asks"]:
        words = {"will": "asks", "may": "may ask"}.get(row["verdict"], words)
    more = [Span(" again", STOP)] if row.get("again") else []
    more += [Span(", cannot be undone", STOP)] if row["irreversible"] and row["verdict"] in ("will", "may") else []
    more += [Span(f", depends on {', '.join(row['on'])}", SOFT)] if row["on"] else []
    title = [Span(f": {row['title']}", SOFT)] if row.get("title") else []
    return make_line("  ", Span(row["step"], BOLD), " ", Span(words, style), *more, *title)


def _ending(gate: Json) -> list[Line]:
    outcome = gate.get("outcome")
    if not outcome:
        return [make_line(Span(gate["status"], BOLD))]
    by = [Span(" by "), Span(outcome["by"])] if outcome["by"] else []
    feedback = [Span(": "), Span(outcome["feedback"], QUOTE)] if outcome.get("feedback") else []
    return [make_line(Span(outcome["kind"], BOLD), *by, f" {ago(outcome['at'])} ago", *feedback)]


def _within(marks: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the marks within one place, by the rest of their pointers."""
    return {at.removeprefix(place): words for at, words in marks.items() if at.startswith(f"{place}/")}


def _quote(quote: Json, state: Json | None, mark: str) -> list[Line]:
    words = json_pointer.get(state, str(quote["pointer"])) if state is not None else MISSING
    head = make_line(Span(f"{quote['label']}, {quote.get('role') or 'quoted'}:", SOFT))
    shown = quote_text(words) if isinstance(words, str) else [make_line(Span("  the text is on the gate's page", SOFT))]
    return [make_line(), *marked(mark), head, *shown]


def _question(card: Json) -> list[Line]:
    asked = card.get("question")
    if not asked:
        return []
    lines = [make_line(), make_line(Span(asked["text"], BOLD))]
    return lines + [
        make_line("  ", Span(choice["id"], PEN), ": ", Span(choice.get("label") or "")) for choice in asked["choices"]
    ]


def _preconditions(card: Json) -> list[Line]:
    lines: list[Line] = []
    for precondition in card.get("preconditions") or ():
        how = "unless dropped" if precondition.get("preselected") else "if added"
        how = "always" if precondition.get("required") else how
        words, more = condition(precondition), f"  {precondition['id']}, {how}"
        lines.append(make_line(Span("only if ", SOFT), words, Span(more, SOFT)))
    return lines


def condition(precondition: Json) -> str:
    """Return the words of a precondition, with what was observed."""
    return str(precondition["label"]).replace("{value}", str(precondition.get("value")))


def draw_diff(drawing: Mapping[str, Any], arguments: Any, mark: str = "") -> Iterator[Line]:
    """Yield what an edit changes, line by line; nothing for what is no edit. The exact texts are shown beside it.

    `mark`: who says what was there, where that is only what a program says.
    """
    old = json_pointer.get(arguments, drawing["before"]) if drawing.get("before") else drawing.get("was", "")
    new = json_pointer.get(arguments, drawing["at"])
    if drawing["kind"] != "diff" or not isinstance(old, str) or not isinstance(new, str):
        return
    was, now = old.split("\n"), new.split("\n")
    if max(len(was), len(now)) > DRAWN:
        return
    if mark or drawing.get("was"):
        yield make_line(Span(f"    {mark or 'compared with what the agent found there when it asked'}:", SOFT))
    shown = 0  # lines of the new text
    for group in _compared(was, now).get_grouped_opcodes():
        yield from _folded(group[0][3] - shown)
        for verb, a, b, c, d in group:
            old_style, new_style = ("", PLAIN) if verb == "equal" else (STOP, GO)
            yield from (make_line("    ", Span(f"-{spell_unseen(text)}", old_style)) for text in was[a:b] if old_style)
            sign = "+" if old_style else " "
            yield from (make_line("    ", Span(f"{sign}{spell_unseen(text)}", new_style)) for text in now[c:d])
        shown = group[-1][4]
    yield from _folded(len(now) - shown)


def _compared(was: Sequence[str], now: Sequence[str]) -> SequenceMatcher[object]:
    """Compare what lies between the ends that both texts share. Lines that occur often would cost cubic time."""
    head = _shared(was, now)
    tail = _shared(was[head:][::-1], now[head:][::-1])
    old: Sequence[object] = was[head : len(was) - tail]
    new: Sequence[object] = now[head : len(now) - tail]
    often, lines = Counter(new), max(len(old), len(new))
    if (sum(often[text] for text in old) + lines) * lines > COST:
        old, new = [object() for _ in old], [object() for _ in new]  # none is like another
    start, end = range(head), range(-tail, 0)
    return SequenceMatcher(None, [*start, *old, *end], [*start, *new, *end], autojunk=False)


def _shared(was: Sequence[str], now: Sequence[str]) -> int:
    """Count the lines with which both texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False)))


def _folded(count: int) -> Iterator[Line]:
    """Yield the mark of lines that are in both texts: they are part of what runs, and stand whole below."""
    if count:
        words = f"{count} lines are in both texts" if count > 1 else "1 line is in both texts"
        yield make_line(Span(f"    … {words}; the new text is whole below", HOLD))
