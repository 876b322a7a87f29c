"""E-mail: the contract of channels, its own threads and codes, what leaves the house, and scanners of links."""

from __future__ import annotations

import datetime as dt
import re
import smtplib
import ssl
from dataclasses import replace
from socket import gaierror
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.cards.action import Action
from approvals.gates.reading import with_reviewers
from approvals.models import Decision, Gate, Message, NotificationPreference, Outcome
from approvals.notifications import building, delivering
from approvals.notifications.building import NoticeKind, NoticeMessage, Urgency
from approvals.notifications.channel import NoticeAddress, Result
from approvals.notifications.email import KEPT, Email, judged
from checkpoints.models import Event
from tests.factories import ann, decide, make_action, make_card, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import signed_in

from .channel_contract import ChannelContract, make_message
from .mail_server import MailServer, html_of, text_of

ANSWERS = {Result.LATER: "450 4.2.1 try again", Result.REFUSED: "550 5.1.1 no such mailbox"}
TO = NoticeAddress(channel="email", value="ann@example.org", label="ann@example.org", person=1, name="Ann Okafor")
REACHED = {"number": 0, "title": 1, "facts": 2, "all": 3}


class MailRig:
    def __init__(self, server: MailServer, person: User) -> None:
        self.channel, self.person, self.server = Email(), person, server

    def heard(self) -> list[str]:
        return [html_of(mail) for mail in self.server.mails if mail["Bcc"] is None]

    def answer(self, result: Result) -> None:
        self.server.rcpt.append(ANSWERS[result])

    def stop(self) -> None:
        self.server.stop()


class TestEmail(ChannelContract):
    gone = False

    @pytest.fixture
    def rig(self, mails: MailServer) -> MailRig:
        return MailRig(mails, ann(make_team()))


def test_all_mails_about_a_gate_are_one_thread(mails: MailServer) -> None:
    with Email().session() as session:
        first = session.send(make_message(), TO, key="1.1")
        ended = make_message(kind=NoticeKind.DECIDED, ended="Approved by Bob.", subject="Approved by Bob. Refund Marit")
        second = session.send(ended, TO, key="2.1", earlier=first.reference)
    one, two = mails.mails
    assert first.reference == one["Message-ID"] == "<1.1@localhost>"
    assert one["References"] == one["In-Reply-To"] == "<gate-42@localhost>"
    assert two["In-Reply-To"] == one["Message-ID"]
    assert two["References"] == f"<gate-42@localhost> {one['Message-ID']}"
    assert two["Subject"] == f"Re: {one['Subject']}"
    assert second.reference == "<2.1@localhost>"
    assert one["Auto-Submitted"] == "auto-generated"
    assert one["List-Unsubscribe"].endswith("/account/notifications/>")


def test_a_connection_is_kept_for_many_mails_and_made_anew_where_it_was_closed(mails: MailServer) -> None:
    with Email().session() as session:
        for number in range(KEPT + 1):
            assert session.send(make_message(), TO, key=f"{number}.1").result == Result.SENT
    assert len(mails.mails) == KEPT + 1
    assert mails.connections == 2
    mails.mails.clear()
    with Email().session() as session:
        session.send(make_message(), TO, key="1.1")
        mails.data.append("cut")
        receipt = session.send(make_message(), TO, key="2.1")
    assert receipt.result == Result.SENT
    # Where the server took it and died before its answer, it comes twice, under the same id.
    assert [mail["Message-ID"] for mail in mails.mails] == ["<1.1@localhost>", "<2.1@localhost>", "<2.1@localhost>"]


