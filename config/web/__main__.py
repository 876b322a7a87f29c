"""`python -m config.web`: runs the web process.

At SIGTERM it takes no more connections, closes the sockets (1012: restart), ends the requests that only wait, which
clients send again to the next process, gives the others GRACE seconds, and exits.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys

import uvicorn
from uvicorn.config import STARTUP_FAILURE

GRACE = 10  # seconds that requests under way have to end when the process is asked to
FIRST_REQUEST = 0.1  # seconds in which a connection that was just taken brings its request


class Server(uvicorn.Server):
    """uvicorn's server, which tells when it answers, and ends without cutting a connection that has just begun."""

    def __init__(self, config: uvicorn.Config, ready: int | None) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and write a byte to whoever waits for that."""
        await super().startup(sockets)
        if self.ready is not None:
            os.write(self.ready, b"1")
            os.close(self.ready)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, then end those that are there: another process may take them by now."""
        for server in self.servers:
            server.close()
        await asyncio.sleep(FIRST_REQUEST)
        await super().shutdown(sockets)


def main() -> int:
    """Serve until asked to stop; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m config.web", description="Serves pages, API and live socket.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=os.environ.get("PORT") or 8000, help="the port (PORT, or 8000)")
    parser.add_argument("--fd", type=int, help="a socket that listens, in place of an address and a port")
    parser.add_argument("--ready-fd", type=int, help="a pipe that gets a byte once requests are answered")
    options = parser.parse_args()
    config = uvicorn.Config(
        "config.asgi:application",
        host=options.host,
        port=options.port,
        http="config.web.wire:BoundedProtocol",
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        # Unset means no proxy is trusted; uvicorn would believe any client on this machine.
        forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS", ""),
    )
    server = Server(config, options.ready_fd)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(None if options.fd is None else [socket.socket(fileno=options.fd)])
    return 0 if server.started else STARTUP_FAILURE


if __name__ == "__main__":
    sys.exit(main())
