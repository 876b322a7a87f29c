"""Structured logs: one event a line, JSON in production and readable text on a terminal.

Bound context variables (a run, a step, an attempt, a request) are on every line, those of Django, Celery and uvicorn
included; warnings and the exception that ends a process are lines too. Values are data from outside: in text none of
their line breaks and escape sequences reaches the terminal, so that a mail's subject cannot forge a line.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from checkpoints.values import characters

LAST = ("run", "step", "attempt", "token")  # what ties a line to its run comes last
log = structlog.get_logger(__name__)
CLOCK = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)  # of a terminal


def configuration(style: str, level: str) -> dict[str, Any]:
    """Return Django's LOGGING for `style` "json" or "text", and make structlog write through it."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        drop_colours,
        structlog.processors.TimeStamper(fmt="iso", utc=True) if style == "json" else CLOCK,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.captureWarnings(True)
    if style == "json":  # on a terminal a traceback is better read as Python prints it
        sys.excepthook, threading.excepthook = log_crash, log_crash_of_thread
    ends: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    ends += (
        [structlog.processors.JSONRenderer(ensure_ascii=True)] if style == "json" else [escape_controls, render_text]
    )
    access = logging.getLogger("uvicorn.access")  # --no-access-log leaves it without a handler
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"()": structlog.stdlib.ProcessorFormatter, "processors": ends, "foreign_pre_chain": shared}
        },
        "filters": {"readiness": {"()": ExceptReadiness}, "plain": {"()": WithoutTraceback}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Django's own handlers would print each line again, or mail it.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.request": {"filters": ["readiness"]},
            # A request for another host is refused by one rule, and scanners send them all day.
            "django.security.DisallowedHost": {"filters": ["plain"]},
            "django.server": {"handlers": [], "propagate": True},
            # uvicorn has set up its own handlers by now, unless it was told not to.
            "uvicorn": {"handlers": [], "level": level, "propagate": True},
            "uvicorn.error": {"level": level},
            "uvicorn.access": {"handlers": [], "level": level, "propagate": bool(access.handlers) or access.propagate},
            # A line for every request to the sandbox or the API belongs to debugging.
            "httpx": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }


def log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log the exception that ends this process; a Ctrl-C is none."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("process.crashed", exc_info=(kind, error, trace))


def log_crash_of_thread(crash: threading.ExceptHookArgs) -> None:
    """Log the exception that ends a thread."""
    name = crash.thread.name if crash.thread else ""
    log.critical("process.thread_crashed", thread=name, exc_info=crash.exc_value)


def drop_colours(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Drop the coloured copy that uvicorn adds to its lines."""
    event.pop("color_message", None)
    return event


def escape_controls(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Write control and direction characters of values as their code points; tracebacks keep their lines."""
    for name, value in event.items():
        if name == "exception":
            event[name] = "\n".join(characters.escape_controls(line) for line in str(value).split("\n"))
        elif isinstance(value, str):
            event[name] = characters.escape_controls(value)
    return event


class ExceptReadiness(logging.Filter):
    """Drops the error that Django logs for each failing answer of /readyz: the balancer asks every second."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether to keep the record."""
        return getattr(getattr(record, "request", None), "path", "") != "/readyz"


class WithoutTraceback(logging.Filter):
    """Turns errors that strangers cause into one line, a warning: their traceback is of no use."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record, without its exception."""
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def render_text(_: WrappedLogger, __: str, event: EventDict) -> str:
    """Render one event for a person: time, level where it matters, what happened, then name=value."""
    at, level = event.pop("timestamp", ""), str(event.pop("level", "info"))
    what, trace = event.pop("event", ""), event.pop("exception", "")
    event.pop("logger", None)
    words = "" if level in ("info", "debug") else f"{level.upper()} "
    names = sorted(event, key=lambda name: LAST.index(name) if name in LAST else -1)
    pairs = "".join(f" {name}={_shown(event[name])}" for name in names)
    indented = "".join(f"\n    {line}" for line in str(trace).splitlines())
    return f"{at} {words}{what}{pairs}{indented}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else characters.escape_controls(repr(value))
    return f'"{text}"' if " " in text or text == "" else text
