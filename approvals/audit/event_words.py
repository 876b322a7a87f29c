"""Describes events in words: who did what. Pages show the kind beside the words, so these need not repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals.english import quoted
from checkpoints.runs.plans import in_words
from checkpoints.seals.leaves import SealedRow
from checkpoints.seals.seal import readable

NONE: Mapping[str, str] = {}

# `{name}` is replaced by the event's datum of that name, or by nothing.
WORDS = {
    "database.restored": _("goes on from a backup, which ended with event {event}"),
    "run.started": _("started the run"),
    "run.queued": _("woke the run"),
    "run.running": _("continued the run"),
    "run.missed": _("lost contact with the run's external program"),
    "run.heard": _("is in contact with the run's external program again"),
    "program.joined": _("had a program of theirs work on the run"),
    "run.halting": _("asked its worker to stop after the step at hand"),
    "run.taken": _("interrupted the run's worker"),
    "run.waiting": _("stopped to wait"),
    "signal.received": _("sent the run the signal {name}"),
    "timer.skipped": _("woke the run at {step} before its time"),
    "child.started": _("started R-{child} ({agent}) at {step}"),
    "child.adopted": _("took R-{child} over at {step}"),
    "child.ordered": _("told runs that it had started: {order}"),
    "run.completed": _("completed the run"),
    "run.failed": _("gave up the run"),
    "run.cancelled": _("cancelled the run"),
    "run.rewound": _("rewound the run to checkpoint {to}"),
    "run.edited": _("edited the state of checkpoint {to}"),
    "run.settling": _("had the effects that the run left behind undone at once"),
    "worker.fenced": _("refused a late write of worker {worker}"),
    "run.forked": _("forked the run"),
    "run.upcast": _("upgraded the run from version {since} to {to}"),
    "gate.opened": _("asks for a decision at {step}"),
    "gate.edited": _("edited what {step} asks"),
    "gate.remarked": _("wrote a comment at {step}"),
    "gate.settling": _("decided {step}: {kind}. It takes effect later and can be undone until then"),
    "gate.undone": _("took their decision on {step} back"),
    "gate.reconsidered": _("does not close {step} any more: a decision was undone, changed or no longer counts"),
    "gate.not_run": _("found that nothing which {step} approved has begun"),
    "gate.begun": _("found that what {step} approved has begun"),
    "gate.mentioned": _("mentioned somebody at {step}"),
    "gate.question": _("asked the agent about {step}"),
    "gate.answered": _("answered a question about {step}"),
    "gate.unanswered": _("could not answer a question about {step}"),
    "gate.lapsed": _("found that an approval of {step} no longer counts"),
    "gate.rescheduled": _("moved the deadline of {step}"),
    "gate.claimed": _("claimed {step}"),
    "gate.released": _("no longer has {step}: {kind}"),
    "gate.reassigned": _("asked {to} to act on {step}"),
    "gate.escalated": _("took {step} to {team}"),
    "gate.closed": _("closed {step}: {kind}"),
    "gate.expired": _("closed {step}: nobody decided in time"),
    "gate.withdrawn": _("withdrew {step} (not a rejection)"),
    "gate.handed_out": _("was told that {step} is approved, for one call"),
    "gate.replaced": _("asks {step} again, as gate {gate}"),
    "decision.refused": _("was refused a decision: {kind}"),
    "effect.intended": _("is about to perform {step}"),
    "effect.done": _("performed {step}"),
    "effect.failed": _("did not perform {step} (confirmed)"),
    "effect.unknown": _("does not know whether {step} was performed"),
    "effect.undone": _("undid {step}"),
    "effect.kept": _("kept {step} as it is"),
    "effect.abandoned": _("was told to perform {step} again"),
    "effect.contradicted": _("heard that {step} was {said}, though it had been settled otherwise: {status}"),
    "effect.taken": _("reused what another run performed at {step}"),
    "effect.withheld": _("skipped {step}: conditions changed after approval"),
    "step.failed": _("failed at {step}, attempt {attempt}"),
    "checkpoint.named": _("named checkpoint {seq}, which keeps it"),
    "checkpoint.unnamed": _("removed the name of checkpoint {seq}"),
    "checkpoint.noted": _("wrote a note on checkpoint {seq}"),
    "checkpoint.note_removed": _("removed a note from checkpoint {seq}"),
    "secret.revealed": _("revealed the secret at {pointer}"),
    "retention.held": _("set a legal hold"),
    "retention.freed": _("freed a legal hold"),
    "retention.pruned": _("removed checkpoints {first} to {last}, {count} in all, under the retention policy {policy}"),
    "retention.cleared": _(
        "removed signals and waits, {signals_and_waits} in all, under the retention policy {policy}"
    ),
    "step.refused": _("refused what {step} returned: {validator}"),
    "retention.changed": _("changed what is kept of the runs of {agent}"),
    "retention.requested": _("asked to remove {checkpoints} checkpoints of its run, through {policy}"),
    "retention.ordered": _("ordered a prune; checkpoints that go: {checkpoints}"),
    "retention.finished": _("finished a prune; checkpoints removed: {checkpoints}"),
    "retention.stopped": _("stopped a prune; checkpoints removed by then: {checkpoints}"),
    "policy.changed": _("wrote version {version} of the policy {name}"),
    "policy.adopted": _("vouched for version {version} of the policy {name}, which was there before"),
    "seal.required": _("vouched for the policies that were there before"),
    "seal.checkpoints": _("vouched for the checkpoints that were there before"),
    "policy.proposed": _("proposed a milder version of the policy {name}, which waits for a second person"),
    "policy.refused": _("refused a milder version of the policy {name}"),
    "tool.changed": _("wrote version {version} of the tool {name}"),
    "calendar.changed": _("changed the calendar {name}"),
    "delegation.made": _("planned a time away: {starts} to {ends}"),
    "delegation.ended": _("ended a time away before {ends}"),
    "team.changed": _("changed the team {name}"),
    "user.changed": _("changed an account"),
    "user.sign_in_failed": _("refused a sign-in from {address} ({count} in this minute)"),
    "user.confirmation_failed": _("gave a wrong password from {address} ({count} in this minute)"),
    "user.password_changed": _("set a password from {address}"),
    "user.signed_in": _("signed in from {address} by {method}"),
    "user.sign_in_unknown": _("refused somebody whom {provider} named and who has no account, from {address}"),
    "user.session_ended": _("ended sessions: {count}"),
    "user.factor_added": _("added a second factor ({factor}) from {address}"),
    "user.factor_removed": _("removed a second factor ({factor})"),
    "user.factor_refused": _("refused a second factor ({method}) from {address} ({count} in this minute)"),
    "user.recovery_codes_made": _("made new recovery codes from {address}"),
    "user.linked": _("linked the account to {provider}"),
    "user.unlinked": _("unlinked the account from {provider}"),
    "channel.added": _("had gates told in a channel of {service}"),
    "channel.removed": _("removed the channel"),
    "channel.tested": _("sent the channel a test message"),
    "webhook.created": _("made a webhook to {host}"),
    "webhook.rotated": _("gave the webhook another secret"),
    "webhook.disabled": _("disabled the webhook: {reason}"),
    "webhook.enabled": _("enabled the webhook again"),
    "webhook.removed": _("removed the webhook"),
    "webhook.tested": _("sent the webhook a test message"),
    "webhook.resent": _("sent a message to the webhook again"),
    "plan.registered": _("registered version {version} of {agent}"),
    "token.created": _("made a token"),
    "token.revoked": _("revoked a token"),
    "device.confirmed": _("let a program have a token by its code"),
    "device.refused": _("refused a program that asked for a token by a code"),
    "device.mistyped": _("entered a code that no program waits under"),
    "audit.verified": _("had {seals} seals verified over {events} events: {faults} faults"),
    "audit.exported": _("exported {count} events as {format}"),
    "text.erased": _("erased what was written with event {event}"),
}
# Words for the same kinds where signals and waits go, or went, too.
WITH_SIGNALS = {
    "retention.ordered": _(
        "ordered a prune; checkpoints that go: {checkpoints}, signals and waits: {signals_and_waits}"
    ),
    "retention.finished": _(
        "finished a prune; checkpoints removed: {checkpoints}, signals and waits: {signals_and_waits}"
    ),
    "retention.stopped": _(
        "stopped a prune; checkpoints removed by then: {checkpoints}, signals and waits: {signals_and_waits}"
    ),
}
VERDICTS = {
    "approve": _("approved {step}"),
    "edit": _("approved {step} with an edit"),
    "reject": _("rejected {step}"),
    "answer": _("answered {step}"),
    "mixed": _("decided {step} action by action"),
}
# Words for the same kinds where the effect is an undo.
OF_AN_UNDO = {
    "effect.intended": _("is about to undo {step}"),
    "effect.done": _("called the undo of {step}"),
    "effect.failed": _("did not undo {step} (confirmed)"),
    "effect.unknown": _("does not know whether {step} was undone"),
    "effect.abandoned": _("was told to undo {step} again"),
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
        words = gettext("asks how to go on at {step}")
    if data.get("undoes"):
        words = str(OF_AN_UNDO.get(kind, words))
    if data.get("signals_and_waits"):
        words = str(WITH_SIGNALS.get(kind, words))
    if kind == "gate.decided":
        words = str(VERDICTS.get(str(data.get("kind")), gettext("decided {step}")))
    if kind == "retention.changed" and not data.get("agent"):
        words = gettext("changed what is kept of every agent without a policy of its own")
    if kind == "retention.pruned" and data.get("count") == 1:
        words = gettext("removed checkpoint {first} under the retention policy {policy}")
    step = str(data.get("step") or "")
    told = {**data, "step": quoted([titles.get(step) or in_words(step)])} if step else data
    return Happening(at, kind, who, words.format_map(_Blank(told)), text)


def of_row(row: SealedRow, text: str = "", titles: Mapping[str, str] = NONE) -> Happening:
    """Describe an event as seals cover it; data that cannot be read count as none."""
    found = readable(row.data)
    data = found if isinstance(found, dict) else {}
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=row.at or 0)
    return tell(at=at, kind=row.kind, who=row.actor_name or row.actor, data=data, text=text, titles=titles)


class _Blank(dict[str, Any]):
    """A dict that gives "" for a missing name."""

    def __missing__(self, key: str) -> str:
        return ""
