"""The Slack channel: to people by the app's bot, to a team's channel by the bot or by an incoming webhook.

The messages of the bot are changed in place when their gate ends. An incoming webhook cannot change what it sent, so
the end is a message of its own. A person is found in Slack by the e-mail address of their account, once; their row then
keeps who that is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now

from approvals.models import ChannelAddress
from approvals.notifications.building import NoticeKind, NoticeMessage
from approvals.notifications.channel import NoticeAddress, NoticeChannel, Receipt, Result
from approvals.outbound import sending

from .slack_api import UNCHANGEABLE, Slack, refused
from .slack_blocks import body_of
from .texts import of_teams, zone_of

NAME = "slack"
IN_SLACK = re.compile(r"[UWCGD][A-Z0-9]{5,}")  # the id of a person or a channel
BY_MAIL = hashlib.sha256(b"e-mail").hexdigest()  # the mark of a person's row


class SlackChannel(NoticeChannel):
    """The channel. A team may have an incoming webhook without any setting."""

    name = NAME
    label = "Slack"
    updates = True
    takes = "the address of an incoming webhook, or the id of a channel that the app is in (C024BE91L)"

    def fault(self, address: str) -> str:
        """Say why nothing can be sent to a team's address in it: a webhook's, or a channel's id."""
        if IN_SLACK.fullmatch(address):
            told = "No app can write there, as HOLDPOINT_SLACK_TOKEN is not set. Use an incoming webhook."
            return "" if settings.HOLDPOINT_SLACK_TOKEN else told
        if address.startswith("#"):
            return "Write the channel's id, such as C024BE91L: Slack shows it at the end of the channel's details."
        return super().fault(address)

    @property
    def personal(self) -> bool:
        """Tell whether there is an app that could write to people."""
        return bool(settings.HOLDPOINT_SLACK_TOKEN)

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List the people whom the bot may find in Slack, and these teams' channels.

        A person's address is that of their account, as with e-mail: the row only keeps who that is in Slack.
        """
        found = of_teams(NAME, teams)
        return [*found, *_people(people)] if people and self.personal else found

    @contextmanager
    def session(self) -> Iterator[SlackSender]:
        """Send several messages; whom Slack knew is stored at the end, in the thread that opened the session."""
        sender = SlackSender()
        try:
            yield sender
        finally:
            for kept in sender.found:
                remember(*kept)


class SlackSender:
    """Sends messages, and looks people up."""

    def __init__(self) -> None:
        self.slack = Slack()
        self.found: list[tuple[int, str, str, str]] = []  # what `remember` takes
        self.known: dict[str, str] = {}  # who somebody is, by their e-mail address

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Send one message, or change the earlier ones where the gate has ended."""
        if to.team is not None and not IN_SLACK.fullmatch(to.value):
            url = sending.unseal(to.value)
            return self.slack.post(url, body_of(message, to.zone)) if url else Receipt(Result.REFUSED, "secret_lost")
        if not settings.HOLDPOINT_SLACK_TOKEN:
            return refused("not_authed")
        if earlier and (message.ended or message.kind == NoticeKind.DECIDED):
            changed = [self._change(message, to, each) for each in earlier.split()]
            kept = [each for each in changed if each.word.removeprefix("slack_") not in UNCHANGEABLE]
            if kept:
                return next((each for each in kept if each.result != Result.SENT), kept[-1])
        whom, found = (to.value, Receipt(Result.SENT)) if IN_SLACK.fullmatch(to.value) else self._look_up(to)
        came = self._post(message, to, whom) if whom else found
        if came.result == Result.GONE and to.person is not None:
            self.found.append((to.person, to.label, whom or to.value, came.word))
        return came

    def _post(self, message: NoticeMessage, to: NoticeAddress, whom: str) -> Receipt:
        answer, came = self.slack.call("chat.postMessage", {"channel": whom, **body_of(message, to.zone)})
        return _referring(answer) if came.result == Result.SENT else came

    def _change(self, message: NoticeMessage, to: NoticeAddress, earlier: str) -> Receipt:
        channel, _, at = earlier.partition(":")
        answer, came = self.slack.call("chat.update", {"channel": channel, "ts": at, **body_of(message, to.zone)})
        return _referring(answer) if came.result == Result.SENT else came

    def _look_up(self, to: NoticeAddress) -> tuple[str, Receipt]:
        """Find a person by their e-mail address, and keep who they are; "" with a receipt where Slack does not say."""
        if to.value in self.known:
            return self.known[to.value], Receipt(Result.SENT)
        answer, came = self.slack.ask("users.lookupByEmail", email=to.value)
        user = answer.get("user")
        found = str(user.get("id", "")) if isinstance(user, dict) else ""
        if came.result != Result.SENT:
            return "", came
        if not IN_SLACK.fullmatch(found):
            return "", Receipt(Result.LATER, "bad_answer")
        self.known[to.value] = found
        if to.person is not None:
            self.found.append((to.person, to.label, found, ""))
        return found, came


def _people(people: Collection[int]) -> Iterator[NoticeAddress]:
    """Yield the address of each person who has one, but for those of whom Slack said that it has nobody."""
    known = {each.user_id: each for each in ChannelAddress.objects.filter(channel=NAME, user__in=people)}
    found = User.objects.filter(pk__in=list(people), is_active=True).exclude(email="").order_by("pk")
    for each in found.annotate(zone=zone_of("pk")):
        row = known.get(each.pk)
        kept = row if row and row.label == each.email[:100] else None  # of another address: looked up anew
        if kept is None or kept.gone_at is None:
            value = kept.value if kept else each.email
            yield NoticeAddress(
                channel=NAME, value=value, label=each.email[:100], person=each.pk, zone=each.zone or "UTC"
            )


def remember(person: int, email: str, value: str, gone: str) -> None:
    """Keep who a person is in Slack, or by a code why they are nobody there."""
    kept = {"label": email, "value": value, "gone_at": Now() if gone else None, "gone_word": gone}
    ChannelAddress.objects.update_or_create(channel=NAME, user_id=person, team=None, mark=BY_MAIL, defaults=kept)


def look_again(user: User) -> None:
    """Forget who the person is in Slack: the next message looks for their e-mail address."""
    ChannelAddress.objects.filter(channel=NAME, user=user).delete()


def _referring(answer: Any) -> Receipt:
    return Receipt(Result.SENT, reference=f"{answer.get('channel', '')}:{answer.get('ts', '')}"[:200])
