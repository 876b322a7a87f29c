"""Collects static files only when one of them changed, so that a second start is quick."""

from __future__ import annotations

import hashlib
from pathlib import Path

import django

from config.local.stack import ROOT, Stack


def collect_static(stack: Stack) -> None:
    """Collect static files into the home folder, unless they are unchanged."""
    stamp = stack.home.path / "static-stamp"
    now = fingerprint(ROOT / "static")
    if stamp.exists() and stamp.read_text() == now:
        return
    stamp.unlink(missing_ok=True)
    stack.complete("static", "Collecting static files", "manage.py", "collectstatic", "--noinput", "--clear", "-v0")
    stamp.write_text(now)


def fingerprint(folder: Path) -> str:
    """Hash the names and contents under `folder`, and Django's version, whose admin brings files too."""
    hashed = hashlib.sha256(django.__version__.encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            hashed.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()
