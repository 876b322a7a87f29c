"""A real server that speaks Slack: chat.postMessage, chat.update, users.lookupByEmail and incoming webhooks.

The shapes are those of https://docs.slack.dev: an answer is 200 with `ok`, and an `error` where that is false.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any
from urllib.parse import parse_qs

from tests.approvals.webhooks.receiver import Got, Handler, Receiver

TOKEN = "xoxb-1-tests-only"
BLOCKS = 13_200  # characters; measured by others: https://github.com/slackapi/bolt-js/issues/2509
TYPES = {"header", "section", "context", "actions"}


class SlackServer(Receiver):
    def __init__(self) -> None:
        super().__init__()
        self.people = {"ann@example.org": "U0000ANN"}
        self.channels = {"C0000OPS", *self.people.values()}
        self.messages: dict[tuple[str, str], dict[str, Any]] = {}  # (channel, ts) -> what is read there
        self.hooked: list[dict[str, Any]] = []
        self.errors: deque[str] = deque()  # the next answers
        self.paused: deque[int] = deque()  # seconds of a 429 each
        self.called: list[str] = []
        self.otherwise = self.serve

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    @property
    def hook(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/secret"

    def serve(self, handler: Handler) -> None:
        got = self.got[-1]
        method = got.path.rpartition("/")[2]
        self.called.append(method)
        if self.paused:
            return answer(handler, 429, b"", retry_after=self.paused.popleft())
        if got.path.startswith("/services/"):
            return self.take_hook(handler, got)
        if got.headers.get("authorization") != f"Bearer {TOKEN}":
            return said(handler, {"ok": False, "error": "invalid_auth"})
        if self.errors:
            return said(handler, {"ok": False, "error": self.errors.popleft()})
        return said(handler, getattr(self, method.replace(".", "_"))(got))

    def take_hook(self, handler: Handler, got: Got) -> None:
        if self.errors:
            return answer(handler, 403, self.errors.popleft().encode())
        body = json.loads(got.body)
        fault = misdrawn(body)
        if fault:
            return answer(handler, 400, b"invalid_blocks")
        self.hooked.append(body)
        return answer(handler, 200, b"ok")

    def users_lookupByEmail(self, got: Got) -> dict[str, Any]:
        assert got.headers["content-type"] == "application/x-www-form-urlencoded"
        [email] = parse_qs(got.body.decode())["email"]
        found = self.people.get(email)
        return {"ok": True, "user": {"id": found, "team_id": "T0"}} if found else no("users_not_found")

    def chat_postMessage(self, got: Got) -> dict[str, Any]:
        body = json.loads(got.body)
        if body["channel"] not in self.channels:
            return no("channel_not_found")
        if fault := misdrawn(body):
            return no("invalid_blocks") | {"response_metadata": {"messages": [fault]}}
        if len(json.dumps(body["blocks"], ensure_ascii=False)) > BLOCKS:
            return no("msg_blocks_too_long")
        # A person's id opens a conversation, which has an id of its own.
        channel = body["channel"].replace("U", "D", 1)
        at = f"17{len(self.messages):08}.000100"
        self.messages[channel, at] = body
        return {"ok": True, "channel": channel, "ts": at, "message": {"text": body["text"], "blocks": body["blocks"]}}

    def chat_update(self, got: Got) -> dict[str, Any]:
        body = json.loads(got.body)
        if (body["channel"], body["ts"]) not in self.messages:
            return no("message_not_found")
        if misdrawn(body):
            return no("invalid_blocks")
        self.messages[body["channel"], body["ts"]] = body
        return {"ok": True, "channel": body["channel"], "ts": body["ts"], "text": body["text"]}


def misdrawn(body: dict[str, Any]) -> str:
    """Slack's own limits of a message with blocks."""
    blocks = body["blocks"]
    if not 0 < len(blocks) <= 50:
        return "blocks"
    for block in blocks:
        if block["type"] not in TYPES:
            return str(block["type"])
        if block["type"] == "section" and not 0 <= len(block.get("fields", [])) <= 10:
            return "fields"
    for found in texts(body):
        if not 0 < len(found["text"]) <= (150 if found is blocks[0].get("text") else 3000):
            return str(found["text"])
    return ""


def texts(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, list):
        return [each for part in found for each in texts(part)]
    if not isinstance(found, dict):
        return []
    if found.get("type") in ("plain_text", "mrkdwn"):
        return [found]
    return [each for part in found.values() for each in texts(part)]


def no(error: str) -> dict[str, Any]:
    return {"ok": False, "error": error}


def said(handler: Handler, told: dict[str, Any]) -> None:
    answer(handler, 200, json.dumps(told).encode())


def answer(handler: Handler, code: int, body: bytes, *, retry_after: int | None = None) -> None:
    handler.send_response(code)
    if retry_after is not None:
        handler.send_header("Retry-After", str(retry_after))
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
