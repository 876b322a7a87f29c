"""A mail scanner opens every link of a mail, in every way that scanners do: nothing is decided, nothing is opened."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from django.test import Client

from approvals.models import Decision, Gate, Notice, NotificationPreference
from approvals.notifications import notifying
from checkpoints.models import Event
from tests.factories import ann, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import signed_in

from .mail_server import MailServer, html_of, text_of

AHEAD = [
    {"Sec-Purpose": "prefetch"},
    {"Sec-Purpose": "prefetch;prerender"},
    {"Purpose": "prefetch"},
    {"X-Purpose": "preview"},
    {"X-Moz": "prefetch"},
]


def told(mails: MailServer) -> tuple[Gate, Client, set[str]]:
    """A gate, its signed-in reviewer, and every link of the mail that told them of it."""
    team = make_team()
    reviewer = ann(team)
    policy = make_policy(team, name="default")
    policy.leaves = "all"
    policy.save(update_fields=["leaves"])
    gate = make_gate(policy=policy, team=team)
    notifying.run_slice()
    [mail] = mails.mails
    whole = "\n".join([text_of(mail), html_of(mail), *map(str, mail.values())])
    links = {urlsplit(each).path for each in re.findall(r"https?://[^\s\"<>]+", whole)}
    assert f"/gates/{gate.pk}/" in links
    assert "/account/notifications/" in links
    return gate, signed_in(reviewer), links


def state(gate: Gate) -> tuple[object, ...]:
    row = Gate.objects.get(pk=gate.pk)
    opened = Notice.objects.filter(gate=gate, opened_at__isnull=False).count()
    counts = (Decision.objects.count(), Event.objects.count(), NotificationPreference.objects.count())
    return row.status, row.version, opened, counts


def test_who_is_not_signed_in_decides_and_opens_nothing_by_any_link(mails: MailServer) -> None:
    gate, _, links = told(mails)
    before = state(gate)
    for link in links:
        for method in ("get", "head", "options", "post"):
            for headers in ({}, *AHEAD):
                getattr(Client(enforce_csrf_checks=True), method)(link, headers=headers)
    assert state(gate) == before


@pytest.mark.parametrize("headers", AHEAD, ids=str)
def test_a_page_that_a_signed_in_browser_fetches_ahead_is_not_opened(
    mails: MailServer, headers: dict[str, str]
) -> None:
    gate, client, links = told(mails)
    before = state(gate)
    for link in links:
        assert client.get(link, headers=headers).status_code == 200
        assert client.head(link).status_code == 200
    assert state(gate) == before


def test_only_the_signed_in_persons_visit_opens_it(mails: MailServer) -> None:
    gate, client, _ = told(mails)
    colleague = signed_in(ann(gate.team))
    colleague.get(f"/gates/{gate.pk}/")
    assert Notice.objects.get(gate=gate).opened_at is None
    client.get(f"/gates/{gate.pk}/")
    opened = Notice.objects.get(gate=gate).opened_at
    assert opened is not None
    client.get(f"/gates/{gate.pk}/")
    assert Notice.objects.get(gate=gate).opened_at == opened
    assert Gate.objects.get(pk=gate.pk).status == "open"
