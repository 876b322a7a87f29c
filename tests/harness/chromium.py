"""A Chromium for the tests: the machine's, Debian's package where this is root, or Playwright's own.

`python -m tests.harness.chromium` makes sure of one before the tests start, and of the other programs that tests call.
Where something is missing the run fails and says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The first draws the same pages for less than half the processor's time: it has no windows to draw them in.
WHOLE = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NAMES = ("chromium-headless-shell", *WHOLE)
FLAGS = ["--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run", "--no-default-browser-check", "--force-color-profile=srgb"]
MISSING = (
    "The tests need Chromium: run `apt-get install chromium`, or `python -m playwright install --with-deps chromium`."
)
# docs/api.md's example is run as it is; services start behind a pooler; the inbox runs in a real terminal.
TOOLS = ("curl", "jq", "pgbouncer", "tmux")


class Shared:
    """The one browser of a process, from the first test that asks for it until it is closed."""

    def __init__(self) -> None:
        self.running: Browser | None = None
        self.closing = ExitStack()

    def open(self) -> Browser:
        from playwright.sync_api import expect, sync_playwright

        if self.running is None:
            path = find()
            if not path:
                raise AssertionError(MISSING)
            expect.set_options(timeout=PATIENCE * 1000)
            playwright = self.closing.enter_context(sync_playwright())
            self.running = playwright.chromium.launch(executable_path=path, args=flags())
            self.closing.callback(self.running.close)
        return self.running

    def close(self) -> None:
        """Close it where it runs, and the event loop that Playwright keeps in this thread."""
        self.running = None
        self.closing.close()


def find() -> str:
    """Return the path of a Chromium, or ""."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return playwrights_own()


def whole() -> str:
    """Return the path of a Chromium that shows notifications, or "": the one for pages alone does not."""
    return next((path for path in map(shutil.which, WHOLE) if path), "") or playwrights_own()


def playwrights_own() -> str:
    """Return the path of the browser that `playwright install chromium` keeps for this version, or ""."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else ""


def flags() -> list[str]:
    """Return the browser's flags; its sandbox cannot be had as root."""
    return [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else FLAGS


def install() -> None:
    if not any(package(name) and find() for name in NAMES[:2]):
        run(sys.executable, "-m", "playwright", "install", "chromium")


def package(*names: str) -> bool:
    """Install Debian's packages; False where that cannot be done here."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    install = f"apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy {' '.join(names)}"
    return run("sh", "-c", install)


def run(*command: str) -> bool:
    sys.stderr.write(f"Installing what the tests need: {' '.join(command)}\n")
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


def lacking() -> list[str]:
    return [name for name in TOOLS if not tool(name)]


def tool(name: str) -> str:
    """Return the path of a program, or ""; Debian keeps a server's where ordinary accounts do not look."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") or ""


def main() -> int:
    if not find():
        install()
    if not whole():
        package("chromium")
    if not find() or not whole():
        sys.stderr.write(MISSING + "\n")
        return 1
    if lacking():
        package(*lacking())
    if lacking():
        sys.stderr.write(f"The tests need {' and '.join(lacking())}: run `apt-get install {' '.join(lacking())}`.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
