"""Messages about a person's own account: links for a new password, and changes of how they sign in.

A change's event is its outbox row, as a gate's is: it is told by e-mail to whom it is about, whatever they chose, also
if somebody else made it.

It also reads and stores a person's notification settings from the form of their page. What it cannot read it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import time, timedelta
from typing import Any
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import QueryDict
from django.utils import timezone

from approvals.accounts import sign_ins
from approvals.accounts.factors import ProofMethod
from approvals.models import NotificationPreference, Profile
from checkpoints import actors
from checkpoints.events.event import Event
from checkpoints.values import canonical_json

from . import building, wanted_when
from .building import MessageFact, NoticeKind, NoticeMessage, Urgency, write_moment
from .channel import personal

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
        facts=tuple(facts),
        reason="If this was not you, sign out all other sessions there, and tell an administrator.",
        link=building.absolute("/account/sessions/"),
        button="See your sessions",
    )


def of_new_password(user: User) -> NoticeMessage:
    """Build the message with the link to set a new password, which is made now: nothing stores it."""
    return NoticeMessage(
        kind=NoticeKind.RESET,
        subject="Set a new password for Holdpoint",
        facts=(_account(user), MessageFact("The link works", "once, within one hour")),
        reason=(
            "Somebody, probably you, asked for a new password. Opening the link changes nothing by itself. "
            "If you did not ask, ignore this mail."
        ),
        link=building.absolute(sign_ins.reset_path(user)),
        button="Set a new password",
        urgency=Urgency.HIGH,
    )


def test() -> NoticeMessage:
    """Build the message that a person has sent to themself."""
    page = building.settings_page()
    return NoticeMessage(
        kind=NoticeKind.TEST,
        subject="A test message",
        reason="You asked for this on the page of your notification settings. Messages arrive.",
        link=page,
        settings_link=page,
        button="Open the settings",
    )


def _account(user: User) -> MessageFact:
    return MessageFact("Account", f"{user.get_username()} at {settings.HOLDPOINT_ORIGINS[0]}")


AS_POLICY, NEVER = "policy", "never"
LEADS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "4h": timedelta(hours=4),
    "1d": timedelta(days=1),
    "2d": timedelta(days=2),
}
DIGESTS = 3  # times a day
WEEK = range(7)


class SettingsRefused(Exception):
    """The settings cannot be as they were sent; the sentence says what to change."""


def of(user: User) -> NotificationPreference:
    """Return a person's settings, unsaved defaults where they never chose."""
    return NotificationPreference.objects.filter(user=user).first() or NotificationPreference(user=user)


def save(user: User, form: QueryDict) -> None:
    """Store what was sent. Raises SettingsRefused, and then stores nothing."""
    changed = read(user, form)
    columns = {field.attname: getattr(changed, field.attname) for field in changed._meta.fields if field.name != "user"}
    with transaction.atomic():
        Profile.objects.update_or_create(user=user, defaults={"zone": changed.zone or ""})
        NotificationPreference.objects.update_or_create(user=user, defaults=columns)


def replan(user: User) -> None:
    """Plan the digest of a person whose zone changed anew."""
    due = wanted_when.next_digest(of(user), timezone.now())
    NotificationPreference.objects.filter(user=user).update(digest_next=due)


def read(user: User, form: QueryDict) -> NotificationPreference:
    """Build settings from a form, without storing them. Raises SettingsRefused."""
    quiet = form.get("quiet") == "on"
    asked = NotificationPreference(
        user=user,
        choices=_choices(form),
        quiet_from=_time(form.get("quiet_from", "")) if quiet else None,
        quiet_until=_time(form.get("quiet_until", "")) if quiet else None,
        quiet_days=_days(form.getlist("quiet_day")),
        critical_passes=form.get("critical_passes") == "on",
        remind_before=_lead(form.get("remind", AS_POLICY)),
        digest_at=sorted({at for n in range(1, DIGESTS + 1) if (at := _time(form.get(f"digest_{n}", "")))}),
        digest_days=_days(form.getlist("digest_day")),
    )
    asked.zone = _zone(form.get("zone", ""))
    if quiet and (asked.quiet_from is None or asked.quiet_until is None):
        raise SettingsRefused("Write when the quiet hours begin and when they end, or switch them off.")
    if quiet and asked.quiet_from == asked.quiet_until:
        raise SettingsRefused("The quiet hours end when they begin. Write two different times.")
    if len(asked.quiet_days) == len(WEEK):
        raise SettingsRefused("Seven quiet days leave no day for messages. Choose “never” above instead.")
    if asked.digest_at and not asked.digest_days:
        raise SettingsRefused("Choose the days of the digest, or empty its times.")
    asked.digest_next = wanted_when.next_digest(asked, timezone.now())
    return asked


def _choices(form: QueryDict) -> dict[str, dict[str, str]]:
    chosen: dict[str, dict[str, str]] = {}
    for kind in wanted_when.CHOSEN:
        for channel in personal():
            level = form.get(f"{kind}-{channel.name}", "")
            if level in wanted_when.LEVELS:
                chosen.setdefault(kind, {})[channel.name] = level
    return chosen


def _zone(name: str) -> str:
    if name not in available_timezones():
        raise SettingsRefused("Choose a time zone of the list, such as Europe/Berlin.")
    return name


def _time(text: str) -> time | None:
    if not text.strip():
        return None
    try:
        return time.fromisoformat(text.strip()).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise SettingsRefused("Write times as hours and minutes, such as 18:30.") from None


def _days(sent: Sequence[str]) -> list[int]:
    return [day for day in WEEK if str(day) in sent]


def _lead(word: str) -> timedelta | None:
    if word == AS_POLICY:
        return None
    return timedelta() if word == NEVER else LEADS.get(word)


def lead_of(settings: NotificationPreference) -> str:
    """Return the word that the form has for the time of reminders."""
    if settings.remind_before is None:
        return AS_POLICY
    return next((word for word, lead in LEADS.items() if lead == settings.remind_before), NEVER)


def rows(settings: NotificationPreference) -> list[dict[str, Any]]:
    """List, for the form, each kind with what is chosen of it by channel."""
    return [
        {"kind": kind.value, "cells": [(way, wanted_when.least_risk(settings, kind, way.name)) for way in personal()]}
        for kind in wanted_when.CHOSEN
    ]
