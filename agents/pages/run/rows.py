"""The rows of the timeline: their data for the template, and the texts of a checkpoint's row.

Text by somebody else is in `Remark.quote`, apart from Holdpoint's own words, so that the template can set it as a
quote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agents.effects.fates import Fate, Remark, TimelineMark
from agents.models import Failure, StepCheckpoint, Wait
from agents.pages.run import marks
from agents.pages.run.facts import Called, Story, TimelineCheckpoint, TimelineFork, TimelineGap, TimelineGate
from agents.pages.run.lanes import LaneSlice
from agents.pages.run.marks import format_duration
from approvals.english import count_of, join_names, noun_for, quote_titles
from approvals.models import Decision
from checkpoints.runs.plans import StepSpec

UNTIMED = ("input", "reused", "skipped", "rewind", "edit", "repair", "upcast", "fork")  # kinds that no step worked for


@dataclass(slots=True)
class TimelineRow:
    """One row. `seq` is 0 where no checkpoint exists; `link` names what it opens and `target` its number."""

    key: str
    name: str
    mark: TimelineMark
    seq: int = 0
    link: str = ""  # "checkpoint", "gate", "run", or nothing
    target: int = 0
    took: str = ""
    at: datetime | None = None
    since: datetime | None = None  # the start of the duration in the word: "held for 25 min"
    abandoned: bool = False
    on_hold: bool = False
    head: bool = False
    named: str = ""  # by a person (untrusted)
    noted: int = 0  # notes of people
    remarks: list[Remark] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    piece: LaneSlice = field(default_factory=lambda: LaneSlice(0, 0))
    svg: str = ""  # that piece, as SVG


def of_checkpoint(
    saved: TimelineCheckpoint,
    story: Story,
    gate: TimelineGate | None,
    fate: Fate | None,
    parent: TimelineCheckpoint | None,
) -> TimelineRow:
    """Return the row of a checkpoint: with the gate that it closes, its effect, and the checkpoint that it follows."""
    row = TimelineRow(
        saved.id, story.called(saved.step or saved.kind), marks.RAN, saved.seq, "checkpoint", saved.seq,
        took=format_duration(saved.took) if saved.took and saved.kind not in UNTIMED else "", at=saved.at,
        named=saved.name, noted=saved.noted,
    )  # fmt: skip
    tell_kind(row, saved, story, gate, parent)
    if saved.kind in ("rewind", "edit", "upcast", "fork") and (saved.by or saved.why):
        by = f"by {saved.by}" if saved.by else ""
        row.remarks.append(Remark(f"{by}:" if by and saved.why else by, saved.why))
    if fate and saved.kind == "step":
        tell_effect(row, fate)
    if saved.attempt > 1 and saved.kind == "step":
        row.remarks.append(Remark(f"at attempt {saved.attempt}"))
    # If no step ran, the note is the engine's own and not an agent's.
    notes = [Remark(word) if saved.kind in ("reused", "skipped") else Remark(quote=word) for word in saved.words]
    row.remarks = [remark for remark in [*row.remarks, *notes] if remark]
    return row


def tell_kind(
    row: TimelineRow,
    saved: TimelineCheckpoint,
    story: Story,
    gate: TimelineGate | None,
    parent: TimelineCheckpoint | None,
) -> None:
    """Write into the row how the checkpoint came to be."""
    step_kind = next((step.kind for step in story.plan if step.name == saved.step), "")
    next_title = quote_titles([story.called(saved.next_step)])
    moved = f"the state at {parent.seq}, as a new checkpoint" if parent and parent.seq + 1 != saved.seq else ""
    match saved.kind:
        case "input":
            row.name, row.mark = "Input", marks.GIVEN
            row.remarks.append(Remark(f"started by {story.started_by}" if story.started_by else ""))
        case "gate" | "answered":
            tell_ending(row, story, gate, marks.NOTHING_ASKED if gate is None else ending_of(gate))
        case "asked" if gate and gate.status == "open":
            row.mark, row.on_hold, row.since = marks.HELD, True, gate.opened_at
            row.link, row.target = ("gate", gate.id) if gate.visible else ("", 0)
            row.remarks += [Remark(f"{open_remark(gate).text}, and the run goes on")]
        case "asked":
            tell_ending(row, story, gate, ending_of(gate) if gate else marks.ASKED)
        case "recovery" if gate is None and saved.next_step and saved.next_step != saved.step:
            # Unless it failed, the run paused to ask about an effect that was left behind.
            row.mark = marks.CAUGHT if step_kind == "step" else marks.ASIDE
            then = "" if step_kind == "step" else "then "
            row.remarks.append(Remark(f"{then}the run goes on with {next_title}"))
        case "recovery":
            tell_ending(row, story, gate, marks.RECOVERED.get(gate.answer if gate else "", marks.RECOVERED[""]))
        case "reopen":
            row.mark = marks.REOPENED
            row.remarks.append(Remark("the gate changed after approval"))
        case "rewind":
            row.name = "Rewind"
            place = saved.origin or (str(parent.seq) if parent else "an earlier checkpoint")
            row.mark = replace(marks.REWIND, word=f"to {place}")
            if parent:
                state = (
                    "input" if parent.kind == "input" else f"state after {quote_titles([story.called(parent.step)])}"
                )
                row.remarks.append(Remark(f"to the {state}, as a new checkpoint"))
        case "edit":
            row.name, row.mark = "Edit", marks.EDIT
            row.remarks.append(Remark(f"of {moved}" if moved else ""))
        case "repair":
            row.name = "Repair"
            row.mark = replace(marks.REPAIR, word=f"back to {next_title}") if saved.next_step else marks.REPAIR
            row.remarks.append(Remark(f"to {moved}" if moved else ""))
        case "upcast":
            row.name = "Upgrade"
            row.mark = replace(marks.UPCAST, word=f"to version {saved.version}") if saved.version else marks.UPCAST
        case "fork":
            row.name = "Fork"
            row.remarks.append(Remark(f"of {story.origin}" if story.origin else ""))
        case "reused" if step_kind == "gate" and saved.words:  # one that had nothing to ask has no note, and no answer
            row.mark = marks.STOOD
            row.remarks.append(Remark(f"given at {saved.twin}" if saved.twin else ""))
        case "reused":
            row.mark = replace(marks.REUSED, word=f"reused from {saved.twin}" if saved.twin else "reused")
        case "skipped":
            row.mark = marks.SKIPPED


def tell_ending(row: TimelineRow, story: Story, gate: TimelineGate | None, mark: TimelineMark) -> None:
    """Write into the row how the gate ended, who decided, and for how long it held the run."""
    row.mark = mark
    if gate:
        row.took = how_long(gate)
        row.remarks.extend(gate_remarks(gate, story.called))


def of_gap(gap: TimelineGap) -> TimelineRow:
    """Return the row of removed checkpoints: how many, between which days, and under which policy."""
    count = gap.last - gap.first + 1
    row = TimelineRow(f"gap-{gap.first}", count_of(count, "checkpoint"), marks.GONE, at=gap.upto)
    numbers = f"{gap.first} to {gap.last}" if count > 1 else str(gap.first)
    day = f"{gap.upto:%-d %B %Y}"
    when = f"on {day}" if gap.since.date() == gap.upto.date() else f"between {gap.since:%-d %B %Y} and {day}"
    names = join_names([*gap.policies[:3], *(["others"] if len(gap.policies) > 3 else [])])
    policies = noun_for(len(gap.policies), "policy", "policies")
    row.remarks.append(Remark(f"{numbers}, removed {when} under the retention {policies} {names}"))
    return row


def tell_effect(row: TimelineRow, fate: Fate) -> None:
    done = fate.effect
    if done.status == "undone":
        row.mark = marks.UNDONE
        row.remarks.append(Remark("undone", at=fate.undone.at if fate.undone else None))
    elif done.status in ("done", "kept"):
        words = ["completed"]
        words += ["cannot be undone"] if done.irreversible else []
        words += ["kept"] if done.status == "kept" else ["on an abandoned branch now"] if done.unsettled else []
        row.remarks.append(Remark(", ".join(words)))
    else:
        row.remarks.append(Remark(str(fate.mark.word)))


def of_refusal(refusals: Sequence[Failure], story: Story) -> TimelineRow:
    """Return the row of an output that validators refused, with each one's words: none of it was saved."""
    first = refusals[0]
    row = TimelineRow(f"refused-{first.pk}", story.called(first.step), marks.REFUSED, at=first.at)
    row.remarks = [Remark(f"by {failure.validator}:", failure.told or failure.error) for failure in refusals]
    if first.ring:
        levels = f"{first.ring} {noun_for(first.ring, 'level')}"
        row.remarks.append(Remark(f"sent back {levels}, to the step that produced its input"))
    return row


