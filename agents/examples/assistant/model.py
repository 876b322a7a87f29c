"""Gets one turn of the model: the real `openai` client with any endpoint that speaks Chat Completions, streamed.

Failures of the endpoint that pass by themselves (429, 5xx, a cut connection) raise Retry, with the wait that the
endpoint asks for, during which no worker waits; those that somebody has to fix raise StepFailed with a sentence that
says what to do. A turn that was cut off is dropped and asked for again from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone

from agents import Retry, StepFailed

from .state import Asked, Message

if TYPE_CHECKING:
    from openai import OpenAI

if find_spec("openai") is None:  # which is said at the start, and not in the middle of a run
    raise ModuleNotFoundError("No module named 'openai'", name="openai")

CONNECTING, SILENT = 10.0, 90.0  # seconds that the endpoint may take to be reached, and between two of its words
LONGEST_PAUSE = 900.0  # seconds that an endpoint may ask for
NO_KEY = (
    "No model is set up: set OPENAI_API_KEY (and OPENAI_BASE_URL for another endpoint than OpenAI's, "
    "HOLDPOINT_ASSISTANT_MODEL for another model), and start web and workers again."
)


@dataclass
class Turn:
    """What the model said: words, calls, or both."""

    text: str = ""
    calls: list[Asked] = field(default_factory=list)
    finish: str = ""  # stop, tool_calls, length, content_filter
    refusal: str = ""
    read: int = 0  # tokens, as the endpoint counts them
    wrote: int = 0


def lacking() -> str:
    """Say what has to be set before the model can be asked, or return "" if nothing has."""
    return "" if settings.OPENAI_API_KEY else NO_KEY


def turn(messages: Sequence[Message], tools: list[dict[str, Any]], hear: Callable[[str], None]) -> Turn:
    """Ask for the next turn; `hear` gets the text so far whenever there is more. Raises Retry and StepFailed."""
    if word := lacking():
        raise StepFailed(word)
    body = {  # handed over as it is: the client's own walk over each message costs more than all the rest of a turn
        "messages": [wire(each) for each in messages],
        **({"tools": tools} if tools else {}),
        "stream_options": {"include_usage": True},
    }
    with _meaning():
        completions = _client(settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY).chat.completions
        with completions.with_streaming_response.create(
            model=settings.HOLDPOINT_ASSISTANT_MODEL, messages=[], stream=True, extra_body=body
        ) as answer:
            try:
                return _read(_events(answer.iter_lines()), hear)
            except (AttributeError, TypeError, ValueError) as error:
                raise Retry("The model's endpoint said what cannot be read.") from error


def wire(message: Message) -> dict[str, Any]:
    """Return a message in the form that the endpoint takes."""
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.answers:
        made["tool_call_id"] = message.answers
    if message.calls:
        made["tool_calls"] = [
            {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
            for each in message.calls
        ]
    return made


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a stream of Server-Sent Events.

    The stream is read to its very end, so that the connection can be kept. Raises Retry where the endpoint gives up in
    the middle, ValueError or AttributeError for what nobody can read.
    """
    data: list[str] = []
    for line in chain(lines, [""]):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            text, data = "\n".join(data), []
            if text.strip() == "[DONE]":
                continue
            event = json.loads(text)
            if event.get("error"):
                raise Retry(f"The model's endpoint gave up in the middle of a turn: {text[:300]}")
            yield event


def _read(events: Iterator[dict[str, Any]], hear: Callable[[str], None]) -> Turn:
    """Put the turn together from its chunks. Raises Retry where the stream ends before the turn does."""
    said = Turn()
    calls: dict[int, Asked] = {}
    for event in events:
        if usage := event.get("usage"):
            said.read, said.wrote = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        for choice in (event.get("choices") or [])[:1]:
            delta = choice.get("delta") or {}
            said.text += delta.get("content") or ""
            said.refusal += delta.get("refusal") or ""
            for part in delta.get("tool_calls") or []:
                call = calls.setdefault(part.get("index") or 0, Asked(id="", name="", arguments=""))
                function = part.get("function") or {}
                call.id = call.id or part.get("id") or ""
                call.name += function.get("name") or ""
                call.arguments += function.get("arguments") or ""
            said.finish = choice.get("finish_reason") or said.finish
            hear(_so_far(said.text, calls.values()))
    if not said.finish:
        raise Retry("The model's endpoint ended in the middle of a turn.")
    said.text, said.refusal = _plain(said.text), _plain(said.refusal)
    said.calls = [
        Asked(id=_plain(each.id), name=_plain(each.name), arguments=_plain(each.arguments))
        for _, each in sorted(calls.items())
    ]
    return said


def _so_far(text: str, calls: Iterable[Asked]) -> str:
    """Return what is shown of a turn that is not whole yet."""
    writing = [f"Writes a call of {each.name}: {len(each.arguments):,} characters so far." for each in calls]
    return "\n\n".join(filter(None, [text, "\n".join(writing)]))


@contextmanager
def _meaning() -> Iterator[None]:
    """Turn what the client raises into what it means for the step."""
    import openai

    try:
        yield
    except openai.APIConnectionError as error:  # a time-out is one
        raise Retry(f"The model's endpoint cannot be reached, or went silent: {error.message}") from error
    except openai.APIStatusError as error:
        raise _of_status(error.status_code, error.code, error.message[:300], error.response.headers) from error


def _of_status(status: int, code: str | None, said: str, headers: Any) -> Retry | StepFailed:
    if status == 429 and code == "insufficient_quota":
        return StepFailed(f"The account at the model's endpoint has no quota left: {said}")
    if status in (408, 409, 429) or status >= 500:
        after = pause(headers.get("retry-after", "")) if status in (429, 503) else None
        return Retry(f"The model's endpoint answered HTTP {status}: {said}", after)
    if status in (401, 403):
        return StepFailed(f"The model's endpoint refuses OPENAI_API_KEY (HTTP {status}): {said}")
    if code == "context_length_exceeded":
        return StepFailed(f"The conversation is too long for the model; lower HOLDPOINT_ASSISTANT_CONTEXT: {said}")
    if status == 404:
        known = f"HOLDPOINT_ASSISTANT_MODEL {settings.HOLDPOINT_ASSISTANT_MODEL!r}"
        return StepFailed(f"There is no {known} at OPENAI_BASE_URL {settings.OPENAI_BASE_URL!r}: {said}")
    return StepFailed(f"The model's endpoint refused the request (HTTP {status}): {said}")


def pause(said: str) -> float | None:
    """Seconds that a Retry-After asks for (RFC 9110 §10.2.3), within bounds; None where it says nothing."""
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(said) - timezone.now()).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(seconds, 0.0), LONGEST_PAUSE) if seconds == seconds else None


def _plain(text: str) -> str:
    """Without lone surrogates, which no state holds."""
    return text.encode(errors="replace").decode()


@cache
def _client(base_url: str, key: str) -> OpenAI:
    """One client a process and endpoint: its connection is kept between turns, and the runtime does the retrying."""
    from openai import DefaultHttpxClient, OpenAI
    from openai import Timeout as Limits

    limits = Limits(SILENT, connect=CONNECTING)
    return OpenAI(
        base_url=base_url, api_key=key, max_retries=0, timeout=limits, http_client=DefaultHttpxClient(trust_env=False)
    )
