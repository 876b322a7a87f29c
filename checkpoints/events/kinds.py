"""Declares every kind of event: what it is about, when it is written and what its data hold.

`make generated` writes these as the table of docs/events.md. A test compares them with the code that writes
events, wherever that is: this app knows of gates and effects by these words alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind; `data` names each key in backticks, and explains in brackets what its name does not say."""

    subject: str
    when: str
    data: str = ""

    @property
    def keys(self) -> set[str]:
        """The keys that the data of such an event may have."""
        return set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", self.data)))


_GATE = "`status`, `step`, `risk`, `reviewers`, `policy`, `named` (ids; left out if none)"
_ENDED = (
    "`seen`, `to_run` (the digest of what may run, or null), `voters` (ids), "
    "`grants` (action and effect of each), `rows`, `proof`"
)
_EFFECT = "`effect`, `step`, `key`, `attempts`"
_AWAY = (
    "`person`, `delegate` (ids; null: nobody), `starts`, `ends`, `teams` (ids; none: all), "
    "`policies` (names; none: all)"
)
# One kind a line, which goes on where the next is indented: kind | subject | when | data, where it has some.
_DECLARED = f"""
checkpoint.saved | run | a step's checkpoint became the head; in no seal, since the run's own chain covers it
checkpoint.named | run | a person or the agent named a checkpoint, which keeps it from retention; the name is the
    event's text | `seq`
checkpoint.unnamed | run | a person removed a checkpoint's name | `seq`
checkpoint.noted | checkpoint | somebody wrote a note on it; the note is the event's text | `seq`, `key` (of the
    form)
checkpoint.note_removed | checkpoint | its author removed a note | `seq`, `note` (its event's id)
database.restored | database | an administrator ran `manage.py restored` after restoring a backup; an older page
    reloads when it connects | `event`, `seal` (the newest ones in the backup), `lost_ids` (how many ids were
    skipped)
run.started | run | a run and its first checkpoint were stored | `agent`
run.forked | run | a run was started from a checkpoint of another | `from`, `run`
run.running | run | a worker claimed the run, or a page took it over, saved, and left it running
run.missed | run | the external program of the run has sent nothing for a minute and a half
run.heard | run | a program that had lost contact is back
program.joined | run | a program claimed the run, or wrote under its claim, with a token that belongs to somebody
    else than who started the run: its person is who owns the token, and decides no gate of the run where duties are
    separated
run.halting | run | a person asked the run's worker to stop after the current step
run.taken | run | a page took the run over from its worker, to change it
run.waiting | run | the run was released, to wait for a decision, a time, a signal, or runs that it started
run.queued | run | the run may be claimed: what it waited for came, a person woke it, or its time slice ended
signal.received | run | somebody sent the run a signal, which is kept until a step waits for it | `signal` (its
    number), `name`, `key` (the sender's), `digest` (of its value; left out where that may hold a secret), `owner`
    (the id of the person whose token a program sent it with)
timer.skipped | run | a person ended the time for which the run waited | `step`, `name` (of the wait)
child.started | run | a step of the run started another run | `child` (its number), `agent`, `step`
child.adopted | run | a step took over a run that it had started before a rewind | `child`, `agent`, `step`
child.ordered | run | the run told runs that it had started to end, or to undo what they did and end | `children`
    (their numbers), `order` (`cancel`, `undo`)
run.completed | run | the last step was saved
run.failed | run | the run failed, or was frozen because its stored data do not verify
run.cancelled | run | a person or the outcome of a gate ended the run
run.rewound | run | a person went back to an earlier checkpoint's state; their words are the event's text | `to`,
    `seq`, `step`, `key` (of the form, if it had one)
run.edited | run | a person saved a changed state of an earlier checkpoint as a new checkpoint; their words are the
    event's text | `to`, `seq`, `step`, `key` (of the form, if it had one)
run.settling | run | a person ordered that effects which the run left behind are undone at once, or cancelled a run
    that had left some | `key` (of the order, if it had one)
worker.fenced | run | a worker came back after somebody else had claimed the run, and could write nothing |
    `worker`, `token`
run.upcast | run | its version is not deployed any more, and a newer one took it over; its open gate was withdrawn |
    `since`, `to` (versions), `upcasters` (their names)
step.failed | run | one attempt of a step failed; the message is in the failure's row | `step`, `attempt`
step.refused | run | a validator refused what a step returned; the message is in the failure's row | `step`,
    `validator`, `ring` (0: back to the step itself), `attempt`
gate.opened | gate | a run asks people | {_GATE}, `kind` (review, recovery), `replaces` (the id of the gate that it
    replaces), `attempt` (which one it is, if the same or what the run asked at this step was rejected before),
    `seen` (the digest of the proposal), `rows`, `proof`
gate.edited | gate | an edit or an answer replaced the proposal; earlier approvals lapse | {_GATE}, `kind` (edit,
    answer, mixed), `proposal`, `actions`, `lapsed` (how many), `users` (whose approvals lapsed, without the
    editor), `seen` (the digest of the proposal), `rows`, `proof`
gate.decided | gate | one reviewer's decision was recorded; their comment is the event's text | {_GATE}, `kind`
    (approve, edit, reject, answer, mixed), `verdicts` (by action, if mixed), `proposal`, `quorum`, `rules` (names of
    the policy's rules that count, if any), `confirmed` (when its person confirmed who they are, if the policy
    requires it), `confirmed_by` (password, passkey, code), `repeats` (the effects, by number, that were performed
    before and may be performed again), `dropped` (the preselected preconditions, by id, that do not apply),
    `second_look` (true, if fast approvals or a rule required it), `seen` (the digest of the proposal), `rows`,
    `proof`, `on_behalf_of` (the id of the person who was away, whose authority was used), `bulk` (the number of the
    bulk decision, if it was part of one)
gate.asks | gate | the gate asks others for their approval than before: its policy's next stage, or a place of which the
    vote lapsed | {_GATE}, `asks` and `before` (ids of teams, and negated ids of people), `seen`, `rows`, `proof`
gate.lapsed | gate | a count found votes of people who may no longer decide, or who approved before an effect was
    performed that this would repeat; those votes lapse | {_GATE}, `users` (ids), `proposal`, `seen` (the digest of
    the proposal), `rows`, `proof`
gate.settling | gate | the decision that ends the gate was made, and takes effect at the end of its policy's undo
    window; the gate stays open until then | {_GATE}, `kind` (the outcome's), `settles_at`, `seen`, `rows`, `proof`
gate.undone | gate | a person took their own decision back within the undo window | {_GATE}, `kind` (of the
    decision), `decision` (its number), `seen`, `rows`, `proof`
gate.reconsidered | gate | what was decided no longer takes effect at the end of the window: it was undone or
    edited, votes lapsed, or it would do more than was shown | {_GATE}, `kind` (of the outcome that it would have
    had), `seen`, `rows`, `proof`
gate.not_run | gate | `HOLDPOINT_NOT_RUN_AFTER` seconds after an approval nothing that it lets run has begun; once
    for a gate | {_GATE}, `kind` (failed, gate, program, no_worker, queued, running), `since` (when the gate closed)
gate.begun | gate | something has begun after all, after `gate.not_run` | {_GATE}
gate.rescheduled | gate | the deadline was moved, as `Trial.expire` does in an agent's tests | {_GATE}, `seen`,
    `rows`, `proof`
gate.closed | gate | enough people approved, or one rejected | {_GATE}, `kind` (the outcome's), `verdicts` (by
    action, if mixed), {_ENDED}
gate.expired | gate | the deadline passed | {_GATE}, `kind` (expired, or approved if the policy says so), {_ENDED}
gate.withdrawn | gate | the run needs no answer any more | {_GATE}, `kind`, {_ENDED}
gate.claimed | gate | somebody claimed the gate, renewed their claim, or took it over from somebody else | {_GATE},
    `taken_from` (their id, if it was taken over), `seen`, `rows`, `proof`
gate.released | gate | a claim ended without a decision; a decision ends its sender's claim by itself | {_GATE},
    `kind` (released, lapsed), `holder` (whose it was), `seen`, `rows`, `proof`
gate.reassigned | gate | somebody asked a person or a team to act; the reason is the event's text | {_GATE}, `to`
    (`user:7` or `team:3`), `added` (whether the team joined the reviewers by that), `seen`, `rows`, `proof`
gate.escalated | gate | the next team of the policy's escalation joined the reviewers of this gate | {_GATE},
    `level`, `team` (its name), `until` (the new deadline, if that was moved), `seen`, `rows`, `proof`
gate.replaced | gate | another gate asks the same again: this one was withdrawn, or its approval did not hold |
    {_GATE}, `gate` (the other's id)
gate.handed_out | gate | the program that only asked was told of the approval, which counts for one call | {_GATE},
    `to` (a digest of its name for that call)
gate.remarked | gate | somebody commented on the gate; the comment is the event's text | {_GATE}, `key` (of the form)
gate.mentioned | gate | a comment or a question mentioned people who may see the gate | {_GATE}, `users` (ids)
gate.question | gate | somebody asked the agent; the question is the event's text | {_GATE}, `question` (its number),
    `key` (of the form)
gate.answered | gate | the agent answered a question; its words are the event's text | {_GATE}, `question` (its
    number)
gate.unanswered | gate | the agent could not answer a question; the event's text says why | {_GATE}, `question` (its
    number)
decision.refused | gate | somebody's decision was refused; written after the attempt was rolled back | `kind` (why),
    `verdict`, `ended` (how it had ended), `pointers` (the places at fault), `checks` (the red ones of the
    preflight), `last` (whether it had become the last vote needed), `effects` (the unconfirmed ones, by number,
    that would be repeated), `streak` and `seconds` (their number of approvals in so many seconds, after which a
    second look was required), `holder` (who had claimed the gate)
effect.intended | effect | an effect is about to be sent, or sent again under its key | {_EFFECT}, `undoes` (of an
    undo: the effect's id), `rows`, `proof`
effect.done | effect | it was performed; or a kept effect counts again, because the run came back to it | {_EFFECT},
    `undoes`, `rows`, `proof`
effect.failed | effect | it was certainly not performed | {_EFFECT}, `undoes`, `rows`, `proof`
effect.unknown | effect | nobody knows whether it was performed | {_EFFECT}, `undoes`, `rows`, `proof`
effect.abandoned | effect | a person ordered it again under a new key | {_EFFECT}, `undoes`, `rows`, `proof`
effect.undone | effect | it was undone | {_EFFECT}, `rows`, `proof`
effect.kept | effect | it is on an abandoned branch and is kept: it cannot be undone, a person chose to keep it, or
    another run depends on it | {_EFFECT}, `rows`, `proof`
effect.contradicted | effect | its worker reports a different result than a person has settled, or the other way
    round. Somebody should look | `effect`, `step`, `key`, `said` (`done`, `failed` or `undone`), `status` (as
    settled, which does not change)
effect.taken | effect | a fork reused the result of another run's effect; nothing was sent | `effect`, `step`,
    `key`, `from` (the other effect's id), `rows`, `proof`
effect.withheld | run | a precondition of its approval no longer holds: nothing was done, and the gate asks again |
    `step`, `gate` (that approved it), `preconditions` (ids of those that do not hold)
secret.revealed | gate or run | somebody asked to see a secret of the state; written before it is shown; never holds
    the value | `pointer` (empty: all of them), `seq` (of the checkpoint), `proposal` (of a gate)
policy.changed | policy | a version of a policy was written in the administration | `name`, `version`, `groups`
    (names; none: the team's own people), `people` (who are named beside them), `quorum`, `denials`, `stages` and
    `rules` (as canonical JSON; empty: none), `separation`, `reason_required`, `step_up`, `step_up_method`,
    `tokens_decide`, `deadline` (seconds, or null), `on_expiry`, `withdraw_after` (seconds, or null), `whole_state`,
    `registered_only`, `hourly` (gates, or null), `pause` (seconds, or null), `auto_sample` (percent), `leaves`,
    `remind_before` (seconds, or null), `remind_share` (percent), `calendar_id` (its number, or null), `escalation`
    (its levels: `team`, `after` and `extend`, in seconds), `bulk_risk` (none, low or medium), `rows`
policy.adopted | policy | `config.migrate` vouched for a version: one from before versions had proofs, or one that
    holds under the key before | as `policy.changed`
seal.required | proofs | from this event on a version of a policy, or an order to erase a text, counts only with a
    proof; once in a database | `rows` (none)
seal.checkpoints | proofs of checkpoints | from this event on a checkpoint has to bear a proof; several where very
    many runs are older | `unproven` (by run, the number of its last checkpoint without one), `rows` (none)
policy.proposed | policy (the version in force) | a version that is milder than the one in force was written; it
    waits for a second person | `name`, `change` (its number in the administration), `milder` (sentences),
    `proposed_by` (id), `settings` (as they would be; durations in seconds), `groups`, `people` (ids)
policy.refused | policy (the version in force) | somebody refused such a version, or its author took it back | as
    `policy.proposed`
tool.changed | tool | a version of a tool was registered in the administration | `name`, `version`, `title`,
    `schema` (its digest, in hex), `pinned`, `risk`, `irreversible`, `undo`, `used` (false: it counts as not
    registered), `counts` (false: it waits until a second person saves the same)
retention.changed | retention policy | a version of a retention policy was written in the administration | `agent`,
    `keep_days`, `keep_last`, `keep_gates`, `keep_decisions`, `keep_finals`, `enabled`
retention.held | run | a person set a legal hold on the run, or on one checkpoint; their reason is the event's text
    | `hold`, `seq` (null: the whole run)
retention.freed | run | a person freed a legal hold | `hold`, `seq`
retention.ordered | prune | a dry run was applied, by a person or by the nightly task | `checkpoints`,
    `signals_and_waits`, `digest` (of what was shown), `policies` (agent -> the policy row's id)
retention.requested | run | the program of an external agent removes checkpoints of its run | `checkpoints`,
    `policy` (what removes them, in place of a policy)
retention.pruned | run | checkpoints were removed; the run's gaps replace them, and `digest` is the newest gap's |
    `first`, `last`, `count`, `policy`, `version`, `gap` (its number), `digest`
retention.cleared | run | signals and waits of an ended run were removed, which no checkpoint that is left needs |
    `signals_and_waits`, `policy`, `version`
retention.finished | prune | a prune has removed everything that it was to remove | `checkpoints`,
    `signals_and_waits`, `freed` (bytes), `not_verified` (runs that were left alone, since their stored data do not
    verify)
retention.stopped | prune | a person stopped a running prune; what it had removed stays removed | `checkpoints`,
    `left`, `signals_and_waits` (removed by then), `freed` (bytes)
audit.verified | verification | a verification that somebody asked for ended | `seals`, `events`, `faults` (how many
    each), `upto` (the last seal)
audit.exported | export | somebody exported events; written before the first byte is sent | `format`, `filters`,
    `count`, `texts` (whether people's texts were included), `upto` (the last event's place)
text.erased | event | what a person wrote was erased; the reason is the event's text, and stays | `event` (its id),
    `kind`, `rows`
webhook.created | webhook | somebody made a webhook; the event holds only the host of its address | `host`, `agent`
    (empty: all of the team's)
webhook.rotated | webhook | it got a new secret
webhook.disabled | webhook | it was disabled | `reason` (by_hand, gone, failing, secret_lost)
webhook.enabled | webhook | it was enabled again
webhook.removed | webhook | it was deleted
webhook.tested | webhook | somebody sent a test message
channel.added | channel | somebody had a team's gates told in a channel of Slack or Teams | `service` (slack,
    teams), `host` (of the webhook; empty: the app's bot writes there)
channel.removed | channel | nothing more is told there
channel.tested | channel | somebody sent a test message
webhook.resent | webhook | somebody sent a message again. Ordinary messages are no events: the delivery log has them
    | `delivery`, `message` (its id)
plan.registered | plan | an external program registered a version of its agent that was new to the team | `agent`,
    `version`, `digest` (of the plan)
token.created | token | somebody made a token for the API, for themselves or for an agent | `scopes`, `agent`
    (empty: a person's own), `policy` (empty: any), `owner` (an actor)
token.revoked | token | a token was revoked
device.confirmed | device | somebody let a program have a token of theirs by its code; `token.created` follows when
    the program collects it | `scopes`, `address` (from which the program asked; of IPv6 its /64)
device.refused | device | somebody refused such a request | `scopes`, `address`
device.mistyped | user | a signed-in person entered a code under which no program waits; after five in five minutes
    no code is looked at
team.changed | team | a team's name, members or permissions were changed in the administration | `name`, `joined`,
    `left` (people's ids), `granted`, `revoked` (permissions)
user.changed | user | an account was made or changed in the administration, its person changed their name, or a
    provider's claims changed its teams; the event names the changed columns, not their contents | `fields`,
    `joined`, `left` (teams' ids), `granted`, `revoked` (permissions), `provider` (whose claims)
delegation.made | delegation | somebody planned a time away, with or without somebody who decides for them | {_AWAY}
delegation.ended | delegation | the person ended a time away before its end | {_AWAY}
calendar.changed | calendar | a calendar was made or changed in the administration | `name`, `zone`, `hours`,
    `country`, `days_off`
user.sign_in_failed | user; or address, if no account has the typed name, or if there were too many in a minute | a
    sign-in was refused, for a wrong password, an unknown name, or an account that is switched off | `address` (of
    the client; of IPv6 its /64), `count` (how many in this minute), `name` (if no account has it: a keyed digest of
    what was typed, which may be a password)
user.confirmation_failed | user | somebody who was signed in gave a wrong password when confirming or changing it |
    `address`, `count`
user.password_changed | user | a password was set, on a page, by a link that was mailed, or by a command | `address`
    (empty: by a command)
user.signed_in | user | somebody signed in | `address`, `method` (password, passkey, code, recovery_code, provider;
    several steps joined by "+")
user.sign_in_unknown | address | a provider of single sign-on named somebody who has no account here | `provider`,
    `address`
user.session_ended | user | sessions ended before their time: signed out, here or from elsewhere, or by an
    administrator | `count`
user.factor_added | user | a passkey or an authenticator app was added | `factor` (passkey, code), `number` (of the
    row), `address`
user.factor_removed | user | a second factor was removed, by its person or an administrator (the actor) | `factor`,
    `number`, `address`
user.factor_refused | user | a second factor was wrong, used before or copied | `method` (passkey, code; tampered:
    before seals were dropped), `address`, `count`
user.recovery_codes_made | user | recovery codes were made; earlier ones work no more | `address`
user.linked | user | an account was linked to a provider of single sign-on | `provider`, `address`, `created` (the
    account was made for it)
user.unlinked | user | that link was removed | `provider`, `address`
"""


def _read_kinds(declared: str) -> dict[str, EventKind]:
    lines = re.sub(r"\n +", " ", declared).strip().splitlines()
    return {kind: EventKind(*columns) for kind, *columns in (line.split(" | ") for line in lines)}


KINDS = _read_kinds(_DECLARED)
