"""One row of the timeline, and what each kind of row says.

`Row` is what the template draws; the functions here turn one fact each into one. What somebody else wrote
travels in `Remark.quote`, apart from our own words, so that the template can set it in the quoted voice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from . import marks
from .facts import Asked, Done, Failed, Forked, Planned, Saved, Story
from .lanes import Slice
from .marks import Mark
from .words import counted, duration


@dataclass(frozen=True, slots=True)
class Remark:
    """A line under a row: our words, then what another said (untrusted), or either alone."""

    text: str = ""
    quote: str = ""


@dataclass(slots=True)
class Row:
    """One row. `seq` is 0 where no checkpoint exists; `link` names what it opens and `target` its number."""

    key: str
    name: str
    mark: Mark
    seq: int = 0
    link: str = ""  # "checkpoint", "gate", "run", or nothing
    target: int = 0
    took: str = ""
    at: datetime | None = None
    since: datetime | None = None  # what the word is counted from: "held for 25 min"
    left: bool = False
    held: bool = False
    head: bool = False
    remarks: list[Remark] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    piece: Slice = field(default_factory=lambda: Slice(0, 0))

    @property
    def radius(self) -> float:
        """Of the node, in px."""
        return marks.radius(self.mark.shape)

    @property
    def glyph(self) -> str:
        """The sign inside the node, as SVG path data."""
        return marks.glyph(self.mark.shape, self.piece.x)

    @property
    def tone(self) -> str:
        """The colour role of the glyph."""
        return marks.TONES.get(self.mark.shape, "")

    @property
    def bars(self) -> int:
        """Where the hold line begins, in px."""
        return self.piece.x - 11


def of_checkpoint(saved: Saved, story: Story, gate: Asked | None, effect: Done | None, target: Saved | None) -> Row:
    """The row of a checkpoint. `gate` is the one that it closes, `target` the checkpoint that it follows."""
    row = Row(saved.id, saved.step or saved.kind, marks.RAN, seq=saved.seq, link="checkpoint", target=saved.seq)
    row.at, row.took = saved.at, duration(saved.took) if saved.took else ""
    if saved.kind == "input":
        row.name, row.mark, row.took = "input", marks.GIVEN, ""
        row.remarks.append(Remark(f"started by {story.run.started_by}" if story.run.started_by else ""))
    elif saved.kind == "gate":
        _tell_gate(row, gate)
    elif saved.kind == "reopen":
        row.mark = marks.REOPENED
        row.remarks.append(Remark("what would have run was no longer what had been approved"))
    elif saved.kind == "rewind":
        _tell_rewind(row, saved, target)
    elif saved.kind == "fork":
        row.name, row.mark = "fork", marks.RAN
        row.remarks.append(Remark(f"of {story.run.origin}" if story.run.origin else ""))
    elif saved.kind == "edit":
        row.name, row.mark = "edit", marks.EDIT
    elif saved.kind == "recovery":
        _tell_gate(row, gate, keep=marks.RECOVERED.get(gate.answer if gate else "", marks.RECOVERED[""]))
    if effect:
        row.remarks.append(Remark(effect_words(effect)))
    if saved.attempt > 1 and saved.kind == "step":
        row.remarks.append(Remark(f"at attempt {saved.attempt}"))
    row.remarks.extend(Remark(quote=word) for word in saved.words)
    row.remarks = [remark for remark in row.remarks if remark.text or remark.quote]
    return row


def _tell_gate(row: Row, gate: Asked | None, keep: Mark | None = None) -> None:
    """Say how the gate ended, who decided, and for how long it held the run."""
    if gate is None:
        row.mark = keep or marks.NOTHING_ASKED
        return
    row.mark = keep or marks.OUTCOMES.get(gate.outcome or gate.status, marks.ANSWERED)
    if gate.closed_at:
        row.took = duration(gate.closed_at - gate.opened_at)
    row.remarks.extend(gate_remarks(gate))


def gate_remarks(gate: Asked) -> list[Remark]:
    """Who decided a closed gate and what follows; a comment is quoted under the name of the one who wrote it."""
    if gate.status == "expired":
        approved = ", so the policy approved it" if gate.outcome in ("approved", "edited") else ""
        return [Remark(f"nobody answered in time{approved}")]
    counted_in = [said for said in gate.said if said.counts]
    deciding = [said for said in counted_in if said.verdict == "reject"] or counted_in
    if not deciding:
        return []
    text = "by " + listed([said.name for said in deciding])
    if gate.answer_label:
        text = f"“{gate.answer_label}” {text}"
    if gate.outcome == "rejected":
        text += f", back to {gate.back_to}" if gate.then == "back" and gate.back_to else ", the run stops"
    first, *others = [said for said in deciding if said.comment] or [deciding[0]]
    told = [Remark(text + ":" if first.comment else text, first.comment)]
    return told + [Remark(f"{said.name}:", said.comment) for said in others]


def _tell_rewind(row: Row, saved: Saved, target: Saved | None) -> None:
    """Say to where the head moved."""
    row.name, row.took = "rewind", ""
    row.mark = replace(marks.REWIND, word=f"to {target.seq}" if target else "to an earlier checkpoint")
    if target:
        place = "the input" if target.kind == "input" else f"the state after {target.step}"
        row.remarks.append(Remark(f"{place}, as a new checkpoint"))


def of_gate(gate: Asked, story: Story) -> Row:
    """The row of a gate that has no checkpoint of its own: it is open, or it was withdrawn."""
    row = Row(f"gate-{gate.id}", gate.step, marks.HELD, link="gate" if gate.visible else "", target=gate.id)
    row.at = gate.opened_at
    if gate.status != "open":
        _tell_gate(row, gate)
        return row
    row.held = True
    row.since = gate.opened_at
    agreed = sum(said.counts and said.verdict != "reject" for said in gate.said)
    asks = "asks how to go on after a fault" if gate.kind == "recovery" else "asks for a decision"
    row.remarks.append(Remark(f"{agreed} of {gate.quorum} agreed" if gate.quorum > 1 else asks))
    return row


def of_fork(fork: Forked) -> Row:
    """The row of a run that was forked from here."""
    row = Row(f"run-{fork.run}", f"R-{fork.run}", marks.FORK, link="run", target=fork.run, at=fork.at)
    row.remarks.append(Remark(f"by {fork.by}; {fork.status}" if fork.by else fork.status))
    return row


def of_next(story: Story) -> Row | None:
    """The row of the step that is under way, waits its turn, or is where the run ended; none where a gate says it."""
    run = story.run
    row = Row("next", run.next_step, marks.QUEUED, at=run.changed_at)
    if run.status == "running":
        row.mark = marks.RUNNING
        row.remarks = [Remark(f"attempt {run.attempts}")] if run.attempts > 1 else []
    elif run.status == "queued":
        if run.wake_at and run.wake_at > story.now:
            row.remarks = [Remark(f"tries again in {duration(run.wake_at - story.now)}")]
    elif run.status == "waiting" and not any(gate.status == "open" for gate in story.gates):
        row.mark = marks.TIMER
        row.remarks = [Remark(f"until {run.wake_at:%H:%M:%S} UTC" if run.wake_at else "", run.reason)]
    elif run.status == "failed":
        row.mark = marks.FROZEN if run.frozen else marks.FAILED
    elif run.status == "cancelled":
        row.name, row.mark = "cancel", marks.CANCELLED
        who = f"by {run.ended_by}" if run.ended_by else ""
        row.remarks = [Remark(f"{who}:" if who and run.reason else who, run.reason)] if who or run.reason else []
    else:
        return None
    return row if row.name else None


def of_planned(step: Planned, *, over: bool) -> Row:
    """The row of a step that has not run; once the run is `over` it never will."""
    row = Row(f"ahead-{step.name}", step.name, marks.NEVER if over else marks.AHEAD)
    if step.kind == "gate" and not over:
        row.remarks.append(Remark("asks people"))
    elif step.kind == "effect" and step.irreversible and not over:
        row.remarks.append(Remark("cannot be undone once it has run"))
    return row


def effect_words(effect: Done) -> str:
    """What became of an effect, and whether it can be undone."""
    if effect.status == "done":
        return "done in the outside world, cannot be undone" if effect.irreversible else "done in the outside world"
    words = {
        "intended": "intended, its outcome is not recorded yet",
        "failed": "failed: provably not done",
        "unknown": "unknown: it may have happened",
        "abandoned": "unknown, and done again by order",
    }
    return words.get(effect.status, effect.status)


def listed(names: list[str]) -> str:
    """Names as a sentence lists them: "Ann", "Ann and Bob", "Ann, Bob and Mira"; each once."""
    once = list(dict.fromkeys(names))
    return " and ".join([", ".join(once[:-1]), once[-1]] if len(once) > 1 else once)


def failures_word(failures: list[Failed]) -> str:
    """How often a step failed before: "failed once before", "failed 3 times before"."""
    return "failed once" if len(failures) == 1 else f"failed {counted(len(failures), 'time')}"
