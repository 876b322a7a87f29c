"""E-mail: text and HTML of one message, sent over connections that are kept.

All mails about one gate make one thread: each names the one before by In-Reply-To, and a root that is the same for all
by References (RFC 5322, section 3.6.4), under one subject, which some clients thread by. A mail loads nothing from
anywhere, and counts nothing: that a person opened a gate is known from their signed-in visit alone.
"""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from email.utils import formataddr
from functools import lru_cache
from socket import gaierror
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMultiAlternatives, get_connection
from django.template.loader import render_to_string

from approvals.models import Profile
from approvals.presentation.text.untrusted import person

from .building import NoticeMessage, write_moment
from .channel import UNREACHED, NoticeAddress, NoticeChannel, Receipt, Result

NAME = "email"
KEPT = 100  # mails over one connection: servers count them, and close
DRAWN = 256  # messages of which the bodies are kept
SUBJECT = 150  # characters
OURS = {  # beside those of each mail; RFC 3834, and what Exchange reads
    "Auto-Submitted": "auto-generated",
    "X-Auto-Response-Suppress": "All",
}


class Email(NoticeChannel):
    """The channel. The address is the account's own. Without a server mails become files, see EMAIL_URL."""

    name = NAME
    label = "e-mail"
    at_once = 25

    @property
    def personal(self) -> bool:
        return True

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List these people's addresses, without those of accounts that are switched off."""
        if not people:
            return []
        zones = dict(Profile.objects.filter(pk__in=list(people)).values_list("pk", "zone"))
        return [
            NoticeAddress(
                channel=NAME, value=each.email, label=each.email, person=each.pk, name=person(each),
                zone=zones.get(each.pk) or "UTC",
            )
            for each in User.objects.filter(pk__in=list(people), is_active=True).exclude(email="")
        ]  # fmt: skip

    @contextmanager
    def session(self) -> Iterator[EmailSession]:
        """Open a session; it connects at its first mail."""
        opened = EmailSession()
        try:
            yield opened
        finally:
            opened.close()


class EmailSession:
    """One connection to the server, made anew where it was lost or has carried many mails."""

    def __init__(self) -> None:
        self.connection = get_connection(timeout=settings.HOLDPOINT_NOTICES_TIMEOUT)
        self.sent = 0

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Send one mail. Where a kept connection turns out to be closed, once more over a new one."""
        if self.sent >= KEPT:
            self.close()
        kept = self.sent > 0
        try:
            mail = compose(message, to, key=key, earlier=earlier, bodies=bodies(message, to.zone))
        except ValueError as error:
            return judged(error)
        receipt = self._sent(mail)
        if receipt.word == "cut" and kept:
            receipt = self._sent(mail)
        return receipt

    def close(self) -> None:
        """Close the connection, if there is one."""
        self.sent = 0
        with suppress(OSError, smtplib.SMTPException):
            self.connection.close()

    def _sent(self, mail: EmailMultiAlternatives) -> Receipt:
        try:
            self.connection.open()  # one that the next call opens, it closes again
            self.connection.send_messages([mail])
        except (smtplib.SMTPException, OSError, ValueError) as error:
            receipt = judged(error)
            if receipt.word in UNREACHED:
                self.close()
            return receipt
        self.sent += 1
        return Receipt(Result.SENT, reference=mail.extra_headers["Message-ID"])


def judged(error: Exception) -> Receipt:
    """Return the receipt of a mail that was not sent. What is wrong with the server or its settings may be put right.

    Raises nothing. A reply's code decides: 4xx may be taken later (RFC 5321, section 4.2.1).
    """
    match error:
        case smtplib.SMTPRecipientsRefused(recipients=refused):
            code = next(iter(refused.values()))[0]
            return Receipt(Result.LATER if code < 500 else Result.REFUSED, f"smtp_{code}")
        case smtplib.SMTPAuthenticationError() | smtplib.SMTPNotSupportedError():
            return Receipt(Result.LATER, "sign_in")
        case (
            smtplib.SMTPSenderRefused(smtp_code=code)
            | smtplib.SMTPConnectError(smtp_code=code)
            | smtplib.SMTPHeloError(smtp_code=code)
        ):
            return Receipt(Result.LATER, f"smtp_{code}")
        case smtplib.SMTPResponseException(smtp_code=code):
            return Receipt(Result.LATER if code < 500 else Result.REFUSED, f"smtp_{code}")
        case gaierror():
            return Receipt(Result.LATER, "dns_failed")
        case ssl.SSLError():
            return Receipt(Result.LATER, "tls_failed")
        case TimeoutError():
            return Receipt(Result.LATER, "timeout")
        case ConnectionRefusedError():
            return Receipt(Result.LATER, "refused")
        case ValueError():  # an address that is none, or a header of two lines
            return Receipt(Result.REFUSED, "bad_address")
        case _:
            return Receipt(Result.LATER, "cut")


def compose(
    message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "", bodies: tuple[str, str]
) -> EmailMultiAlternatives:
    """Build the mail; its Message-ID is made of `key`, so that a client shows a second copy once."""
    host = urlsplit(settings.HOLDPOINT_ORIGINS[0]).hostname or "localhost"
    headers = {**OURS, "Message-ID": f"<{key}@{host}>"}
    if message.settings_link:
        headers["List-Unsubscribe"] = f"<{message.settings_link}>"
    if message.thread:
        root = f"<{message.thread}@{host}>"
        headers["In-Reply-To"] = earlier.rpartition(" ")[2] or root
        headers["References"] = f"{root} {earlier}".strip()
    text, html = bodies
    subject = " ".join(subject_of(message, follows=bool(earlier)).split())
    mail = EmailMultiAlternatives(subject, text, to=[mailbox(to)], headers=headers)
    mail.attach_alternative(html, "text/html")
    return mail


def mailbox(to: NoticeAddress) -> str:
    """Return the address with the person's name. Raises ValueError for what is none."""
    local, _, domain = to.value.rpartition("@")
    if not local or not domain or not to.value.isprintable():
        raise ValueError("not an address")
    name = to.name if to.name.isprintable() else ""
    return formataddr((name, f"{local}@{domain.encode('idna').decode()}"))


def subject_of(message: NoticeMessage, *, follows: bool) -> str:
    """Return the subject: the same for all mails of a thread, but for the "Re:" of those that follow."""
    if not message.thread:
        return message.subject[:SUBJECT]
    about = message.title or message.subject
    line = f"{about[:SUBJECT]} · {message.thread.replace('-', ' ')}"
    return f"Re: {line}" if follows else line


@lru_cache(DRAWN)
def bodies(message: NoticeMessage, zone: str) -> tuple[str, str]:
    """Render a message as (text, HTML), its times in the person's zone; once, as many people get the same."""
    context = {
        "message": message, "deadline": write_moment(message.deadline, zone) if message.deadline else "",
        "items": [(each, write_moment(each.deadline, zone) if each.deadline else "") for each in message.items],
    }  # fmt: skip
    return (
        render_to_string("notifications/email/message.txt", context),
        render_to_string("notifications/email/message.html", context),
    )
