"""`python -m config.probe web|worker|sweeper|sandbox`: the health checks of the services; exit code 0 means healthy.

`web` and `sandbox` take another address than the one inside their containers.

`worker` asks whether workers take messages at all (the canary that beat sends), so it speaks for beat too.
"""

from __future__ import annotations

import os
import sys
import urllib.request
from types import ModuleType

ADDRESSES = {"web": "http://127.0.0.1:8000/healthz", "sandbox": "http://127.0.0.1:8001/ledger"}


def main() -> int:
    """Probe one service; return the exit code."""
    name, *address = sys.argv[1:] or [""]
    if name not in ("web", "worker", "sweeper", "sandbox") or len(address) > (name in ADDRESSES):
        sys.stderr.write("Usage: python -m config.probe web|worker|sweeper|sandbox\n")
        return 2
    if name in ADDRESSES:
        problem = answers(*address or [ADDRESSES[name]])
    else:
        problem = worker() if name == "worker" else sweeper()
    if problem:
        sys.stderr.write(f"{name}: {problem}\n")
    return 1 if problem else 0


def answers(address: str) -> str:
    """Return what is wrong with the server at this address, or ""."""
    try:
        request = urllib.request.Request(address, headers={"Host": host()})  # noqa: S310 - an address of our own
        with urllib.request.urlopen(request, timeout=4):  # noqa: S310
            return ""
    except OSError as error:
        return str(error)


def host() -> str:
    """Return a host that the web process answers for."""
    first = os.environ.get("HOLDPOINT_ALLOWED_HOSTS", "").split(",")[0].strip().lstrip(".")
    return first if first not in ("", "*") else "localhost"


def worker() -> str:
    """Return what is wrong with the workers, or ""."""
    return str(health().worker())


def sweeper() -> str:
    """Return what is wrong with the sweeper, or ""."""
    return str(health().sweeper())


def health() -> ModuleType:
    """Return the checks of /readyz, with Django set up for them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from config import health

    return health


if __name__ == "__main__":
    sys.exit(main())
