"""Describes gates, what decisions do, and runs, as lines. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

from .. import json_pointer
from ..json_pointer import MISSING, Change
from . import diffs
from .lines import BOLD, GO, HOLD, PEN, PLAIN, QUOTE, SOFT, STOP, Line, Span, line, quoted, said, value
from .safe import as_it_runs

Json = Mapping[str, Any]
RISKS = {"low": SOFT, "medium": HOLD, "high": STOP, "critical": STOP}
VERDICTS = {
    "will": ("runs", GO), "may": ("may run", HOLD), "skipped": ("is skipped", SOFT), "stands": ("is reused", SOFT),
    "undone": ("is undone", STOP), "may_undone": ("may be undone", HOLD), "cannot": ("cannot be undone", STOP),
}  # fmt: skip
STATUS = {"waiting": HOLD, "failed": STOP, "completed": GO, "cancelled": SOFT}
FATES = {"stands": "goes on", "undone": "is undone", "may_undone": "may be undone", "cancelled": "is cancelled"}
ABOUT = (("for", "for_whom"), ("amount", "amount"), ("about", "resource"))
NONE: Mapping[str, str] = MappingProxyType({})
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
    return said(gate["risk"], RISKS.get(str(gate["risk"]), HOLD))


def title(gate: Json, style: str = BOLD) -> Span:
    """Return the title; in quotes where an external program wrote it."""
    words = said(gate["title"], style)
    return Span(f"“{words.text}”", style) if gate.get("outside") else words


def gate(found: Json, state: Json | None = None) -> list[Line]:
    """Describe a gate: what it asks, of whom, and how it ended. `state`: for the words that the card quotes."""
    card, marks = found["card"], marks_of(found)
    by = [Span(", "), said(marks["/risk"], HOLD)] if marks.get("/risk") else []
    told = [
        *marked(marks.get("/title")),
        line(title(found)),
        line(Span(f"gate {found['id']}", SOFT), ", risk ", risk(found), *by, ", ", said(found["agent"]), " in ",
             said(found["team"]), f", run {found['run']}, opened {ago(found['opened_at'])} ago"),
    ]  # fmt: skip
    if found["status"] != "open":
        told += _ending(found)
    elif found.get("deadline"):
        told.append(line("deadline in ", Span(ago(found["deadline"]), HOLD)))
    about = [(label, name) for label, name in ABOUT if card.get(name)]
    told += marked(next((marks[f"/{name}"] for _, name in about if marks.get(f"/{name}")), ""), ":")
    told += [line(Span(f"{label}: ", SOFT), said(card[name])) for label, name in about]
    told += marked(marks.get("/reasons"), ":")
    for reason in card.get("reasons") or ():
        told.append(line(Span("because: ", SOFT), said(reason)))
    for words in found.get("unsupported") or ():
        told.append(line(Span("! ", STOP), said(words, STOP)))
    if card.get("summary"):
        told += [line(), *marked(marks.get("/summary") or "The agent says", ":"), *quoted(card["summary"])]
    for at, each in enumerate(card.get("quotes") or ()):
        told += _quote(each, state, marks.get(f"/quotes/{at}", ""))
    if card.get("charts"):
        told.append(line(Span(f"{len(card['charts'])} charts are on the gate's page: {found['url']}", SOFT)))
    for at, each in enumerate(card.get("actions") or ()):
        told += [line(), *action(each, _within(marks, f"/actions/{at}"))]
    if _has_files(card):
        told.append(line(Span(f"Files are read and uploaded on the gate's page: {found['url']}", HOLD)))
    told += _question(card) + _preconditions(card)
    return [*told, line(), *agreement(found)]


def _has_files(card: Json) -> bool:
    """Tell whether arguments are files, or may be."""
    asked = [(each.get("arguments"), each.get("schema")) for each in card.get("actions") or ()]
    return '"$artifact"' in json.dumps(asked)


def marks_of(found: Json) -> dict[str, str]:
    """Return JSON Pointer into the card -> the mark of who says so; none for what is Holdpoint's own."""
    return {each["at"]: each["words"] for each in found.get("provenance") or () if each["words"]}


def marked(mark: str | None, end: str = "") -> list[Line]:
    """Return the line that says whose words follow; none without a mark."""
    return [line(said(f"{mark}{end}", SOFT))] if mark else []


