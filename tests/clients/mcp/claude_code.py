"""Claude Code itself, from npm, and the tools that it sends to a model: to one that listens here and says "Done."."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SAID: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_sequence": None,
    "stop_reason": "end_turn", "content": [{"type": "text", "text": "Done."}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
STREAM: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**SAID, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
QUIET = {
    "ANTHROPIC_API_KEY": "sk-ant-none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    "ENABLE_TOOL_SEARCH": "false",  # else it sends some tools only once the model has looked for them
}  # fmt: skip


def install(version: str, folder: Path) -> Path:
    """Install a version for this machine, and return its binary."""
    package = f"@anthropic-ai/claude-code@{version}"
    words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix"]
    subprocess.run([*words, str(folder), package], check=True)
    return max(folder.glob("node_modules/@anthropic-ai/claude-code-*/claude"), key=lambda each: each.stat().st_size)


def tools_sent(binary: Path, home: Path) -> set[str]:
    """Return the names of the tools that it sends to its model when it is asked one thing."""
    found: set[str] = set()

    class Model(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(b"", "application/json")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            found.update(each["name"] for each in asked.get("tools", []))
            events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in STREAM)
            if asked.get("stream"):
                self.answer(events.encode(), "text/event-stream")
            else:
                self.answer(json.dumps(SAID).encode(), "application/json")

        def answer(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}"}
    try:
        subprocess.run([str(binary), "-p", "Hello."], env=env | QUIET, cwd=home, check=True, capture_output=True)
    finally:
        model.shutdown()
        model.server_close()
    return found