def of_fork(fork: TimelineFork) -> TimelineRow:
    """Return the row of a run that was forked from here."""
    row = TimelineRow(f"run-{fork.run}", f"R-{fork.run}", marks.FORK, link="run", target=fork.run, at=fork.at)
    row.remarks.append(Remark(f"by {fork.by}; {fork.status}" if fork.by else fork.status, fork.title))
    return row


def ending_of(gate: TimelineGate) -> TimelineMark:
    """Return the mark for how a closed gate ended."""
    return marks.OUTCOMES.get(gate.outcome or gate.status, marks.ANSWERED)


def how_long(gate: TimelineGate) -> str:
    """Return for how long it held the run; empty while it is open."""
    return format_duration(gate.closed_at - gate.opened_at) if gate.closed_at else ""


def gate_remarks(gate: TimelineGate, called: Called) -> list[Remark]:
    """Return who decided a closed gate and what follows; a comment is quoted under its author's name."""
    if gate.status == "expired":
        if gate.outcome in ("approved", "edited", "mixed"):
            return [Remark("nobody decided in time, so the policy approved it")]
        return [Remark("nobody decided in time")]
    counted_in = [decision for decision in gate.decisions if decision.counts]
    deciding = [decision for decision in counted_in if decision.verdict in Decision.REJECTING] or counted_in
    if not deciding:
        return []
    people = join_names([decision.name for decision in deciding])
    if gate.outcome == "rejected" and gate.then == "back" and gate.back_to:
        text = f"by {people}, back to {quote_titles([called(gate.back_to)])}"
    elif gate.outcome == "rejected":
        text = f"by {people}, the run stops"
    else:
        text = f"“{gate.answer_label}” by {people}" if gate.answer_label else f"by {people}"
    if gate.actions:
        text += f": {'; '.join(gate.actions)}"
    first, *others = [decision for decision in deciding if decision.comment] or [deciding[0]]
    lines = [Remark(text + ("." if gate.actions else ":") if first.comment else text, first.comment)]
    return lines + [Remark(f"{other.name}:", other.comment) for other in others]