def action(found: Json, marks: Mapping[str, str] = NONE) -> list[Line]:
    """Describe an action: the tool and its arguments as they will run, the pinned ones first.

    `marks`: JSON Pointer into the action -> the mark of who says so.
    """
    tool = said(found.get("tool") or found["id"])
    name, own = said(found["title"] or found["id"], BOLD), Span(f"  {found['id']}", SOFT)
    head = [Span("▸ ", PEN), name, own, Span(" → "), tool]
    if marks.get("/title"):  # a program's own words: its tool is the name
        words = [Span(f" “{name.text}”")] if found["title"] not in ("", tool.text) else []
        head = [Span("▸ ", PEN), Span(tool.text, BOLD), *words, own]
    told = [line(*head)]
    if found.get("irreversible"):
        told.append(line("  ", Span("cannot be undone", STOP)))
    elif found.get("undo"):
        by = Span(f", {marks['/undo']}" if marks.get("/undo") else "", SOFT)
        told.append(line(Span("  undone by ", SOFT), said(found["undo"], SOFT), by))
    arguments, pinned = found.get("arguments"), list(found.get("pinned") or ())
    for at, each in enumerate(found.get("draws") or ()):
        told += diffs.draw_diff(each, arguments, marks.get(f"/draws/{at}", ""))
    told += marked(next((marks[at] for at in marks if at.startswith("/arguments/")), ""), ":")
    for place in pinned:
        if (there := json_pointer.get(arguments, place)) is not MISSING:
            told += labelled(place, there, BOLD)
    for place, there in leaves(arguments):
        if not any(place == each or place.startswith(each + "/") for each in pinned):
            told += labelled(place, there)
    settled = found.get("settled")
    if settled:
        verdict = "rejected" if settled["verdict"] == "reject" else "answered instead"
        told.append(line("  ", Span(f"{verdict} by ", HOLD), said(settled["by"]), ": ",
                         said(settled.get("reason") or json.dumps(settled.get("response")))))  # fmt: skip
    told.append(line(Span(f"  takes: {', '.join(found.get('verdicts') or ()) or 'an answer'}", SOFT)))
    return told


def labelled(place: str, there: Any, style: str = PLAIN) -> list[Line]:
    """Return a value behind its place; a long text on lines of its own."""
    label = ".".join(json_pointer.parts_of(place)) or "value"
    if isinstance(there, str) and ("\n" in there or len(there) > LONG):
        return [line("  ", said(label, SOFT), ":"), *quoted(as_it_runs(there), indent="    ", style=style)]
    return [line("  ", said(label, SOFT), ": ", value(there, style))]


