"""Writes what docs have from the code that declares it, but for the settings; `make generated` runs it.

docs/addresses.md: every address of the HTTP API, from its description. docs/events.md: the table of the kinds of
events. docs/reference.md: what an author imports, in the words of the code itself; its source is read and none of it is
imported, so that fields keep the comments that stand beside them.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import agents
from checkpoints.events.kinds import KINDS

DOCS = Path(__file__).parent
MARK = "<!-- `make generated` writes what follows from checkpoints/events/kinds.py. -->\n"
ADDRESSES = """# Addresses of the HTTP API

Every address, as `GET /api/openapi.json` describes it, with the scope that a token needs. [The HTTP API](api.md) says
how they go together. `make generated` writes this page.
"""
REFERENCE = """# Reference

Every public name of `agents` and `agents.testing`, as the code declares and explains it. `make generated` writes it.
[Writing an agent](agents.md), [What a run does](runs.md) and [Testing an agent](testing.md) say when to use which.
"""
SET_BY_ITSELF = r"init=False|^kind: ClassVar"  # what a decorator sets is none of its options
WITH_METHODS = ("Agent", "Trial")  # of the others only the runtime calls any


def write_addresses(description: Mapping[str, Any]) -> str:
    """Return docs/addresses.md: a table for each group of addresses in the API's description."""
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    parts = [ADDRESSES]
    for tag in dict.fromkeys(operation["tags"][0] for _, operation in operations):
        parts.append(f"\n## {tag.capitalize()}\n\n| address | does | scope |\n|---|---|---|\n")
        for address, operation in operations:
            if operation["tags"][0] == tag:
                words = " ".join(operation["description"].split())
                names = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"]
                query = "?" + "&".join(f"{name}=" for name in names) if names else ""
                scopes = chain.from_iterable(way.get("token", ()) for way in operation["security"])
                scope = ", ".join(f"`{scope}`" for scope in scopes) or "none"
                parts.append(f"| `{address}{query}` | {words} | {scope} |\n")
    return "".join(parts)


def write_events(page: str) -> str:
    """Return the page with its words up to the mark, and the table of all kinds after it."""
    words = page.partition(MARK)[0]
    rows = [f"| `{kind}` | {of.subject} | {of.when} | {of.data or 'none'} |\n" for kind, of in KINDS.items()]
    return f"{words}{MARK}\n| kind | subject | when | data |\n|---|---|---|---|\n{''.join(rows)}"


class Module:
    """The source of a module, and what it declares by name."""

    def __init__(self, name: str) -> None:
        source = (DOCS.parent / name.replace(".", "/")).with_suffix(".py").read_text()
        self.lines = source.splitlines()
        self.body = ast.parse(source).body
        self.classes = {node.name: node for node in self.body if isinstance(node, ast.ClassDef)}

    def section(self, title: str, node: ast.ClassDef) -> str:
        """Write a class's section: its words, its fields as they are written, and a line for each method."""
        parts = [f"\n## {title}\n", words_of(node)]
        if fields := self.fields_of(node):
            written = re.sub(r"(?m)^(\w+: )ClassVar\[(.*?)\](?= = |$)", r"\1\2", "\n".join(fields.values()))
            parts.append(f"```python\n{written}\n```\n")
        if node.name in WITH_METHODS:
            parts.append("".join(f"- `{signature_of(method)}`: {words_of(method, ' ')}" for method in methods_of(node)))
        return "\n".join(parts)

    def fields_of(self, node: ast.ClassDef) -> dict[str, str]:
        """Return the source of each field by its name, those of its bases in this module first."""
        found: dict[str, str] = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                found |= self.fields_of(self.classes[base.id])
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                found[field.target.id] = self.source_of(field)
        return {name: text for name, text in found.items() if name[0] != "_" and not re.search(SET_BY_ITSELF, text)}

    def source_of(self, field: ast.stmt) -> str:
        """Return a field's lines, with the comment above them if there is one."""
        start = field.lineno - 1
        while self.lines[start - 1].strip().startswith("#"):
            start -= 1
        return "\n".join(line.strip() for line in self.lines[start : field.end_lineno])


def methods_of(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Yield the methods that others call; how a trial is begun is one."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__" and ast.get_docstring(method):
            method.name = node.name
        if isinstance(method, ast.FunctionDef) and method.name[0] != "_":
            yield method


def words_of(node: ast.ClassDef | ast.FunctionDef, between: str = "\n\n") -> str:
    """Return the paragraphs of a docstring, each on a line of its own."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    return between.join(" ".join(paragraph.split()) for paragraph in paragraphs) + "\n"


def signature_of(method: ast.FunctionDef) -> str:
    """Return how a method is called, without types; a property's name alone."""
    if "property" in map(ast.unparse, method.decorator_list):
        return method.name
    for argument in ast.walk(method.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    method.args.args = [parameter for parameter in method.args.args if parameter.arg not in ("self", "cls")]
    method.args.posonlyargs = [parameter for parameter in method.args.posonlyargs if parameter.arg != "self"]
    return f"{method.name}({ast.unparse(method.args)})"


def options_of_decorators(module: Module) -> dict[str, str]:
    """Return the class of the options that each decorator takes: `step = _bare(StepOptions)`, `gate = GateOptions`."""
    return {
        ast.unparse(node.targets[0]): next(
            part.id for part in ast.walk(node.value) if isinstance(part, ast.Name) and part.id[0] != "_"
        )
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Name)
    }


def write_reference() -> str:
    """Return docs/reference.md: a section for each name, a decorator's with the options that it takes."""
    options = Module("agents.definition.decorators")
    sections = [REFERENCE]
    for home, names in (agents._HOMES | {"agents.testing.trial": ("Trial",)}).items():
        module = Module(home)
        decorators = options_of_decorators(module) if home.endswith(".decorators") else {}
        for name in names:
            if name in decorators:
                sections.append(options.section(f"@{name}", options.classes[decorators[name]]))
            else:
                sections.append(module.section(name, module.classes[name]))
    return "".join(sections)


if __name__ == "__main__":
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings_of_make_check"
    django.setup()
    from agents.api.interface import api

    (DOCS / "addresses.md").write_text(write_addresses(api.get_openapi_schema(path_prefix="/api/")))
    (DOCS / "events.md").write_text(write_events((DOCS / "events.md").read_text()))
    (DOCS / "reference.md").write_text(write_reference())
