"""Browsers in which somebody is signed in and has turned messages on."""

from __future__ import annotations

from django.contrib.auth.models import User

from approvals.channels import browsers
from approvals.models import ChannelAddress, SignedIn
from approvals.sessions import digest_of_key
from tests.harness.signed_in_clients import session_of

from .push_service import FakeBrowser


def turn_on(user: User, browser: FakeBrowser) -> ChannelAddress:
    """Turn messages on in a browser in which the person has just signed in."""
    made = browsers.subscribe(user, browser.said, label="Firefox on Linux")
    SignedIn.objects.create(user=user, session_key=digest_of_key(session_of(user)), pushed_to=made.pk)
    return made
