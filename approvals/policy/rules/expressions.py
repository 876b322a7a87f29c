"""Evaluates the expressions of rules, which are in CEL, the Common Expression Language.

The only module that knows the library. An expression is short, calls nothing but pure functions of a fixed list, goes
through lists at most twice, and sees at most `VALUES` values of an action. What it may cost is computed from its text
and from the sizes of what it sees before it runs; above `BUDGET` it is unclear, so that it ends within a fraction of a
second, and the same proposal always gives the same. It can read nothing else.

A number below zero is smaller than every limit, which no author of `amount < 50` has in mind. So an expression is true
or false only where it gives the same with the sizes of these numbers: -20 is below 50 either way, -10000 is unclear.

Numbers are exact: CEL has 64-bit integers and binary doubles only, and a decimal of up to 15 digits survives as a
double, in order and distinct from every other. Longer numbers are left out of the facts, and refused in an expression;
so is arithmetic, which would round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

from approvals.policy.requirements import Unclear

LONGEST = 1_000  # characters of an expression
LOOPS = 2  # times that it goes through a list
VALUES = 1_000  # values of an action that it may see
BUDGET = 200_000  # the cost that it may have, in comparisons of short values: a microsecond or two each
_PATTERN = 40  # the cost of `matches`, which reads its pattern each time
_SCANNED = 600  # characters of a text that are searched at the cost of one comparison
_PER_OPERATION = 10  # characters of an expression, about
DIGITS = 15  # of a number: a double holds all decimals of so many digits apart
COMPUTES = "A rule compares values and does not compute with them, since that would round."
PARTIAL = ""  # a fact: whether values are left out, which whatever reads more than single values would miss
_WHOLE = re.compile(r"\b(?:in|has|size)\b|\{")  # it asks whether values are there, or compares all of them
_LOOPING = re.compile(r"\b(all|exists|exists_one|existsOne|map|filter)\b")
_BRACKET = re.compile(_LOOPING.pattern + r"\s*\(|[\[({})\]]")
_STRINGS = re.compile(r"""[rR]?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_LONG_NUMBER = re.compile(rf"(?<![\w.])[\d.]{{{DIGITS + 2},}}")
_WHERE = re.compile(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?(.*)")
_FUNCTIONS = {
    "!_", "@in", "@not_strictly_false", "_!=_", "_&&_", "_+_", "_<=_", "_<_", "_==_", "_>=_", "_>_", "_?_:_", "_[_]",
    "_||_", "-_", "contains", "endsWith", "matches", "size", "startsWith",
}  # fmt: skip


class WrongExpression(Exception):
    """An expression that cannot be used; the message says why, `line` and `column` where, from 1 (0: unknown)."""

    def __init__(self, why: str, line: int = 0, column: int = 0) -> None:
        super().__init__(why)
        self.line, self.column = line, column


@dataclass(frozen=True)
class Expression:
    """A checked expression."""

    text: str
    program: Any
    names: frozenset[str]  # the variables that it reads
    whole: bool = False  # whether it would take values that are left out for ones that are not there
    loops: int = 0  # loops through a list that stand within one another

    def is_true(self, facts: Mapping[str, Any]) -> bool:
        """Evaluate it on an action's facts. Raises Unclear where that gives no true or false."""
        if self.whole and facts.get(PARTIAL):
            raise Unclear("a value is too long to be compared exactly")
        known = {name: value for name, value in facts.items() if name != PARTIAL}
        if self.loops and self._cost(known) > BUDGET:
            raise Unclear("it would take too long for so many values")
        found = self._evaluated(known)
        if (sizes := _without_signs(known)) != known and self._evaluated(sizes) is not found:
            raise Unclear("it depends on the sign of a number below zero")
        return found

    def _cost(self, known: Mapping[str, Any]) -> int:
        """Return what it may cost at most, its loops through the longest list among what it reads."""
        read = list(_values([known[name] for name in self.names if name in known]))
        most = max(len(each) for each in read if isinstance(each, list | dict))
        longest = max((len(each) for each in read if isinstance(each, str)), default=0)
        operations = (len(self.text) // _PER_OPERATION + 1) * (1 + longest // _SCANNED)
        rounds = int(most**self.loops)
        return rounds * (operations + _PATTERN * self.text.count("matches"))

    def _evaluated(self, known: Mapping[str, Any]) -> bool:
        try:
            found = self.program.execute(known)
        except BaseException as fault:  # noqa: BLE001 - whatever the library raises, also a panic of its Rust code
            _of_the_library(fault)
            raise Unclear(_why(fault)) from None
        if not isinstance(found, bool):
            raise Unclear("it gives neither true nor false")
        return found


@lru_cache(maxsize=1024)
def checked(text: str) -> Expression:
    """Check an expression. Raises WrongExpression."""
    if not text.strip():
        raise WrongExpression("Write a condition.")
    if len(text) > LONGEST:
        raise WrongExpression(f"Write at most {LONGEST:,} characters.")
    try:
        program = cel.compile(text)
        told = program.references()
    except BaseException as fault:  # noqa: BLE001 - as above
        _of_the_library(fault)
        raise _wrong(str(fault)) from None
    bare = without_strings(text)
    for name in told["functions"]:
        if name not in _FUNCTIONS:
            computes = re.fullmatch(r"_._|_%_", name)
            raise _refused(COMPUTES if computes else f"There is no function “{name}” for rules.", bare, name)
    if "+" in bare:
        raise _refused(COMPUTES, bare, "+")
    if len(_LOOPING.findall(bare)) > LOOPS:
        raise WrongExpression(f"Go through a list at most {LOOPS} times in one condition.")
    if long := _LONG_NUMBER.search(bare):
        words = f"Write numbers of at most {DIGITS} digits: longer ones are not compared exactly."
        raise _refused(words, bare, long.group())
    whole = bool(_LOOPING.search(bare) or _WHOLE.search(bare))
    return Expression(text, program, frozenset(told["variables"]), whole, _nesting(bare))


def _nesting(bare: str) -> int:
    """Return how many loops of an expression without strings stand within one another at most."""
    if "//" in bare:  # a comment may stand before a loop's bracket
        return len(_LOOPING.findall(bare))
    brackets, deepest = list[bool](), 0
    for found in _BRACKET.finditer(bare):
        if found.group() not in ")]}":
            brackets.append(bool(found.group(1)))
            deepest = max(deepest, sum(brackets))
        elif brackets:
            brackets.pop()
    return deepest


def _values(value: Any) -> Iterator[Any]:
    """Yield a value and all values within it, names included."""
    yield value
    within = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in within:
        yield from _values(each)


def _without_signs(value: Any) -> Any:
    """Return a value with the sizes of its numbers in their place."""
    if isinstance(value, Mapping):
        return {name: _without_signs(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_signs(each) for each in value]
    return abs(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def without_strings(text: str) -> str:
    """Return an expression with blanks in the place of its strings."""
    return _STRINGS.sub(lambda found: " " * len(found.group()), text)


def _refused(words: str, text: str, name: str) -> WrongExpression:
    """Return the refusal of a part of the expression, at the place where it stands."""
    at = max(text.find(name.strip("_")), 0)
    before = text[:at]
    return WrongExpression(words, before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)


def _wrong(said: str) -> WrongExpression:
    found = _WHERE.search(said)
    if not found:
        return WrongExpression(f"This is no condition: {said.splitlines()[0][:200]}")
    line, column, why = found.groups()
    ends = "<EOF>" in why.partition("expecting")[0]
    plain = why.partition(" expecting ")[0].replace("mismatched ", "unexpected ")
    words = "the condition ends too early" if ends else plain
    return WrongExpression(words, int(line), int(column))


def _why(fault: BaseException) -> str:
    """Say in a few words why an expression could not be evaluated."""
    said = str(fault)
    if isinstance(fault, KeyError):
        return "there is no “{name}”".format(name=said.strip("'\""))
    if name := re.match(r"Undefined variable or function: '([^']*)'", said):
        return f"there is no “{name[1]}”"
    if isinstance(fault, TypeError):
        return "it compares values of different kinds"
    return said.partition(".")[0][:200]


def _of_the_library(fault: BaseException) -> None:
    """Raise what is no error of the library; a panic of its Rust code is no Exception."""
    if not isinstance(fault, Exception) and type(fault).__module__ != "pyo3_runtime":
        raise fault