def test_a_mail_tells_the_deadline_in_the_persons_zone_and_loads_nothing(mails: MailServer) -> None:
    with Email().session() as session:
        session.send(replace(make_message(), items=(make_message(),)), TO, key="1.1")
    html = html_of(mails.mails[0])
    assert not re.search(r"<(?:img|script|link|iframe|form|object)\b|url\(|@import|src=", html)
    assert set(re.findall(r'href="([^"]*)"', html)) == {
        "https://holdpoint.example/gates/42/", "https://holdpoint.example/account/notifications/",
    }  # fmt: skip
    assert "prefers-color-scheme: dark" in html
    assert '<meta name="color-scheme" content="light dark">' in html
    due = dt.datetime(2026, 11, 27, 13, 0, tzinfo=dt.UTC)
    with Email().session() as session:
        session.send(make_message(deadline=due), replace(TO, zone="Europe/Berlin"), key="1.1")
        session.send(make_message(deadline=due), replace(TO, zone="No/Where"), key="2.1")
    assert "Decide by 27 Nov 2026, 14:00 (Europe/Berlin)." in text_of(mails.mails[1])
    assert "Decide by 27 Nov 2026, 13:00 (UTC)." in text_of(mails.mails[2])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("ann@bücher.example", "Ann"),
        ("ann@example.org", "Ann\r\nBcc: eve@example.org"),
        ("ann@example.org", "Änn “A” <x>"),
    ],
)
def test_odd_names_and_addresses_are_sent(mails: MailServer, value: str, name: str) -> None:
    with Email().session() as session:
        assert session.send(make_message(), replace(TO, value=value, name=name), key="1.1").result == Result.SENT
    [mail] = mails.mails
    assert mail["Bcc"] is None
    assert len(mails.recipients) == 1


def test_what_is_no_address_is_refused_for_good(mails: MailServer) -> None:
    for value in ("ann@example.org\r\nBcc: eve@example.org", "@"):
        mails.rcpt.append("553 5.1.3 no address")
        with Email().session() as session:
            assert session.send(make_message(), replace(TO, value=value), key="1.1").result == Result.REFUSED
    assert mails.mails == []


@pytest.mark.parametrize(
    ("error", "result", "word"),
    [
        (smtplib.SMTPRecipientsRefused({"a": (450, b"later")}), Result.LATER, "smtp_450"),
        (smtplib.SMTPRecipientsRefused({"a": (550, b"no")}), Result.REFUSED, "smtp_550"),
        (smtplib.SMTPDataError(554, b"no"), Result.REFUSED, "smtp_554"),
        (smtplib.SMTPSenderRefused(550, b"who are you", "a"), Result.LATER, "smtp_550"),
        (smtplib.SMTPAuthenticationError(535, b"no"), Result.LATER, "sign_in"),
        (smtplib.SMTPHeloError(501, b"bad name"), Result.LATER, "smtp_501"),  # of this machine, not of the mail
        (smtplib.SMTPServerDisconnected("bye"), Result.LATER, "cut"),
        (gaierror(-2, "unknown"), Result.LATER, "dns_failed"),
        (ssl.SSLError("certificate"), Result.LATER, "tls_failed"),
        (TimeoutError(), Result.LATER, "timeout"),
        (ValueError("two lines"), Result.REFUSED, "bad_address"),
    ],
    ids=str,
)
def test_replies_are_judged_by_their_codes(error: Exception, result: Result, word: str) -> None:
    receipt = judged(error)
    assert (receipt.result, receipt.word) == (result, word)


def built(gate: Gate, kind: NoticeKind = NoticeKind.ASKED, **more: Any) -> NoticeMessage:
    [read] = with_reviewers({gate.pk})
    return building.of_gate(read, read.standing(), kind, urgency=Urgency.NORMAL, **more)


def gate_that_lets(leaves: str, **card: Any) -> Gate:
    policy = make_policy(make_team(), name="default")
    policy.leaves = leaves
    policy.save(update_fields=["leaves"])
    return make_gate(policy=policy, team=policy.team, card=make_card(**card))


@pytest.mark.parametrize("leaves", list(REACHED))
def test_a_message_holds_what_the_policy_lets_leave(leaves: str) -> None:
    message = built(gate_that_lets(leaves, resource="order 20417"))
    whole = repr(message)
    levels = {"Refund €120.00": 1, "Marit Ellery": 2, "order 20417": 2, "Medium": 2}
    for said, level in levels.items():
        assert (said in whole) == (REACHED[leaves] >= level), said
    assert bool(message.sections) == (leaves == "all")
    assert message.link.endswith(f"/gates/{message.gate}/")


