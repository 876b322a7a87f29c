"""Finds names that `git grep` cannot lead by, outside the cores that are yet to be rewritten.

A function that another module calls by its bare name has a verb and its object; `module.verb` may be one word. Some
words name nothing, wherever they stand. And a test that patches by a string is told when that name is gone.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tests.house.code_lines import ROOT, modules

CORES = (
    "agents/children", "agents/compatibility", "agents/effects", "agents/models", "agents/moves", "agents/questions",
    "agents/runner", "agents/session", "agents/steps", "agents/waits", "approvals/assignments", "approvals/cards",
    "approvals/channels", "approvals/consequences", "approvals/decisions", "approvals/engine_rules", "approvals/gates",
    "approvals/impact", "approvals/models", "approvals/notifications", "approvals/policy", "approvals/policy_changes",
    "approvals/presentation", "approvals/templatetags", "approvals/views", "approvals/webhooks", "approvals/live",
)  # fmt: skip
NO_LOCAL = {"told", "said", "one", "each"}
NOTHING = NO_LOCAL | {"found", "made", "drawn", "kept", "left", "held", "there", "of", "beside", "anew", "ahead"}

# What authors and programs call by these names; and the source of the step by which graph agents hear, which is in the
# digests of their plans.
INTERFACE = {
    "agents/definition/agent.py": {"held"},
    "agents/langgraph/calls.py": {"once"},
    "agents/langgraph/graph_agent.py": {"said", "each"},
    "agents/langgraph/seals.py": {"kept"},
    "clients/python/src/holdpoint/client.py": {"said"},
    "clients/python/src/holdpoint/posting.py": {"question", "thread"},
}


class Fault(NamedTuple):
    """One name to replace."""

    path: str
    line: int
    name: str
    kind: str  # function, parameter, field, local, bare, patched

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} “{self.name}”"


def faults_in(path: str, source: str) -> Iterator[Fault]:
    """Yield the names of a module that name nothing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if not isinstance(node, ast.Lambda) and node.name.strip("_") in NOTHING:
                yield Fault(path, node.lineno, node.name, "function")
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.arg in NOTHING:
                    yield Fault(path, argument.lineno, argument.arg, "parameter")
        elif isinstance(node, ast.ClassDef):
            for statement in node.body:
                target = statement.target if isinstance(statement, ast.AnnAssign) else None
                if isinstance(target, ast.Name) and target.id in NOTHING:
                    yield Fault(path, statement.lineno, target.id, "field")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NO_LOCAL:
            yield Fault(path, node.lineno, node.id, "local")


def bare_words(sources: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the functions of one word that another module imports by name."""
    functions = {
        (path.removesuffix(".py").removesuffix("/__init__").replace("/", "."), node.name): (path, node.lineno)
        for path, source in sources.items()
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and "_" not in node.name
        and not any("fixture" in ast.unparse(each) for each in node.decorator_list)
    }
    taken: set[tuple[str, str]] = set()
    passed_on: dict[tuple[str, str], tuple[str, str]] = {}  # by a package, whose users say package.verb
    for path, source in sources.items():
        name = path.removesuffix(".py").replace("/", ".")
        package = name.rpartition(".")[0]
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                module = ".".join([*above, *filter(None, [node.module])])
                names = {(module, alias.name) for alias in node.names}
                if name == f"{package}.__init__" and node.level == 1:
                    passed_on |= {(package, key[1]): key for key in names}
                else:
                    taken |= names
    taken |= {passed_on[key] for key in taken & passed_on.keys()}
    for key in sorted(taken & functions.keys()):
        path, line = functions[key]
        yield Fault(path, line, key[1], "bare")


def patched_but_gone(tests: Mapping[str, str], sources: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what tests set, by a string, on a module of the product that has no such name: types do not reach it."""
    own = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources}
    for path, source in tests.items():
        tree = ast.parse(source)
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(target)), _]):
                    module, _, name = target.rpartition(".")
                case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Name(id), ast.Constant(str(name)), *_]):
                    module = imported.get(id, "")
                case _:
                    continue
            if module in own and name not in _bound(sources[own[module]]):
                yield Fault(path, node.lineno, f"{module}.{name}", "patched")


@functools.cache
def _bound(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    return (
        {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        | {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    )


def faults() -> list[Fault]:
    """List the names outside the cores that are to be replaced, and those that tests patch though they are gone."""
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in modules()}
    every = [fault for path, source in sources.items() for fault in faults_in(path, source)]
    every += bare_words(sources)
    tests = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    gone = patched_but_gone(tests, sources)
    return [fault for fault in every if not fault.path.startswith(CORES) and not _promised(fault)] + list(gone)


def _promised(fault: Fault) -> bool:
    json = fault.kind == "field" and fault.path.startswith("agents/api/")
    return json or fault.name in INTERFACE.get(fault.path, ())


if __name__ == "__main__":
    listed = faults()
    sys.stdout.writelines(f"{fault}\n" for fault in listed)
    sys.exit(bool(listed))
