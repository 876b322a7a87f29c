"""A reviewer's open page: a socket that drops at random, and comes again with the cursor at which it was."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

LASTS = (0.3, 6.0)  # seconds until it drops
PAUSE = 0.3  # seconds until it comes again
PATIENCE = 30.0  # seconds until the last answer
Frame = dict[str, Any]


class Page:
    """What one page hears: every frame with a cursor, in the order in which they came."""

    def __init__(self, base: str, session: str, seed: str) -> None:
        self.address, self.origin, self.session = base.replace("http", "ws") + "/ws/", base, session
        self.rng = random.Random(f"{seed} page")
        self.cursor = ""
        self.heard: list[Frame] = []
        self.drops = 0

    def work(self, stop: threading.Event) -> None:
        """Listen until told to stop, and once more then, until all is heard that had happened by then."""
        while not stop.is_set():
            with suppress(OSError, WebSocketException):
                self._listen(time.monotonic() + self.rng.uniform(*LASTS))
            self.drops += 1
            stop.wait(self.rng.uniform(0, 2) * PAUSE)
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self._listen(until, last=True)
            except (OSError, WebSocketException):
                if time.monotonic() > until:
                    raise

    def _listen(self, until: float, *, last: bool = False) -> None:
        headers = {"Cookie": f"sessionid={self.session}"}
        address = f"{self.address}?after={self.cursor}"
        with connect(address, origin=Origin(self.origin), additional_headers=headers, open_timeout=10) as opened:
            if last:
                opened.send(json.dumps({"ping": True}))
            while (left := until - time.monotonic()) > 0:
                try:
                    frame = json.loads(opened.recv(left))
                except TimeoutError:
                    break
                if frame["kind"] != "heartbeat" and frame.get("cursor"):
                    self.heard.append({"cursor": frame["cursor"], "kind": frame["kind"]})
                self.cursor = frame.get("cursor") or self.cursor
                if last and frame["kind"] == "heartbeat":
                    return
            _cut(opened)


def _cut(opened: ClientConnection) -> None:
    with suppress(OSError):
        opened.socket.shutdown(socket.SHUT_RDWR)
