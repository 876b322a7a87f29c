"""Web servers that tests share: starting one takes longer than most tests."""

from __future__ import annotations

import os

import pytest

from tests.harness.services import Service, free_port, wait_for_http, web_command

MOST = 3  # at once: tests that want the same variables mostly lie side by side


class Shared:
    """One web server for each set of variables that a test asks for; those of long ago are stopped."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self.folders = folders
        self.running: dict[frozenset[tuple[str, str]], tuple[Service, str]] = {}

    def base(self, env: dict[str, str] | None = None) -> str:
        """Return the base URL of the one that has these variables beside those of this process, started if need be."""
        given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        wanted = frozenset((given | (env or {})).items())
        service = self.running.pop(wanted) if wanted in self.running else self._started(env or {})
        self.running[wanted] = service  # the newest is the last
        return service[1]

    def close(self) -> None:
        while self.running:
            self._stop_the_oldest()

    def _started(self, env: dict[str, str]) -> tuple[Service, str]:
        if len(self.running) == MOST:
            self._stop_the_oldest()
        port = free_port()
        base = f"http://127.0.0.1:{port}"
        service = Service("web", web_command(port), self.folders.mktemp("web"), {"HOLDPOINT_ORIGINS": base} | env)
        try:
            wait_for_http(service, f"{base}/healthz")
        except BaseException:
            service.kill()
            raise
        return service, base

    def _stop_the_oldest(self) -> None:
        service, _ = self.running.pop(next(iter(self.running)))
        service.kill()
