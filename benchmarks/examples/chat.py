"""A model's endpoint that answers at once, each turn in one write.

    python -m benchmarks.examples.chat CALL TURNS

`CALL` is "list" or "write": the tool that each turn calls, until `TURNS` are over. It prints its address, and answers
GET /spent with the microseconds that each request since the last GET took, from its first line to its last.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = "I look at what is there, and then I go on with the task as it was asked for. " * 4
PIECES = 40
CALLS = {
    "list": ("list_files", {"path": "."}),
    "write": ("write_file", {"path": "notes.md", "content": "a line\n" * 40}),
}
SPENT: list[float] = []


class Endpoint(BaseHTTPRequestHandler):
    """A handler of one kept-alive connection."""

    protocol_version = "HTTP/1.1"
    call, turns = "list", 10

    def do_POST(self) -> None:
        began = time.perf_counter()
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = sum(each["role"] == "assistant" for each in asked["messages"])
        self._say("text/event-stream", answer(turn, self.call if turn < self.turns else ""))
        SPENT.append((time.perf_counter() - began) * 1e6)

    def do_GET(self) -> None:
        self._say("application/json", json.dumps(SPENT).encode())
        SPENT.clear()

    def _say(self, kind: str, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def answer(turn: int, call: str) -> bytes:
    """Return the turn's chunks as Server-Sent Events."""
    size = -(-len(WORDS) // PIECES)
    said: list[dict[str, Any]] = [{"content": WORDS[at : at + size]} for at in range(0, len(WORDS), size)]
    if call:
        name, arguments = CALLS[call]
        function = {"name": name, "arguments": json.dumps(arguments)}
        said.append({"tool_calls": [{"index": 0, "id": f"call_{turn}", "type": "function", "function": function}]})
    chunks = [chunk(delta) for delta in said] + [chunk({}, "tool_calls" if call else "stop")]
    chunks.append(
        {**chunk({}), "choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 90, "total_tokens": 990}}
    )
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in chunks) + b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": choices}


def main(call: str, turns: str) -> None:
    """Serve until killed."""
    Endpoint.call, Endpoint.turns = call, int(turns)
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
