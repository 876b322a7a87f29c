"""`python -m config.web`: runs the web process, with all of uvicorn's options.

At SIGTERM it takes no more connections, closes the sockets (1012: restart), ends the requests that only wait, which
clients send again to the next process, gives the others GRACE seconds, and exits.
"""

from __future__ import annotations

import argparse
import os
import sys

import uvicorn

GRACE = 10  # seconds that requests under way have to end when the process is asked to


def main() -> int:
    """Serve until asked to stop; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m config.web", description="Serves pages, API and live socket.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=os.environ.get("PORT") or 8000, help="the port (PORT, or 8000)")
    options = parser.parse_args()
    uvicorn.run(
        "config.asgi:application",
        host=options.host,
        port=options.port,
        http="config.web.wire:BoundedProtocol",
        access_log=False,
        timeout_graceful_shutdown=GRACE,
        # Unset means no proxy is trusted; uvicorn would believe any client on this machine.
        forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS", ""),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
