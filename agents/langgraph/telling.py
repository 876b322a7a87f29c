"""Tells the model by a message what it could not hear otherwise: a reviewer's edit, or why the run was sent back.

LangChain's middleware tells of an edit in the tool's result, and then nothing is added. A message is added to the
graph's channel `messages`, as LangGraph's `Command(update=…)` would, and only where a message may stand: never
between a call and its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdpoint.langgraph.values import decode_value, encode_value
from langchain_core.messages import AIMessage, HumanMessage

from . import position as positions
from .compiled import CompiledGraph

MESSAGES = "messages"


def add_due_messages(
    graph: CompiledGraph, at: dict[str, Any], values: dict[str, Any], words: Sequence[str], *, answering: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Add the messages that are due to `values`; return the position after that, and what is still to be told."""
    due = [*at["told"], *({"text": f"A reviewer sent you back to here: {text}", "unless": ""} for text in words)]
    field = graph.channels.fields.get(MESSAGES, "")
    shown = values.get(field)
    if not due or not isinstance(shown, list) or not shown:
        return at, []
    messages = [decode_value(message, allow=graph.allow) for message in shown]
    if answering or _is_within_calls(messages):
        return at, due
    since = _since_last_turn(messages)
    texts = [note["text"] for note in due if not (note["unless"] and any(note["unless"] in text for text in since))]
    if not texts:
        return at, []
    head = at["root"]["head"]["id"]  # the ids are the same if this is tried again
    made = [HumanMessage(content=text, id=f"{head}-{number}") for number, text in enumerate(texts)]
    added = [encode_value(message, allow=graph.allow) for message in made]
    values[field] = [*shown, *added]
    return positions.raised(at, MESSAGES, values[field]), []


def _is_within_calls(messages: Sequence[Any]) -> bool:
    """Tell whether the newest turn of the model has a call without a result."""
    answered = {getattr(message, "tool_call_id", "") for message in messages}
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return last is not None and any(call["id"] not in answered for call in last.tool_calls)


def _since_last_turn(messages: Sequence[Any]) -> list[str]:
    found: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        found.append(str(message.content))
    return found
