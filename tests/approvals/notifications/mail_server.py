"""A real SMTP server on loopback: keeps the mails it takes, counts connections, refuses as it is told."""

from __future__ import annotations

import asyncio
import email
import socket
import threading
from collections import deque
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class Refusing:
    """Takes a mail, unless an answer was told for it."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.connections = 0
        self.held: threading.Event | None = None  # until it is set, only the first mail is taken
        self.rcpt: deque[str] = deque()  # answers to RCPT TO, each once
        self.data: deque[str] = deque()  # answers to DATA, each once; "cut" hangs up after the mail was taken

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.connections += 1
        session.host_name = hostname
        return responses

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:
        if self.rcpt:
            return self.rcpt.popleft()
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.held and self.mails:
            await asyncio.to_thread(self.held.wait)
        answer = self.data.popleft() if self.data else "250 OK"
        if answer.startswith("250") or answer == "cut":
            content = envelope.content
            assert isinstance(content, bytes)
            found = email.message_from_bytes(content, policy=default)
            assert isinstance(found, EmailMessage)
            self.mails.append(found)
            self.recipients += envelope.rcpt_tos
        if answer == "cut":
            assert server.transport is not None
            server.transport.close()
        return answer


class MailServer(Refusing):
    """Listens on a loopback port until it is stopped."""

    def __init__(self, port: int = 0) -> None:
        super().__init__()
        with socket.create_server(("127.0.0.1", port)) as free:  # aiosmtpd does not tell which port it took
            self.port: int = free.getsockname()[1]
        self.controller: Controller | None = Controller(self, hostname="127.0.0.1", port=self.port, ready_timeout=10)
        self.controller.start()

    def stop(self) -> None:
        if self.controller is not None:
            self.controller.stop()
            self.controller = None


def text_of(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def html_of(mail: EmailMessage) -> str:
    part = mail.get_body(("html",))
    assert part is not None
    return str(part.get_content())
