"""A real SMTP server that takes every mail: `python -m benchmarks.outside.mail_sink PORT FILE`.

Writes each mail's Message-ID to FILE, a line each, so that mails that came twice are seen.
"""

from __future__ import annotations

import asyncio
import email
import signal
import sys
from functools import partial
from pathlib import Path
from typing import IO

from aiosmtpd.smtp import SMTP, Envelope, Session


class Sink:
    """Takes every mail."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Note the mail, and take it."""
        content = envelope.content
        assert isinstance(content, bytes)
        head = email.message_from_bytes(content.partition(b"\r\n\r\n")[0])
        self.file.write(f"{head['Message-ID']}\n")
        return "250 OK"


async def main(port: int, file: Path) -> None:
    """Listen until the process is ended."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    with file.open("w", buffering=1) as taken:
        server = await loop.create_server(partial(SMTP, Sink(taken)), "127.0.0.1", port)
        print("ready", flush=True)
        await ended.wait()
        server.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