def open_remark(gate: TimelineGate) -> Remark:
    """Return what an open gate waits for."""
    if gate.quorum > 1:
        return Remark(f"{gate.agreed} of {gate.quorum} approved")
    return Remark("asks how to go on after a fault" if gate.kind == "recovery" else "asks for a decision")


def of_gate(gate: TimelineGate, called: Called) -> TimelineRow:
    """Return the row of a gate that has no checkpoint of its own: it is open, or it was withdrawn."""
    row = TimelineRow(
        f"gate-{gate.id}", called(gate.step), marks.HELD, link="gate" if gate.visible else "", target=gate.id
    )
    row.at = gate.opened_at
    if gate.status != "open":
        row.mark, row.took, row.remarks = ending_of(gate), how_long(gate), gate_remarks(gate, called)
        return row
    row.on_hold, row.since, row.remarks = True, gate.opened_at, [open_remark(gate)]
    return row


def of_next(story: Story) -> TimelineRow | None:
    """Return the row of the step that runs, is queued, or is where the run ended; None where a gate's row shows it."""
    run = story.run
    name = story.called(run.next_step) if run.next_step else "End"
    row = TimelineRow("next", name, marks.QUEUED, at=story.changed_at)
    if run.settling and run.status in ("running", "queued"):
        row.name, row.mark = "Settle", marks.SETTLING
        row.remarks = [Remark(after_settling(run.ending, run.next_step, story.called))]
    elif run.status == "running":
        row.mark = marks.RUNNING
        row.remarks = [Remark(f"attempt {run.attempts}")] if run.attempts > 1 else []
    elif run.status == "queued":
        if run.wake_at and run.wake_at > story.now:
            row.remarks = [Remark(f"tries again in {format_duration(run.wake_at - story.now)}")]
    elif run.status == "waiting" and not any(gate.status == "open" and gate.base == story.head for gate in story.gates):
        row.mark = marks.TIMER
        beside = any(gate.status == "open" for gate in story.gates)
        own = Remark(run.reason) if run.awaited or beside else Remark(quote=run.reason)
        row.remarks = [_of_wait(story.wait) if story.wait else own]
    elif run.status == "failed":
        row.mark = marks.FROZEN if run.frozen else marks.FAILED
    elif run.status == "cancelled":
        row.name, row.mark = "Cancel", marks.CANCELLED
        who = f"by {story.ended_by}" if story.ended_by else ""
        row.remarks = [Remark(f"{who}:" if who and run.reason else who, run.reason)] if who or run.reason else []
    else:
        return None
    if story.step_checkpoints and run.status in run.LIVE:
        row.remarks += _of_kept(story.step_checkpoints)
    return row if row.name else None


def _of_kept(step_checkpoints: Sequence[StepCheckpoint]) -> list[Remark]:
    """Say when the step last kept a value to go on from, and the names of those that it named (untrusted)."""
    names = ", ".join(checkpoint.name for checkpoint in reversed(step_checkpoints) if checkpoint.name)
    newest = Remark("goes on after a crash from a value kept", at=step_checkpoints[0].at)
    return [newest, *([Remark("kept:", names)] if names else [])]


def _of_wait(wait: Wait) -> Remark:
    if wait.kind == Wait.Kind.TIMER:
        return Remark("until", at=wait.due)
    signal = f"for the signal {quote_titles([wait.name])}"
    return Remark(f"{signal}, at the latest until" if wait.due else signal, at=wait.due)


def after_settling(ending: str, next_step: str, called: Called) -> str:
    """Return what a run does once its effects are settled: end in the status `ending`, or go on."""
    if not ending:
        return f"then the run goes on{f' with {quote_titles([called(next_step)])}' if next_step else ''}"
    return {
        "completed": "then the run completes",
        "cancelled": "then the run is cancelled",
        "failed": "then the run fails",
    }[ending]


def of_planned(step: StepSpec, *, over: bool) -> TimelineRow:
    """Return the row of a step that has not run; once the run is `over` it never will."""
    row = TimelineRow(f"ahead-{step.name}", step.title, marks.NEVER if over else marks.AHEAD)
    if step.kind == "gate" and not over:
        row.remarks.append(Remark("asks people"))
    elif step.kind == "effect" and step.irreversible and not over:
        row.remarks.append(Remark("cannot be undone once it has run"))
    return row
