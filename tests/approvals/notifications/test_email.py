"""E-mail: the contract of channels, and what is its own: threads, headers, kept connections, replies by their codes."""

from __future__ import annotations

import re
import smtplib
import ssl
from dataclasses import replace
from socket import gaierror
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.notifications.channel import NoticeAddress, Result
from approvals.notifications.email import KEPT, Email, judged
from approvals.notifications.message import NoticeKind
from tests.factories import ann, make_team

from .channel_contract import ChannelContract, make_message
from .mail_server import MailServer, html_of, text_of

ANSWERS = {Result.LATER: "450 4.2.1 try again", Result.REFUSED: "550 5.1.1 no such mailbox"}
TO = NoticeAddress(channel="email", value="ann@example.org", label="ann@example.org", person=1, name="Ann Okafor")


class MailRig:
    """A real server, and Ann."""

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


def test_connections_are_kept_and_made_anew_after_many_mails(mails: MailServer) -> None:
    with Email().session() as session:
        for number in range(KEPT + 1):
            assert session.send(make_message(), TO, key=f"{number}.1").result == Result.SENT
    assert len(mails.mails) == KEPT + 1
    assert mails.connections == 2


def test_a_kept_connection_that_was_closed_is_made_anew_at_once(mails: MailServer) -> None:
    with Email().session() as session:
        session.send(make_message(), TO, key="1.1")
        mails.data.append("cut")
        receipt = session.send(make_message(), TO, key="2.1")
    assert receipt.result == Result.SENT
    # Where the server took it and died before its answer, it comes twice, under the same id.
    assert [mail["Message-ID"] for mail in mails.mails] == ["<1.1@localhost>", "<2.1@localhost>", "<2.1@localhost>"]


def test_a_mail_loads_nothing_and_carries_no_address_but_the_pages(mails: MailServer) -> None:
    with Email().session() as session:
        session.send(replace(make_message(), items=(make_message(),)), TO, key="1.1")
    html = html_of(mails.mails[0])
    assert not re.search(r"<(?:img|script|link|iframe|form|object)\b|url\(|@import|src=", html)
    assert set(re.findall(r'href="([^"]*)"', html)) == {
        "https://holdpoint.example/gates/42/", "https://holdpoint.example/account/notifications/",
    }  # fmt: skip
    assert "prefers-color-scheme: dark" in html
    assert '<meta name="color-scheme" content="light dark">' in html


def test_deadlines_are_in_the_persons_zone(mails: MailServer) -> None:
    import datetime as dt

    due = dt.datetime(2026, 11, 27, 13, 0, tzinfo=dt.UTC)
    with Email().session() as session:
        session.send(make_message(deadline=due), replace(TO, zone="Europe/Berlin"), key="1.1")
        session.send(make_message(deadline=due), replace(TO, zone="No/Where"), key="2.1")
    assert "Decide by 27 Nov 2026, 14:00 (Europe/Berlin)." in text_of(mails.mails[0])
    assert "Decide by 27 Nov 2026, 13:00 (UTC)." in text_of(mails.mails[1])


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


@pytest.mark.parametrize("value", ["ann@example.org\r\nBcc: eve@example.org", "ann", "@"])
def test_what_is_no_address_is_refused_for_good(mails: MailServer, value: str) -> None:
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
        (smtplib.SMTPDataError(452, b"full"), Result.LATER, "smtp_452"),
        (smtplib.SMTPSenderRefused(550, b"who are you", "a"), Result.LATER, "smtp_550"),
        (smtplib.SMTPAuthenticationError(535, b"no"), Result.LATER, "sign_in"),
        (smtplib.SMTPNotSupportedError("STARTTLS"), Result.LATER, "sign_in"),
        (smtplib.SMTPConnectError(421, b"busy"), Result.LATER, "smtp_421"),
        (smtplib.SMTPHeloError(501, b"bad name"), Result.LATER, "smtp_501"),  # of this machine, not of the mail
        (smtplib.SMTPServerDisconnected("bye"), Result.LATER, "cut"),
        (gaierror(-2, "unknown"), Result.LATER, "dns_failed"),
        (ssl.SSLError("certificate"), Result.LATER, "tls_failed"),
        (TimeoutError(), Result.LATER, "timeout"),
        (ConnectionRefusedError(), Result.LATER, "refused"),
        (ValueError("two lines"), Result.REFUSED, "bad_address"),
    ],
    ids=str,
)
def test_replies_are_judged_by_their_codes(error: Exception, result: Result, word: str) -> None:
    receipt = judged(error)
    assert (receipt.result, receipt.word) == (result, word)


def test_without_a_server_mails_become_files(settings: Any, tmp_path: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    with Email().session() as session:
        assert session.send(make_message(), TO, key="1.1").result == Result.SENT
    assert "Refund Marit" in "".join(each.read_text() for each in tmp_path.iterdir())
