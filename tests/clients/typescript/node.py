"""Installs, builds and checks the client for TypeScript: `python -m tests.clients.typescript.node [check|types]`.

Without a word it makes sure of Node, of the pinned packages and of the built package before the tests start, and says
what to install where Node is missing. `check` type-checks the package and its examples; `types` writes the types anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent.parent
CLIENT = ROOT / "clients" / "typescript"
MODULES, BUILT, TYPES = CLIENT / "node_modules", CLIENT / "dist", CLIENT / "src" / "openapi.ts"
OLDEST = 20  # of Node for its tests; the package itself runs from 18.17 on
MISSING = f"The tests of clients/typescript need Node {OLDEST} or newer with npm, and %s: install it."
STALE = "clients/typescript/src/openapi.ts is out of date: run `make types`.\n"


class NodeMissing(Exception):
    """Node is missing or too old."""


def build() -> Path:
    """Install and build what is out of date; return the built package's entry. Raises NodeMissing."""
    _have_node()
    with (CLIENT / "package.json").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of one session build once
        installed = MODULES / ".package-lock.json"
        if _older(installed, [CLIENT / "package-lock.json", CLIENT / "package.json"]):
            _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
            installed.touch()
        if _older(BUILT / "index.js", [CLIENT / "tsconfig.json", *(CLIENT / "src").iterdir()]):
            _run("npm", "run", "--silent", "build")
            (BUILT / "index.js").touch()  # the compiler leaves alone what has not changed
    return BUILT / "index.js"


def generated() -> str:
    """Return the types that the server's description gives now."""
    import django
    from django.apps import apps

    if not apps.ready:  # in a test it is, and what the test starts would inherit the variable
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings_of_make_check"
        django.setup()
    from agents.api.interface import api

    with tempfile.TemporaryDirectory() as folder:
        description, types = Path(folder) / "openapi.json", Path(folder) / "openapi.ts"
        description.write_text(json.dumps(_without_refusals(api.get_openapi_schema())))
        _run("npm", "run", "--silent", "types", "--", str(description), "--output", str(types))
        return types.read_text()


def _without_refusals(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out what every operation says alike, which was nine tenths of the types: refusals are problem documents."""
    for operations in document["paths"].values():
        for operation in operations.values():
            told = {str(status): each for status, each in operation["responses"].items()}
            operation["responses"] = {status: each for status, each in told.items() if status.startswith("2")}
            operation["parameters"] = [each for each in operation["parameters"] if each["in"] != "header"]
    return document


def check() -> int:
    """Type-check the package and its examples, and compare the types with the server's description."""
    _run("npm", "run", "--silent", "check")
    if generated() == TYPES.read_text():
        return 0
    sys.stderr.write(STALE)
    return 1


def _have_node() -> None:
    node = shutil.which("node")
    if node is None or not shutil.which("npm"):
        raise NodeMissing(MISSING % "there is none here")
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    found = re.match(r"v(\d+)\.", said)
    if found is None or int(found[1]) < OLDEST:
        raise NodeMissing(MISSING % f"this is {said}")


def _older(made: Path, sources: Sequence[Path]) -> bool:
    return not made.exists() or any(each.stat().st_mtime > made.stat().st_mtime for each in sources)


def _run(*command: str) -> None:
    subprocess.run(command, cwd=CLIENT, check=True)


def main(words: Sequence[str]) -> int:
    try:
        build()
        if "check" in words:
            return check()
        if "types" in words:
            TYPES.write_text(generated())
    except NodeMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"`{' '.join(error.cmd)}` failed in clients/typescript.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
