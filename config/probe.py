"""`python -m config.probe web|worker|sweeper`: the health checks of the services; exit code 0 means healthy.

`worker` asks whether workers take messages at all (the canary that beat sends), so it speaks for beat too.
"""

from __future__ import annotations

import os
import sys
import urllib.request
from types import ModuleType


def main() -> int:
    """Probe one service; return the exit code."""
    probes = {"web": web, "worker": worker, "sweeper": sweeper}
    if len(sys.argv) != 2 or sys.argv[1] not in probes:
        sys.stderr.write(f"Usage: python -m config.probe {'|'.join(probes)}\n")
        return 2
    problem = probes[sys.argv[1]]()
    if problem:
        sys.stderr.write(f"{sys.argv[1]}: {problem}\n")
    return 1 if problem else 0


def web() -> str:
    """Return what is wrong with the web process of this container, or ""."""
    try:
        request = urllib.request.Request("http://127.0.0.1:8000/healthz", headers={"Host": host()})
        with urllib.request.urlopen(request, timeout=4):  # noqa: S310 - a fixed address
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
