"""A server that speaks Chat Completions, streamed: it says what the test scripted for where the conversation is.

What it says depends on what it is asked, as a model's does: `script` holds a reply for each turn, found by how many
turns of the assistant the request already holds, so that a turn that is asked for again gets the same answer. `faults`
go first, one a request.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.harness.waiting import PATIENCE

KEY = "sk-test-of-the-assistant"
Messages = list[dict[str, Any]]


@dataclass
class Reply:
    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()  # (tool, arguments as JSON values, or as a text that is sent as it is)
    finish: str = ""
    refusal: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    ids: Sequence[str] = ()
    cut: bool = False  # the line is cut before the end
    usage: tuple[int, int] | None = (100, 10)
    pieces: int = 4  # in which the text comes
    junk: str = ""  # what stands in the place of its last chunk
    held: threading.Event | None = None  # waited for before the last piece
    slow: float = 0.0  # seconds before each piece, as a model takes them


Script = Reply | Callable[[Messages], Reply]


class Endpoint:
    """The server, its script, and what it was asked."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.server = server
        self.script: list[Script] = []
        self.faults: deque[Reply] = deque()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def reply_to(self, messages: Messages) -> Reply:
        if self.faults:
            return self.faults.popleft()
        turn = sum(each["role"] == "assistant" for each in messages)
        reply = self.script[min(turn, len(self.script) - 1)]
        return reply if isinstance(reply, Reply) else reply(messages)

    @property
    def conversation(self) -> Messages:
        messages: Messages = self.requests[-1]["messages"]
        return messages

    def told(self) -> list[str]:
        """What the tools said in the newest request, oldest first."""
        return [each["content"] for each in self.conversation if each["role"] == "tool"]


@contextmanager
def running() -> Iterator[Endpoint]:
    """A server on a free port, ended at the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint = Endpoint(server)
    server.endpoint = endpoint  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_POST(self) -> None:
        endpoint: Endpoint = self.server.endpoint  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint.requests.append(body)
        endpoint.keys.append(self.headers.get("Authorization", ""))
        known = self.path == "/v1/chat/completions"
        reply = endpoint.reply_to(body["messages"]) if known else Reply(status=404)
        if reply.status != 200:
            error = {"message": reply.text or "no", "type": "test", "code": reply.code or None}
            text = json.dumps({"error": error}).encode()
            self.head(
                reply.status, {"Content-Type": "application/json", "Content-Length": str(len(text)), **reply.headers}
            )
            self.wfile.write(text)
            return
        self.head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for event in events(reply):
            if event is None:
                self.wfile.flush()
                assert reply.held is not None
                reply.held.wait(PATIENCE)
                continue
            time.sleep(reply.slow)
            data = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            if reply.slow:
                self.wfile.flush()
        self.wfile.flush()
        if reply.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(b"0\r\n\r\n")

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def events(reply: Reply) -> Iterator[Any]:
    """The reply as chunks; None where it is held."""
    yield chunk({"role": "assistant", "content": ""})
    size = max(1, -(-len(reply.text) // reply.pieces))
    parts = [reply.text[at : at + size] for at in range(0, len(reply.text), size)]
    for number, part in enumerate(parts):
        if reply.held is not None and number == len(parts) - 1:
            yield None
        yield chunk({"content": part})
        if reply.cut and number >= len(parts) // 2:
            return
    if reply.refusal:
        yield chunk({"refusal": reply.refusal})
    for number, (name, arguments) in enumerate(reply.calls):
        id = reply.ids[number] if reply.ids else f"call_{number}"
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        half = len(text) // 2
        pieces: list[dict[str, Any]] = [{"function": {"arguments": part}} for part in (text[:half], text[half:])]
        first = {"id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        for call in (first, *pieces):
            yield chunk({"tool_calls": [{"index": number, **call}]})
    if reply.cut:
        return
    if reply.junk:
        yield reply.junk
        return
    yield chunk({}, finish=reply.finish or ("tool_calls" if reply.calls else "stop"))
    if reply.usage:
        read, wrote = reply.usage
        yield chunk(None, usage={"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote})
    yield "[DONE]"


def chunk(delta: Any, *, finish: str | None = None, usage: Any = None) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1, "model": "test"}
    return head | {"choices": choices, "usage": usage}
