"""Messages as the notifier builds them, with an agent that tries what it can, and browsers that take them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from approvals.channels import browsers
from approvals.models import ChannelAddress, SignedIn
from approvals.notifications.building import MessageFact, NoticeKind, NoticeMessage, Section
from approvals.notifications.channel import NoticeAddress
from approvals.sessions import digest_of_key
from tests.approvals.notifications.channel_contract import make_message as asked
from tests.harness.signed_in_clients import session_of

from .push_service import FakeBrowser

LINK = "https://holdpoint.example/gates/42/"
HOSTILE = "<!channel> *pay* <https://evil.example|here> & [click](https://evil.example) :tada: {{DATE(2020-01-01)}}"


def decided(**more: Any) -> NoticeMessage:
    return asked(**({"kind": NoticeKind.DECIDED, "subject": "Decided", "ended": "Approved by Ann Okafor."} | more))


def hostile() -> NoticeMessage:
    """Every text is an agent's."""
    facts = tuple(MessageFact(HOSTILE, HOSTILE) for _ in range(23))
    return asked(
        subject=HOSTILE * 3, title=HOSTILE, facts=facts, sections=(Section(HOSTILE, facts[:1]),), reason=HOSTILE * 40
    )


def address(channel: str, value: str, **more: Any) -> NoticeAddress:
    return NoticeAddress(channel=channel, value=value, label="tests", **({"team": 1} | more))


def turn_on(user: User, browser: FakeBrowser) -> ChannelAddress:
    """Turn messages on in a browser in which the person has just signed in."""
    made = browsers.subscribe(user, browser.said, label="Firefox on Linux")
    SignedIn.objects.create(user=user, session_key=digest_of_key(session_of(user)), pushed_to=made.pk)
    return made
