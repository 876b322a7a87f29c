"""Messages about a person's own account: links for a new password, and changes of how they sign in.

A change's event is its outbox row, as a gate's is: it is told by e-mail to whom it is about, whatever they chose, also
if somebody else made it.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User

from approvals.accounts import password_reset
from approvals.accounts.factors import ProofMethod
from checkpoints import actors
from checkpoints.events.event import Event
from checkpoints.values import canonical_json

from . import building
from .message import MessageFact, NoticeKind, NoticeMessage, Urgency, write_moment

PASSWORD, ADDED, CHANGED = "user.password_changed", "user.factor_added", "user.changed"
# Kind of the event -> what the message says.
CHANGES: dict[str, str] = {
    PASSWORD: "The password was changed.",
    ADDED: "A passkey was added.",
    "user.factor_removed": "A second factor was removed.",
    "user.recovery_codes_made": "New recovery codes were made.",
    "user.linked": "Single sign-on was linked.",
    "user.unlinked": "Single sign-on was unlinked.",
    CHANGED: "A new password was set.",  # in the administration
}


def person_of(event: Event) -> int | None:
    """Return the id of the person who is told of a change of their account; None for any other event.

    Whoever makes an account sets its first password, and a provider links those that it makes: neither is a change.
    """
    if event.kind not in CHANGES:
        return None
    said, number = canonical_json.decode_canonical(bytes(event.data)), event.subject.removeprefix("user:")
    if event.kind == CHANGED:
        told = "password" in said.get("fields", ())
    elif event.kind == PASSWORD:
        told = event.actor == event.subject or _by_link(event, said)
    else:
        told = not said.get("created")
    return int(number) if told and number.isdigit() else None


def _by_link(event: Event, said: dict[str, object]) -> bool:
    """Tell whether a password was set by nobody who is signed in, on a page."""
    return event.actor == actors.SYSTEM.id and bool(said.get("address"))


def of_change(user: User, event: Event) -> NoticeMessage:
    """Build the message that how somebody signs in was changed."""
    said = canonical_json.decode_canonical(bytes(event.data))
    changed = str(CHANGES[event.kind])
    if event.kind == PASSWORD and _by_link(event, said):
        changed = "The password was reset by a link that was sent to this address."
    elif event.kind == ADDED and said.get("factor") == ProofMethod.CODE:
        changed = "An authenticator app was added."
    facts = [MessageFact("Changed", changed), _account(user), MessageFact("When", write_moment(event.at, "UTC"))]
    if event.actor != event.subject and event.actor != actors.SYSTEM.id:
        facts.append(MessageFact("By", "an administrator"))
    elif said.get("address"):
        facts.append(MessageFact("From", str(said["address"])))
    return NoticeMessage(
        kind=NoticeKind.ACCOUNT,
        subject="How you sign in to Holdpoint was changed",
        title="",
        facts=tuple(facts),
        reason="If this was not you, sign out all other sessions there, and tell an administrator.",
        link=building.absolute("/account/sessions/"),
        settings_link="",
        button="See your sessions",
    )


def of_new_password(user: User) -> NoticeMessage:
    """Build the message with the link to set a new password, which is made now: nothing stores it."""
    return NoticeMessage(
        kind=NoticeKind.RESET,
        subject="Set a new password for Holdpoint",
        title="",
        facts=(_account(user), MessageFact("The link works", "once, within one hour")),
        reason=(
            "Somebody, probably you, asked for a new password. Opening the link changes nothing by itself. "
            "If you did not ask, ignore this mail."
        ),
        link=building.absolute(password_reset.path(user)),
        settings_link="",
        button="Set a new password",
        urgency=Urgency.HIGH,
    )


def test() -> NoticeMessage:
    """Build the message that a person has sent to themself."""
    page = building.settings_page()
    return NoticeMessage(
        kind=NoticeKind.TEST,
        subject="A test message",
        title="",
        reason="You asked for this on the page of your notification settings. Messages arrive.",
        link=page,
        settings_link=page,
        button="Open the settings",
    )


def _account(user: User) -> MessageFact:
    return MessageFact("Account", f"{user.get_username()} at {settings.HOLDPOINT_ORIGINS[0]}")