def leaves(found: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is no object or list, and each empty one, with its pointer."""
    if isinstance(found, dict) and found:
        for name, each in found.items():
            yield from leaves(each, place + json_pointer.pointer_to(name))
    elif isinstance(found, list) and found:
        for at, each in enumerate(found):
            yield from leaves(each, place + json_pointer.pointer_to(at))
    elif found is not None or place:
        yield place, found


def agreement(found: Json) -> list[Line]:
    """Describe who must approve, who has, and what the policy asks for."""
    told = found["agreement"]
    lines = [line(f"{told['agreed']} of {told['quorum']} approved; decided by ", said(told["who"]))]
    lines += [line(said(each)) for each in (told.get("needs"), told.get("asked"), *told.get("rules", ())) if each]
    for vote in told["voices"]:
        lapsed = Span("" if vote["counts"] else " (does not count any more)", SOFT)
        comment = [Span(": "), said(vote["comment"], QUOTE)] if vote["comment"] else []
        lines.append(line("  ", said(vote["name"]), " ", said(vote["verdict"], BOLD), *comment, lapsed))
    if found.get("settles_at"):
        lines.append(line(Span(f"Decided as {found['settles_as']}: {settling(found)}.", HOLD)))
    if found["status"] == "open" and (found.get("step_up") or not found.get("tokens_decide", True)):
        why = "needs your password" if found.get("step_up") else "takes no decisions by token"
        lines.append(line(Span(f"The policy {why}: decide at {found['url']}", STOP)))
    return lines


def settling(found: Json) -> str:
    """Say when a decision that can still be undone takes effect, and what undoes it."""
    return f"takes effect at {found['settles_at'][11:19]} UTC; `holdpoint undo {found['id']}` takes yours back"


def impact(found: Json | None, *, left: int = 0) -> list[Line]:
    """Describe what a choice or a rewind does, if nothing fails; `left`: how many more must approve first."""
    if found is None:
        return [line(Span("What it does is not known.", HOLD))]
    told = [line(Span(f"{left} more must approve before any of this happens.", HOLD))] if left else []
    told += [row for each in found["rows"] if not each["kept"] for row in _row(each)]
    for each in found.get("children") or ():
        told.append(line("  run ", str(each["run"]), " ", said(FATES.get(each["fate"], each["fate"]))))
    for each in found.get("repeats") or ():
        when = f", done {ago(each['at'])} ago" if each.get("at") else ""
        told.append(line(Span(f"! effect {each['effect']} would be done AGAIN: ", STOP),
                         said(each.get("title") or each["step"], BOLD), when))  # fmt: skip
    if found.get("asks"):
        told.append(line("  then asks again at ", said(found["asks"])))
    elif found.get("ends"):
        told.append(line("  then the run ends"))
    return told or [line("  Nothing runs.")]


def repeats_for_good(impact: Json) -> bool:
    """Tell whether a rewind does something once more that cannot be undone."""
    return any(each.get("again") and each["irreversible"] for each in impact["rows"])


def made_by(checkpoint: Json) -> str:
    """Return the step that was saved, with what made the checkpoint if that was no step."""
    kind, step = checkpoint["kind"], checkpoint["step"]
    return str(step) if kind in ("step", step) else f"{kind} {step}".strip()


def changed(found: Iterable[Change]) -> list[Line]:
    """Describe differences: what was, and what is instead."""
    told: list[Line] = []
    for each in found:
        told.append(line("  ", said(".".join(json_pointer.parts_of(each.pointer)) or "value", SOFT)))
        if each.before is not MISSING:
            told += [line("    ", Span("- ", STOP), value(each.before, STOP))]
        if each.after is not MISSING:
            told += [line("    ", Span("+ ", GO), value(each.after, GO))]
    return told or [line(Span("  No value differs.", SOFT))]


def _row(found: Json) -> list[Line]:
    words, style = VERDICTS.get(found["verdict"], (str(found["verdict"]), PLAIN))
    if found["asks"]:
        words = {"will": "asks", "may": "may ask"}.get(found["verdict"], words)
    more = [Span(" again", STOP)] if found.get("again") else []
    more += [Span(", cannot be undone", STOP)] if found["irreversible"] and found["verdict"] in ("will", "may") else []
    more += [Span(f", depends on {', '.join(said(each).text for each in found['on'])}", SOFT)] if found["on"] else []
    title = [Span(": ", SOFT), said(found["title"], SOFT)] if found.get("title") else []
    return [line("  ", said(found["step"], BOLD), " ", Span(words, style), *more, *title)]


def _ending(found: Json) -> list[Line]:
    outcome = found.get("outcome")
    if not outcome:
        return [line(said(found["status"], BOLD))]
    by = [Span(" by "), said(outcome["by"])] if outcome["by"] else []
    feedback = [Span(": "), said(outcome["feedback"], QUOTE)] if outcome.get("feedback") else []
    return [line(said(outcome["kind"], BOLD), *by, f" {ago(outcome['at'])} ago", *feedback)]


def _within(marks: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the marks within one place, by the rest of their pointers."""
    return {at.removeprefix(place): words for at, words in marks.items() if at.startswith(f"{place}/")}


def _quote(found: Json, state: Json | None, mark: str) -> list[Line]:
    words = json_pointer.get(state, str(found["pointer"])) if state is not None else MISSING
    head = line(Span(f"{said(found['label']).text}, {said(found.get('role') or 'quoted').text}:", SOFT))
    shown = quoted(words) if isinstance(words, str) else [line(Span("  the text is on the gate's page", SOFT))]
    return [line(), *marked(mark), head, *shown]


def _question(card: Json) -> list[Line]:
    asked = card.get("question")
    if not asked:
        return []
    told = [line(), line(said(asked["text"], BOLD))]
    return told + [line("  ", said(each["id"], PEN), ": ", said(each.get("label") or "")) for each in asked["choices"]]


def _preconditions(card: Json) -> list[Line]:
    told: list[Line] = []
    for each in card.get("preconditions") or ():
        how = "always" if each.get("required") else "unless dropped" if each.get("preselected") else "if added"
        told.append(line(Span("only if ", SOFT), said(condition(each)), Span(f"  {each['id']}, {how}", SOFT)))
    return told


def condition(found: Json) -> str:
    """Return the words of a precondition, with what was observed."""
    return str(found["label"]).replace("{value}", str(found.get("value")))
