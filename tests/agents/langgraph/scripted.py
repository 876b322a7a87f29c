"""A model whose turns a test scripts: the next one follows from how many the conversation has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from agents.definition.agent import AgentType
from agents.langgraph import GraphAgent

Calls = Sequence[tuple[str, dict[str, Any]]]
Turns = Callable[[Sequence[BaseMessage]], tuple[str, Calls]]


class Scripted(BaseChatModel):
    """`turns`: the words and calls that follow a conversation. What it was told last is in what it says."""

    turns: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        text, calls = self.turns(messages)
        made = [
            {"name": name, "args": arguments, "id": f"call-{len(messages)}-{at}", "type": "tool_call"}
            for at, (name, arguments) in enumerate(calls)
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text, tool_calls=made))])


def first(*calls: tuple[str, dict[str, Any]]) -> Turns:
    """Make these calls in the first turn, and say in the second what was heard since."""

    def turns(messages: Sequence[BaseMessage]) -> tuple[str, Calls]:
        said = [at for at, each in enumerate(messages) if isinstance(each, AIMessage)]
        if not said:
            return "I make my calls.", calls
        heard = [f"{each.type}: {each.content}" for each in messages[said[0] + 1 :] if each.type != "ai"]
        return " || ".join(heard), ()

    return turns


def agent(name: str, graph: Any, **options: Any) -> type[GraphAgent]:
    return cast(type[GraphAgent], AgentType(name, (GraphAgent,), {"name": name, "graph": graph, **options}))
