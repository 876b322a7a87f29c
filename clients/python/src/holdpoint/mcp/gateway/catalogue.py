"""All that a server says of itself to a model, compared as one with what was let through before. Pure.

A tool's name says nothing: a second one of the same name, a new one under a pattern that passes, or other instructions
change what a model does as much as a changed description. So the agent is given only what is pinned, word for word.
What differs from it is held back: a changed tool is shown as it was, a new one is not offered, neither is called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_types import Implementation, Tool

from ... import exact_calls
from ...json_pointer import pointer_to

MEMBERS = {"name", "title", "description", "input_schema", "output_schema", "annotations"}
WORDS = {"name", "title", "description"}  # of the server; its version is another one after each update
VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,40}")
DRAWN, LONGEST = 50, 1000  # drawings of one question, and the characters of a place in it
Json = dict[str, Any]


@dataclass(frozen=True)
class Catalogue:
    """A server's words of itself, and its tools by name. `doubled`: the names that several different tools have."""

    words: Json
    tools: dict[str, Json]
    doubled: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pin:
    """A catalogue that was let through. `id`: of this pinning, since the same catalogue may be pinned again later.

    `marks`: the fingerprints of an older file, which were let through one by one.
    """

    id: str
    words: Json
    tools: dict[str, Json]
    marks: dict[str, str] = field(default_factory=dict)

    def lets(self, tool: Json) -> bool:
        """Tell whether a tool is as it was let through."""
        name = tool["name"]
        pinned = name in self.tools and same_tool(self.tools[name], tool)
        return pinned or self.marks.get(name) == exact_calls.digest_values(tool)

    def offered(self, live: Catalogue) -> Iterator[Json]:
        """Yield the tools that an agent may see, in the words that were let through."""
        for name, tool in live.tools.items():
            if self.lets(tool):
                yield tool
            elif name in self.tools:
                yield self.tools[name]

    def difference(self, live: Catalogue) -> Json:
        """Return the texts of what was not let through: `server`, and `new` and `changed` tools by name."""
        texts: Json = {"server": write_words(live.words)} if live.words != self.words else {}
        for name, tool in live.tools.items():
            if self.marks or not self.lets(tool):
                texts.setdefault("changed" if name in self.tools else "new", {})[name] = write_words(tool)
        return texts

    def drawings(self, difference: Json) -> list[dict[str, str]]:
        """Return how a difference is drawn: each text beside the one that was let through."""
        before = {"/server": self.words} if "server" in difference else {}
        for kind in ("changed", "new"):
            before |= {pointer_to(kind, name): self.tools.get(name, {}) for name in difference.get(kind, {})}
        drawings = [
            {"kind": "diff", "at": at} | ({"was": write_words(words)} if words else {})
            for at, words in before.items()
            if len(at) <= LONGEST
        ]
        return drawings[:DRAWN]


def catalogue_of(tools: Iterable[Tool], server: Implementation | None, instructions: str | None) -> Catalogue:
    """Return a catalogue. A tool that is listed twice in the same words is one. Raises NotJson."""
    by_name: dict[str, Json] = {}
    doubled = set()
    for tool in map(describe_tool, tools):
        if not same_tool(by_name.setdefault(tool["name"], tool), tool):
            doubled.add(tool["name"])
    words = server.model_dump(mode="json", exclude_none=True, include=WORDS) if server else {}
    words |= {"instructions": instructions} if instructions else {}
    return Catalogue(words, {name: tool for name, tool in by_name.items() if name not in doubled}, frozenset(doubled))


def describe_tool(tool: Tool) -> Json:
    """Return all that a tool says of itself to a model: its words, its schemas, its hints."""
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=MEMBERS)


def same_tool(first: Json, second: Json) -> bool:
    """Tell whether two tools say the same: 1, 1.0 and true differ. Raises NotJson."""
    return exact_calls.encode_canonical(first) == exact_calls.encode_canonical(second)


def fingerprint_tool(tool: Tool) -> str:
    """Return a digest of that. Raises NotJson."""
    return exact_calls.digest_values(describe_tool(tool))


def write_words(words: Mapping[str, Any]) -> str:
    """Return a tool, or a server's words, as people read them line by line: JSON with a long text as its lines."""
    lines = {name: text.split("\n") if isinstance(text, str) and "\n" in text else text for name, text in words.items()}
    return json.dumps(lines, indent=2, ensure_ascii=False, sort_keys=True)
