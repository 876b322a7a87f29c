"""Takes one request again and again, and counts what it passes and sends.

The one place to which all statements come is the server, which logs them: Django's cursors, `run_sql` and `wire` share
none here. BEGIN, COMMIT and the empty one that tries a connection are not counted. What a trigger writes is not seen.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import CodeType
from typing import NamedTuple

from tests.harness.session import ROOT

PACKAGES = ("agents", "approvals", "checkpoints", "config")
LOGGED = {"log_statement": "all", "log_parameter_max_length": "0"}
WARM, TIMED = 5, 30
SENT = re.compile(r"^\S+ \S+ \S+ \[\d+\] LOG:  (?:statement|execute [^:]*): (.*(?:\n\t.*)*)", re.MULTILINE)
UNCOUNTED = re.compile(r"\s*(BEGIN\b.*|COMMIT|ROLLBACK)?\s*")
WRITES = re.compile(r"\b(INSERT\s+INTO|DELETE\s+FROM|UPDATE\s+[\w\".]+(\s+(AS\s+)?\w+)?\s+SET)\b")
Request = Callable[[], object]


class Walk(NamedTuple):
    functions: Counter[str]  # by module
    statements: list[str]
    milliseconds: float


def walk(prepare: Callable[[], Request], log: Path) -> Walk:
    """Take a request, each time prepared anew: to warm up, by the clock, and once under the profile."""
    times = []
    for _ in range(WARM + TIMED):
        request, began = prepare(), time.process_time()
        request()
        times.append(time.process_time() - began)
    request, before = prepare(), log.stat().st_size
    functions = Counter(sorted(filter(None, map(own_module, passed_codes(request)))))
    statements = SENT.findall(log.read_bytes()[before:].decode())
    return Walk(functions, [text for text in statements if not UNCOUNTED.fullmatch(text)], median(times[WARM:]) * 1000)


def passed_codes(request: Request) -> set[CodeType]:
    """Return the code that runs in this thread and in those that the request starts."""
    codes: set[CodeType] = set()
    for watch in (threading.setprofile, sys.setprofile):
        watch(lambda frame, *_: codes.add(frame.f_code))
    request()
    sys.setprofile(None)
    threading.setprofile(None)
    return codes


def own_module(code: CodeType) -> str:
    """Return where a function of the project is; "" for others' code, comprehensions, lambdas and modules' own."""
    path = Path(code.co_filename)
    module = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return str(module) if module.parts[0] in PACKAGES and not code.co_name.startswith("<") else ""
