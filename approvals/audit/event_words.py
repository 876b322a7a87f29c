"""Events in words: who did what. The kind stands beside it, so the words need not repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from approvals.english import quoted
from checkpoints.runs.plans import in_words
from checkpoints.seals.leaves import SealedRow
from checkpoints.seals.seal import readable

NONE: Mapping[str, str] = {}

# `{name}` is the event's own datum of that name; one that it does not hold reads as nothing.
WORDS = {
    "database.restored": "goes on from a backup, which ended with event {event}",
    "run.started": "started the run",
    "run.queued": "woke the run",
    "run.running": "took the run up",
    "run.missed": "heard nothing of the run's program any more",
    "run.heard": "heard of the run's program again",
    "run.halting": "asked its worker to stop after the step at hand",
    "run.taken": "took the run over from its worker",
    "run.waiting": "stopped to wait",
    "run.completed": "completed the run",
    "run.failed": "gave the run up",
    "run.cancelled": "cancelled the run",
    "run.rewound": "rewound the run to checkpoint {to}",
    "run.edited": "edited the state of checkpoint {to}",
    "run.settling": "had what the run left behind undone at once",
    "worker.fenced": "found worker {worker} too late: it wrote nothing",
    "run.forked": "forked the run",
    "run.upcast": "brought the run up from version {since} to {to}",
    "gate.opened": "asks for a decision at {step}",
    "gate.edited": "edited what {step} asks",
    "gate.remarked": "said something at {step}",
    "gate.lapsed": "found that an approval of {step} no longer counts",
    "gate.rescheduled": "moved the deadline of {step}",
    "gate.closed": "closed {step}: {kind}",
    "gate.expired": "closed {step}: nobody answered in time",
    "gate.withdrawn": "withdrew {step}, which is not a rejection",
    "gate.replaced": "asks {step} anew, as gate {gate}",
    "decision.refused": "was refused a decision: {kind}",
    "effect.intended": "is about to do {step} in the outside world",
    "effect.done": "did {step} in the outside world",
    "effect.failed": "did not do {step}; that is certain",
    "effect.unknown": "cannot tell whether {step} happened",
    "effect.undone": "took {step} back in the outside world",
    "effect.kept": "left {step} as it is in the outside world",
    "effect.abandoned": "was told to do {step} again",
    "effect.contradicted": "heard that {step} was {said}, though it had been settled otherwise: {status}",
    "effect.taken": "took over what another run had done at {step}",
    "effect.withheld": "did not do {step}: the world is not what it was approved for",
    "step.failed": "failed at {step}, attempt {attempt}",
    "checkpoint.named": "named checkpoint {seq}, which keeps it",
    "checkpoint.unnamed": "took the name of checkpoint {seq} away",
    "checkpoint.noted": "noted something on checkpoint {seq}",
    "checkpoint.note_removed": "took a note on checkpoint {seq} back",
    "secret.revealed": "revealed the secret at {pointer}",
    "retention.held": "set a legal hold",
    "retention.freed": "freed a legal hold",
    "retention.pruned": "removed checkpoints {first} to {last}, {count} in all, under the retention policy {policy}",
    "step.refused": "refused what {step} returned: {validator}",
    "retention.changed": "changed what is kept of the runs of {agent}",
    "retention.ordered": "ordered a prune; checkpoints that go: {checkpoints}",
    "retention.finished": "finished a prune; checkpoints removed: {checkpoints}",
    "retention.stopped": "stopped a prune; checkpoints removed by then: {checkpoints}",
    "policy.changed": "wrote version {version} of the policy {name}",
    "tool.changed": "wrote version {version} of the tool {name}",
    "team.changed": "changed the team {name}",
    "user.changed": "changed an account",
    "user.sign_in_failed": "refused a sign-in from {address} ({count} in this minute)",
    "user.confirmation_failed": "gave a wrong password from {address} ({count} in this minute)",
    "user.password_changed": "set a password from {address}",
    "webhook.created": "made a webhook to {host}",
    "webhook.rotated": "gave the webhook another secret",
    "webhook.disabled": "disabled the webhook: {reason}",
    "webhook.enabled": "enabled the webhook again",
    "webhook.removed": "removed the webhook",
    "webhook.tested": "sent the webhook a test message",
    "webhook.resent": "sent a message to the webhook again",
    "plan.registered": "registered version {version} of {agent}",
    "token.created": "made a token",
    "token.revoked": "revoked a token",
    "audit.verified": "had {seals} seals verified over {events} events: {faults} faults",
    "audit.exported": "exported {count} events as {format}",
    "text.erased": "erased what was written with event {event}",
}
VERDICTS = {
    "approve": "approved {step}",
    "edit": "approved {step} with an edit",
    "reject": "rejected {step}",
    "answer": "answered {step}",
    "mixed": "decided {step} action by action",
}
# The same kinds of an undo, which is an effect itself.
OF_AN_UNDO = {
    "effect.intended": "is about to take {step} back in the outside world",
    "effect.done": "called the undo of {step}",
    "effect.failed": "did not take {step} back; that is certain",
    "effect.unknown": "cannot tell whether {step} was taken back",
    "effect.abandoned": "was told to take {step} back again",
}
# What only says that the machinery turned; it is told on the page of all events.
ROUTINE = ("checkpoint.saved", "run.running", "run.queued", "run.waiting")


@dataclass(frozen=True, slots=True)
class Happening:
    """One event: when, its kind, who, what in our words, and any personal text (untrusted)."""

    at: datetime
    kind: str
    who: str
    what: str
    text: str = ""


def tell(
    *, at: datetime, kind: str, who: str, data: Mapping[str, Any], text: str = "", titles: Mapping[str, str] = NONE
) -> Happening:
    """Put one event into words; a kind that has none is told by its name alone. `titles`: of the plan's steps."""
    words = WORDS.get(kind, "")
    if kind == "gate.opened" and data.get("kind") == "recovery":
        words = "asks how to go on at {step}"
    if data.get("undoes"):
        words = OF_AN_UNDO.get(kind, words)
    if kind == "gate.decided":
        words = VERDICTS.get(str(data.get("kind")), "decided {step}")
    if kind == "retention.changed" and not data.get("agent"):
        words = "changed what is kept of every agent without a policy of its own"
    if kind == "retention.pruned" and data.get("count") == 1:
        words = "removed checkpoint {first} under the retention policy {policy}"
    step = str(data.get("step") or "")
    told = {**data, "step": quoted([titles.get(step) or in_words(step)])} if step else data
    return Happening(at, kind, who, words.format_map(_Blank(told)), text)


def of_row(row: SealedRow, text: str = "", titles: Mapping[str, str] = NONE) -> Happening:
    """Describe an event as seals cover it, whatever its data are."""
    found = readable(row.data)
    data = found if isinstance(found, dict) else {}
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row.at or 0)
    return tell(at=at, kind=row.kind, who=row.actor_name or row.actor, data=data, text=text, titles=titles)


class _Blank(dict[str, Any]):
    """What an event does not say reads as nothing."""

    def __missing__(self, key: str) -> str:
        return ""