def test_no_secret_leaves_and_hidden_characters_are_spelled_out() -> None:
    schema = {
        "type": "object",
        "properties": {"to": {"type": "string"}, "password": {"type": "string", "writeOnly": True}},
    }
    action = Action(
        id="mail", title="Send", tool="mail.send", schema=schema, arguments={"to": "marit", "password": "hunter2"}
    )
    said = repr(list(building.values(action)))
    assert "marit" in said
    assert "hunter2" not in said
    message = built(gate_that_lets("title", title="Pay\u202e 99 to \u200bEve"))
    assert "\u202e" not in message.subject
    assert "\u200b" not in message.title


def test_long_and_many_values_are_counted_and_cut() -> None:
    values = {f"field {n:02}": "x" * 1000 for n in range(40)}
    action = Action(id="big", title="Big", tool="big", arguments=values)
    [section] = built(gate_that_lets("all", actions=[action])).sections
    assert len(section.facts) == 26
    assert "and 700 more characters" in section.facts[0].value
    assert "15 more values" in section.facts[-1].value
    many = built(
        gate_that_lets(
            "all", actions=[make_action(id=f"refund{n}", effect="", pointer="", pinned=[]) for n in range(12)]
        )
    )
    assert len(many.sections) == 11
    assert "2 more" in next(each.value for each in many.facts if each.label == "Actions")


def test_an_end_says_who_and_how_except_where_only_the_number_may_leave() -> None:
    gate = gate_that_lets("title")
    decide(gate, by=ann(gate.team))
    message = built(gate, NoticeKind.DECIDED, outcome=Outcome.objects.get(gate=gate))
    assert message.subject == "Approved by Ann Okafor. Refund €120.00 to Marit"
    assert (message.ended, message.deadline, message.button) == ("Approved by Ann Okafor.", None, "See the gate")
    # The mail said who had rejected the gate, and a mention by whom.
    gate = gate_that_lets("number")
    decide(gate, ann(gate.team), "reject")
    message = built(gate, NoticeKind.DECIDED, outcome=Outcome.objects.get(gate=gate))
    assert (message.ended, message.subject) == ("This gate has ended.", f"This gate has ended. gate {gate.pk}")
    assert built(gate, NoticeKind.MENTION, by="Bob").subject == f"Somebody mentioned you: gate {gate.pk}"


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
    delivering.run_slice()
    [mail] = mails.mails
    whole = "\n".join([text_of(mail), html_of(mail), *map(str, mail.values())])
    links = {urlsplit(each).path for each in re.findall(r"https?://[^\s\"<>]+", whole)}
    assert f"/gates/{gate.pk}/" in links
    assert "/account/notifications/" in links
    return gate, signed_in(reviewer), links


def state(gate: Gate) -> tuple[object, ...]:
    row = Gate.objects.get(pk=gate.pk)
    opened = Message.objects.filter(gate=gate, opened_at__isnull=False).count()
    counts = (Decision.objects.count(), Event.objects.count(), NotificationPreference.objects.count())
    return row.status, row.version, opened, counts


def test_who_is_not_signed_in_decides_and_opens_nothing_by_any_link(mails: MailServer) -> None:
    gate, _, links = told(mails)
    before = state(gate)
    for link in links:
        for method in ("get", "head", "options", "post"):
            for headers in ({}, AHEAD[0]):
                getattr(Client(enforce_csrf_checks=True), method)(link, headers=headers)
    assert state(gate) == before


def test_only_the_signed_in_persons_visit_opens_it_and_no_page_that_their_browser_fetches_ahead(
    mails: MailServer,
) -> None:
    gate, client, links = told(mails)
    before = state(gate)
    for headers in AHEAD:
        assert client.get(f"/gates/{gate.pk}/", headers=headers).status_code == 200
    for link in links:
        assert client.head(link).status_code == 200
    assert state(gate) == before
    colleague = signed_in(ann(gate.team))
    colleague.get(f"/gates/{gate.pk}/")
    assert Message.objects.get(gate=gate).opened_at is None
    client.get(f"/gates/{gate.pk}/")
    opened = Message.objects.get(gate=gate).opened_at
    assert opened is not None
    client.get(f"/gates/{gate.pk}/")
    assert Message.objects.get(gate=gate).opened_at == opened
    assert Gate.objects.get(pk=gate.pk).status == "open"
