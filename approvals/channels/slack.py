"""The Slack channel: to people by the app's bot, to a team's channel by the bot or by an incoming webhook.

A message of the bot is changed in place when its gate ends. An incoming webhook cannot change what it sent, so the end
is a message of its own. A person is found in Slack by the e-mail address of their account, once; their row then keeps
who that is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef

from approvals.models import ChannelAddress
from approvals.notifications.channel import Address, Receipt, Result
from approvals.notifications.message import Kind, Message
from approvals.outbound import sealed

from .slack_api import Slack
from .slack_blocks import body_of
from .slack_errors import UNCHANGEABLE, refused

NAME = "slack"
IN_SLACK = re.compile(r"[UWCGD][A-Z0-9]{5,}")  # the id of a person or a channel
BY_MAIL = hashlib.sha256(b"e-mail").hexdigest()  # the mark of a person's row


class SlackChannel:
    """The channel."""

    name = NAME
    label = "Slack"
    updates = True
    at_once = 10

    def unfit(self) -> str:
        """Say nothing: a team may have an incoming webhook without any setting."""
        return ""

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[Address]:
        """List the people who may be found in Slack, where there is a bot, and these teams' channels.

        Whoever has an e-mail address gets a row the first time.
        """
        reachable = list(people) if settings.HOLDPOINT_SLACK_TOKEN else []
        if reachable:
            known = ChannelAddress.objects.filter(channel=NAME, user=OuterRef("pk"))
            new = User.objects.filter(~Exists(known), pk__in=reachable, is_active=True).exclude(email="")
            ChannelAddress.objects.bulk_create([row_of(each) for each in new], ignore_conflicts=True)
        found = ChannelAddress.objects.usable(NAME).of(people=reachable, teams=teams).order_by("pk")
        return [
            Address(
                channel=NAME, value=each.value, label=each.label, id=each.pk, person=each.user_id, team=each.team_id
            )
            for each in found
        ]

    @contextmanager
    def session(self) -> Iterator[SlackSender]:
        """Send several messages."""
        yield SlackSender()


class SlackSender:
    """Sends messages, and looks people up."""

    def __init__(self) -> None:
        self.slack = Slack()

    def send(self, message: Message, to: Address, *, key: str, earlier: str = "") -> Receipt:
        """Send one message, or change the earlier one where the gate has ended."""
        if to.team is not None and not IN_SLACK.fullmatch(to.value):
            url = sealed.unseal(to.value)
            return self.slack.post(url, body_of(message)) if url else Receipt(Result.REFUSED, "secret_lost")
        if not settings.HOLDPOINT_SLACK_TOKEN:
            return refused("not_authed")
        if earlier and (message.ended or message.kind == Kind.DECIDED):
            changed = self._change(message, earlier)
            if changed.word.removeprefix("slack_") not in UNCHANGEABLE:
                return changed
        whom, found = (to.value, Receipt(Result.SENT)) if IN_SLACK.fullmatch(to.value) else self._look_up(to)
        return self._post(message, whom) if whom else found

    def _post(self, message: Message, whom: str) -> Receipt:
        answer, came = self.slack.call("chat.postMessage", {"channel": whom, **body_of(message)})
        return _referring(answer) if came.result == Result.SENT else came

    def _change(self, message: Message, earlier: str) -> Receipt:
        channel, _, at = earlier.partition(":")
        answer, came = self.slack.call("chat.update", {"channel": channel, "ts": at, **body_of(message)})
        return _referring(answer) if came.result == Result.SENT else came

    def _look_up(self, to: Address) -> tuple[str, Receipt]:
        """Find a person by their e-mail address, and keep who they are; "" with a receipt where Slack does not say."""
        answer, came = self.slack.ask("users.lookupByEmail", email=to.value)
        user = answer.get("user")
        found = str(user.get("id", "")) if isinstance(user, dict) else ""
        if came.result != Result.SENT:
            return "", came
        if not IN_SLACK.fullmatch(found):
            return "", Receipt(Result.LATER, "bad_answer")
        ChannelAddress.objects.filter(pk__in=[to.id], value=to.value).update(value=found)
        return found, came


def look_again(user: User) -> None:
    """Forget who the person is in Slack: the next message looks for their present e-mail address."""
    now = {"value": user.email, "label": user.email[:100], "gone_at": None, "gone_word": ""}
    ChannelAddress.objects.filter(channel=NAME, user=user, mark=BY_MAIL).update(**now)


def row_of(user: User) -> ChannelAddress:
    """Return a new row of a person, who is not looked up in Slack before the first message."""
    return ChannelAddress(channel=NAME, user=user, value=user.email, mark=BY_MAIL, label=user.email[:100])


def _referring(answer: Any) -> Receipt:
    return Receipt(Result.SENT, reference=f"{answer.get('channel', '')}:{answer.get('ts', '')}"[:200])
