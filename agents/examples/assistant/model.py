"""Gets one turn of the model: the real `openai` client with any endpoint that speaks Chat Completions, streamed.

Failures of the endpoint that pass by themselves (429, 5xx, a cut connection) raise Retry, with the wait that the
endpoint asks for, during which no worker waits; those that somebody has to fix raise StepFailed with a sentence that
says what to do. A turn that was cut off is dropped and asked for again from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.conf import settings

from agents import Retry, StepFailed

from .conversation import Message, Turn

if TYPE_CHECKING:
    import openai

if find_spec("openai") is None:  # which is said at the start, and not in the middle of a run
    raise ModuleNotFoundError("No module named 'openai'", name="openai")

CONNECTING, SILENT = 10.0, 90.0  # seconds that the endpoint may take to be reached, and between two of its words
LONGEST_PAUSE = 900.0  # seconds that an endpoint may ask for
ADVICE: dict[int | str | None, str] = {  # by HTTP status, or by the code in the answer
    401: "Check OPENAI_API_KEY.",
    403: "Check OPENAI_API_KEY.",
    404: "Check HOLDPOINT_ASSISTANT_MODEL and OPENAI_BASE_URL.",
    "insufficient_quota": "The account has no quota left.",
    "context_length_exceeded": "The conversation is too long for the model: lower HOLDPOINT_ASSISTANT_CONTEXT.",
}
NO_KEY = (
    "No model is set up: set OPENAI_API_KEY (and OPENAI_BASE_URL for another endpoint than OpenAI's, "
    "HOLDPOINT_ASSISTANT_MODEL for another model), and start web and workers again."
)


def check_setup() -> str:
    """Say what has to be set before the model can be asked, or return "" if nothing has."""
    return "" if settings.OPENAI_API_KEY else NO_KEY


def next_turn(messages: Sequence[Message], tools: list[dict[str, Any]], hear: Callable[[str], None]) -> Turn:
    """Ask for the next turn; `hear` gets the text so far whenever there is more. Raises Retry and StepFailed."""
    import openai

    if words := check_setup():
        raise StepFailed(words)
    given: Any = {"messages": messages} | ({"tools": tools} if tools else {})
    try:
        with _client(settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY).chat.completions.create(
            model=settings.HOLDPOINT_ASSISTANT_MODEL, stream=True, stream_options={"include_usage": True}, **given
        ) as chunks:
            return _read(chunks, hear)
    except openai.APIStatusError as error:
        raise _meaning(error) from error
    except openai.APIError as error:  # a time-out is one, and an error in the middle of the stream
        raise Retry(f"The model's endpoint cannot be reached, or gave up in a turn: {error.message[:300]}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise Retry("The model's endpoint said what cannot be read.") from error


def _read(chunks: Iterable[Any], hear: Callable[[str], None]) -> Turn:
    """Put the turn together from its chunks. Raises Retry where the stream ends before the turn does."""
    turn, calls = Turn(), dict[int, dict[str, str]]()
    for chunk in chunks:
        if chunk.usage:
            turn.read, turn.wrote = chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0
        for choice in (chunk.choices or [])[:1]:
            turn.text += choice.delta.content or choice.delta.refusal or ""
            for part in choice.delta.tool_calls or []:
                function = calls.setdefault(part.index or 0, {"name": "", "arguments": ""})
                function["name"] += part.function.name or ""
                function["arguments"] += part.function.arguments or ""
            turn.finish = choice.finish_reason or turn.finish
        writing = [
            f"Writes a call of {call['name']}, {len(call['arguments']):,} characters." for call in calls.values()
        ]
        hear("\n\n".join(filter(None, [turn.text, *writing])))
    if not turn.finish:
        raise Retry("The model's endpoint ended in the middle of a turn.")
    turn.calls = [{"type": "function", "function": function} for _, function in sorted(calls.items())]
    return turn


def _meaning(error: openai.APIStatusError) -> Retry | StepFailed:
    """Return what an answer that is an error means for the step."""
    words = f"The model's endpoint answered HTTP {error.status_code}: {error.message[:300]}"
    if error.code in ADVICE:
        return StepFailed(f"{words} {ADVICE[error.code]}")
    if error.status_code in (408, 409, 429) or error.status_code >= 500:
        seconds = error.response.headers.get("retry-after", "")
        return Retry(words, min(float(seconds), LONGEST_PAUSE) if seconds.isdigit() else None)  # RFC 9110 §10.2.3
    return StepFailed(f"{words} {ADVICE.get(error.status_code, '')}")


@cache
def _client(base_url: str, key: str) -> openai.OpenAI:
    """One client a process and endpoint: its connection is kept between turns, and the runtime does the retrying."""
    import openai

    return openai.OpenAI(
        base_url=base_url,
        api_key=key,
        max_retries=0,
        timeout=openai.Timeout(SILENT, connect=CONNECTING),
        http_client=openai.DefaultHttpxClient(trust_env=False),
    )
