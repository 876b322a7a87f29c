"""Describes events in words: who did what. Pages show the kind beside the words, so these need not repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from approvals.english import quote_titles
from checkpoints.runs.plans import in_words
from checkpoints.seals.leaves import SealedRow
from checkpoints.seals.seal import readable_value

NONE: Mapping[str, str] = {}

# `{name}` is replaced by the event's datum of that name, or by nothing.
WORDS = {
    "database.restored": "goes on from a backup, which ended with event {event}",
    "run.started": "started the run",
    "run.queued": "woke the run",
    "run.running": "continued the run",
    "run.missed": "lost contact with the run's external program",
    "run.heard": "is in contact with the run's external program again",
    "program.joined": "had a program of theirs work on the run",
    "run.halting": "asked its worker to stop after the step at hand",
    "run.taken": "interrupted the run's worker",
    "run.waiting": "stopped to wait",
    "signal.received": "sent the run the signal {name}",
    "timer.skipped": "woke the run at {step} before its time",
    "child.started": "started R-{child} ({agent}) at {step}",
    "child.adopted": "took R-{child} over at {step}",
    "child.ordered": "told runs that it had started: {order}",
    "run.completed": "completed the run",
    "run.failed": "gave up the run",
    "run.cancelled": "cancelled the run",
    "run.rewound": "rewound the run to checkpoint {to}",
    "run.edited": "edited the state of checkpoint {to}",
    "run.settling": "had the effects that the run left behind undone at once",
    "worker.fenced": "refused a late write of worker {worker}",
    "run.forked": "forked the run",
    "run.upcast": "upgraded the run from version {since} to {to}",
    "gate.opened": "asks for a decision at {step}",
    "gate.edited": "edited what {step} asks",
    "gate.remarked": "wrote a comment at {step}",
    "gate.settling": "decided {step}: {kind}. It takes effect later and can be undone until then",
    "gate.undone": "took their decision on {step} back",
    "gate.reconsidered": "does not close {step} any more: a decision was undone, changed or no longer counts",
    "gate.not_run": "found that nothing which {step} approved has begun",
    "gate.begun": "found that what {step} approved has begun",
    "gate.mentioned": "mentioned somebody at {step}",
    "gate.question": "asked the agent about {step}",
    "gate.answered": "answered a question about {step}",
    "gate.unanswered": "could not answer a question about {step}",
    "gate.asks": "asks others about {step} from now on",
    "gate.lapsed": "found that an approval of {step} no longer counts",
    "gate.rescheduled": "moved the deadline of {step}",
    "gate.claimed": "claimed {step}",
    "gate.released": "no longer has {step}: {kind}",
    "gate.reassigned": "asked {to} to act on {step}",
    "gate.escalated": "took {step} to {team}",
    "gate.closed": "closed {step}: {kind}",
    "gate.expired": "closed {step}: nobody decided in time",
    "gate.withdrawn": "withdrew {step} (not a rejection)",
    "gate.handed_out": "was told that {step} is approved, for one call",
    "gate.replaced": "asks {step} again, as gate {gate}",
    "decision.refused": "was refused a decision: {kind}",
    "effect.intended": "is about to perform {step}",
    "effect.done": "performed {step}",
    "effect.failed": "did not perform {step} (confirmed)",
    "effect.unknown": "does not know whether {step} was performed",
    "effect.undone": "undid {step}",
    "effect.kept": "kept {step} as it is",
    "effect.abandoned": "was told to perform {step} again",
    "effect.contradicted": "heard that {step} was {said}, though it had been settled otherwise: {status}",
    "effect.taken": "reused what another run performed at {step}",
    "effect.withheld": "skipped {step}: conditions changed after approval",
    "step.failed": "failed at {step}, attempt {attempt}",
    "checkpoint.named": "named checkpoint {seq}, which keeps it",
    "checkpoint.unnamed": "removed the name of checkpoint {seq}",
    "checkpoint.noted": "wrote a note on checkpoint {seq}",
    "checkpoint.note_removed": "removed a note from checkpoint {seq}",
    "secret.revealed": "revealed the secret at {pointer}",
    "retention.held": "set a legal hold",
    "retention.freed": "freed a legal hold",
    "retention.pruned": "removed checkpoints {first} to {last}, {count} in all, under the retention policy {policy}",
    "retention.cleared": "removed signals and waits, {signals_and_waits} in all, under the retention policy {policy}",
    "step.refused": "refused what {step} returned: {validator}",
    "retention.changed": "changed what is kept of the runs of {agent}",
    "retention.requested": "asked to remove {checkpoints} checkpoints of its run, through {policy}",
    "retention.ordered": "ordered a prune; checkpoints that go: {checkpoints}",
    "retention.finished": "finished a prune; checkpoints removed: {checkpoints}",
    "retention.stopped": "stopped a prune; checkpoints removed by then: {checkpoints}",
    "policy.changed": "wrote version {version} of the policy {name}",
    "policy.adopted": "vouched for version {version} of the policy {name}, which was there before",
    "seal.required": "vouched for the policies that were there before",
    "seal.checkpoints": "vouched for the checkpoints that were there before",
    "policy.proposed": "proposed a milder version of the policy {name}, which waits for a second person",
    "policy.refused": "refused a milder version of the policy {name}",
    "tool.changed": "wrote version {version} of the tool {name}",
    "calendar.changed": "changed the calendar {name}",
    "delegation.made": "planned a time away: {starts} to {ends}",
    "delegation.ended": "ended a time away before {ends}",
    "team.changed": "changed the team {name}",
    "user.changed": "changed an account",
    "user.sign_in_failed": "refused a sign-in from {address} ({count} in this minute)",
    "user.confirmation_failed": "gave a wrong password from {address} ({count} in this minute)",
    "user.password_changed": "set a password from {address}",
    "user.signed_in": "signed in from {address} by {method}",
    "user.sign_in_unknown": "refused somebody whom {provider} named and who has no account, from {address}",
    "user.session_ended": "ended sessions: {count}",
    "user.factor_added": "added a second factor ({factor}) from {address}",
    "user.factor_removed": "removed a second factor ({factor})",
    "user.factor_refused": "refused a second factor ({method}) from {address} ({count} in this minute)",
    "user.recovery_codes_made": "made new recovery codes from {address}",
    "user.linked": "linked the account to {provider}",
    "user.unlinked": "unlinked the account from {provider}",
    "channel.added": "had gates told in a channel of {service}",
    "channel.removed": "removed the channel",
    "channel.tested": "sent the channel a test message",
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
    "device.confirmed": "let a program have a token by its code",
    "device.refused": "refused a program that asked for a token by a code",
    "device.mistyped": "entered a code that no program waits under",
    "audit.verified": "had {seals} seals verified over {events} events: {faults} faults",
    "audit.exported": "exported {count} events as {format}",
    "text.erased": "erased what was written with event {event}",
}
# Words for the same kinds where signals and waits go, or went, too.
WITH_SIGNALS = {
    "retention.ordered": "ordered a prune; checkpoints that go: {checkpoints}, signals and waits: {signals_and_waits}",
    "retention.finished": (
        "finished a prune; checkpoints removed: {checkpoints}, signals and waits: {signals_and_waits}"
    ),
    "retention.stopped": (
        "stopped a prune; checkpoints removed by then: {checkpoints}, signals and waits: {signals_and_waits}"
    ),
}
VERDICTS = {
    "approve": "approved {step}",
    "edit": "approved {step} with an edit",
    "reject": "rejected {step}",
    "answer": "answered {step}",
    "mixed": "decided {step} action by action",
}
# Words for the same kinds where the effect is an undo.
OF_AN_UNDO = {
    "effect.intended": "is about to undo {step}",
    "effect.done": "called the undo of {step}",
    "effect.failed": "did not undo {step} (confirmed)",
    "effect.unknown": "does not know whether {step} was undone",
    "effect.abandoned": "was told to undo {step} again",
}
# Kinds of mere routine, listed only on the page of all events.
ROUTINE = ("checkpoint.saved", "run.running", "run.queued", "run.waiting")


@dataclass(frozen=True, slots=True)
class Happening:
    """One event: its time, its kind, its actor, what happened in words, and any personal text (untrusted)."""

    at: datetime
    kind: str
    who: str
    what: str
    text: str = ""


def tell(
    *, at: datetime, kind: str, who: str, data: Mapping[str, Any], text: str = "", titles: Mapping[str, str] = NONE
) -> Happening:
    """Put one event into words; an unknown kind gets none. `titles`: step -> its title in the plan."""
    words = str(WORDS.get(kind, ""))
    if kind == "gate.opened" and data.get("kind") == "recovery":
        words = "asks how to go on at {step}"
    if data.get("undoes"):
        words = str(OF_AN_UNDO.get(kind, words))
    if data.get("signals_and_waits"):
        words = str(WITH_SIGNALS.get(kind, words))
    if kind == "gate.decided":
        words = str(VERDICTS.get(str(data.get("kind")), "decided {step}"))
    if kind == "retention.changed" and not data.get("agent"):
        words = "changed what is kept of every agent without a policy of its own"
    if kind == "retention.pruned" and data.get("count") == 1:
        words = "removed checkpoint {first} under the retention policy {policy}"
    step = str(data.get("step") or "")
    values = {**data, "step": quote_titles([titles.get(step) or in_words(step)])} if step else data
    return Happening(at, kind, who, words.format_map(_Blank(values)), text)


def of_row(row: SealedRow, text: str = "", titles: Mapping[str, str] = NONE) -> Happening:
    """Describe an event as seals cover it; data that cannot be read count as none."""
    found = readable_value(row.data)
    data = found if isinstance(found, dict) else {}
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row.at or 0)
    return tell(at=at, kind=row.kind, who=row.actor_name or row.actor, data=data, text=text, titles=titles)


class _Blank(dict[str, Any]):
    """A dict that gives "" for a missing name."""

    def __missing__(self, key: str) -> str:
        return ""
