"""All that a server says of itself to a model, compared as one with what was let through before, which a file keeps.

A tool's name says nothing: a second one of the same name, a new one under a pattern that passes, or other instructions
change what a model does as much as a changed description. So the agent is given only what is pinned, word for word.
What differs from it is held back: a changed tool is shown as it was, a new one is not offered, neither is called.

The first catalogue of a server is taken as it is: whoever configures the gateway starts it. After that only people's
approval moves the pin, from the one that they compared with. The file is kept so that a server cannot change between
two starts.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mcp_types import Implementation, Tool

from ... import exact_calls
from ...errors import NotConfigured
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


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class Pins:
    """The pin of one server. Without a file it is kept for the life of the process.

    `place`: a mark of that server, since a tool of another server is another tool. The file is read anew before it is
    asked and under a lock before it is written, since other gateways may have the same.
    """

    def __init__(self, file: Path | None, place: str) -> None:
        self.file, self.place = file, place
        self.places: dict[str, Any] = {}
        self.read: tuple[int, ...] = ()
        self._refresh()

    @property
    def known(self) -> Pin | None:
        """Return what is pinned; None before the first catalogue. A file of older gateways has fingerprints alone."""
        found = self.places.get(self.place)
        if found is None:
            return None
        return Pin(**found) if _is_pin(found) else Pin(id="", words={}, tools={}, marks=found)

    def pinned(self, live: Catalogue) -> Pin:
        """Return what is pinned; the first catalogue is."""
        self._refresh()
        known = self.known
        while known is None:  # until it is written, here or by another gateway
            self.take(live, instead_of=None)
            known = self.known
        return known

    def take(self, live: Catalogue, *, instead_of: Pin | None) -> bool:
        """Pin a catalogue in the place of the one that people compared it with, or as the first.

        Returns False where another one is pinned by now, with which it has to be compared anew.
        """
        if self.file is None:
            return self._taken(live, instead_of)
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.file.with_suffix(".lock")):
            self._refresh()
            if not self._taken(live, instead_of):
                return False
            beside = self.file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self.places, indent=1, sort_keys=True))
            beside.replace(self.file)
        return True

    def _taken(self, live: Catalogue, instead_of: Pin | None) -> bool:
        if self.known != instead_of:
            return False
        tools = {**(instead_of.tools if instead_of else {}), **live.tools}  # one that is away may come back as it was
        self.places[self.place] = asdict(Pin(secrets.token_hex(8), live.words, tools))
        return True

    def _refresh(self) -> None:
        """Read the file, if it is another one than the last that was read. Raises NotConfigured."""
        if self.file is None:
            return
        try:
            about = self.file.stat()
            read = (about.st_ino, about.st_mtime_ns, about.st_size)
            if read == self.read:
                return
            found = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            self.places, self.read = {}, ()
            return
        except (OSError, ValueError) as error:
            raise NotConfigured(
                f"The known tools {self.file} cannot be read ({error}). Restore it, or delete it."
            ) from None
        if not isinstance(found, dict) or not all(_is_pin(entry) or _are_marks(entry) for entry in found.values()):
            raise NotConfigured(f"The known tools {self.file} are no list of tools. Restore the file, or delete it.")
        self.places, self.read = found, read


def _is_pin(entry: Any) -> bool:
    kinds = {"id": str, "words": dict, "tools": dict, "marks": dict}
    return (
        isinstance(entry, dict)
        and entry.keys() == kinds.keys()
        and all(isinstance(entry[name], kind) for name, kind in kinds.items())
        and all(isinstance(tool, dict) and tool.get("name") == name for name, tool in entry["tools"].items())
    )


def _are_marks(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(mark, str) for mark in entry.values())


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file, which ends with the process that has it."""
    with file.open("a") as lock:
        if sys.platform == "win32":
            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def usual_file(server: Sequence[str]) -> Path:
    """Return where the tools of a server are kept, by its command or address."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "holdpoint" / "gateway" / f"{server_mark(*server)}.json"


def server_mark(*words: str) -> str:
    """Return a mark of a server, which tells nothing of its command."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
