"""`python -IS config/health/probe.py web|worker|beat|sweeper|sandbox`: a service's health check; exit code 0: healthy.

It runs every few seconds, so it is a script by itself with few imports: with Django, or with its own package, one run
takes a third of a second of a processor. The web process and the sandbox are asked by HTTP (an address may follow), the
others by the age of the file that they touch (`agents/serving/health_file.py`).
"""

import os
import socket
import sys
import time

ADDRESSES = {"web": "127.0.0.1:8000/healthz", "sandbox": "127.0.0.1:8001/ledger"}
BEATING = ("worker", "beat", "sweeper")
SILENT = 30.0  # seconds
PATIENCE = 4.0  # seconds


def main() -> int:
    """Probe one service; return the exit code."""
    name, *address = sys.argv[1:] or [""]
    if name not in (*ADDRESSES, *BEATING) or len(address) > (name in ADDRESSES):
        sys.stderr.write("Usage: python -IS config/health/probe.py web|worker|beat|sweeper|sandbox\n")
        return 2
    problem = answers(*address or [ADDRESSES[name]]) if name in ADDRESSES else beats()
    if problem:
        sys.stderr.write(f"{name}: {problem}\n")
    return 1 if problem else 0


def answers(address: str) -> str:
    """Return the fault of the server at this address, or ""."""
    authority, _, path = address.partition("/")
    host, _, port = authority.partition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(f"GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            status = connection.recv(64).split(b" ")[1:2]
    except OSError as error:
        return str(error)
    return "" if status == [b"200"] else f"answered {status}"


def beats() -> str:
    """Return the fault of the process that touches HOLDPOINT_HEARTBEAT, or ""."""
    path = os.environ.get("HOLDPOINT_HEARTBEAT", "")
    if not path:
        return "HOLDPOINT_HEARTBEAT names no file"
    try:
        age = time.time() - os.stat(path).st_mtime
    except OSError as error:
        return str(error)
    return "" if age < SILENT else f"silent for {age:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
