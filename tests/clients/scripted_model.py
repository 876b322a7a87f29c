"""A model in the place of OpenAI's and Google's: it gives what the test has in store, and remembers the questions.

It speaks the Responses API, and Gemini's generateContent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.harness.waiting import PATIENCE, until

Call = tuple[str, dict[str, Any] | str]


@dataclass
class ScriptedModel:
    """Its turns, each a text or a list of calls; `hang` as a turn never ends. A repeated question gets its own turn."""

    url: str = ""
    turns: list[str | list[Call]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    same_id: bool = False  # whether all calls of a turn have one id
    ids_again: bool = False  # whether each turn begins with the same ids

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        number = len(self.asked)
        turn = self.turns.pop(0) if self.turns else "The script is over."
        if turn == "hang":
            self.left.wait(PATIENCE)
        output = [_message(turn, number)] if isinstance(turn, str) else [
            _call(each, 0 if self.ids_again else number, 0 if self.same_id else at) for at, each in enumerate(turn)
        ]  # fmt: skip
        return {
            "id": f"resp_{number}", "object": "response", "created_at": 1, "model": "scripted", "status": "completed",
            "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                      "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}},
        }  # fmt: skip

    def generated(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        turn = self.turns.pop(0) if self.turns else "The script is over."
        calls = [] if isinstance(turn, str) else [{"functionCall": {"name": name, "args": args}} for name, args in turn]
        parts = [{"text": turn}] if isinstance(turn, str) else calls
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}

    @property
    def env(self) -> dict[str, str]:
        google = {"GOOGLE_GEMINI_BASE_URL": self.url.removesuffix("/v1"), "GOOGLE_API_KEY": "none"}
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1", **google}

    def told(self, number: int = -1) -> str:
        """What the model was told with its newest question: results of calls, and what came after them."""
        items = self.asked[number]["input"]
        found = [each for each in items if isinstance(each, dict) and each.get("type") == "function_call_output"]
        return json.dumps(found, ensure_ascii=False)

    def everything(self, number: int = -1) -> str:
        return json.dumps(self.asked[number], ensure_ascii=False)

    def was_asked(self, times: int) -> None:
        until(lambda: len(self.asked) >= times, what=f"the model is asked {times} times")


def _call(call: Call, number: int, at: int) -> dict[str, Any]:
    name, given = call
    arguments = given if isinstance(given, str) else json.dumps(given)
    ids = {"id": f"fc_{number}_{at}", "call_id": f"call_{number}_{at}"}
    if name == "shell_call":
        return {"type": name, **ids, "action": given, "status": "completed"}
    if name.startswith("bank."):
        return {"type": "mcp_approval_request", "id": ids["id"], "name": name[5:], "arguments": arguments,
                "server_label": "bank"}  # fmt: skip
    return {"type": "function_call", **ids, "name": name, "arguments": arguments, "status": "completed"}


def _message(text: str, number: int) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}


@contextmanager
def scripted(*turns: str | list[Call]) -> Iterator[ScriptedModel]:
    """Serve a model with these turns."""
    model = ScriptedModel(turns=list(turns))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = model.generated(body) if "generateContent" in self.path else model.answer(body)
            streams = bool(body.get("stream"))
            event = {"type": "response.completed", "sequence_number": 0, "response": said}
            told = (f"data: {json.dumps(event)}\n\n" if streams else json.dumps(said)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.left.set()
        server.shutdown()
        server.server_close()
        thread.join()
