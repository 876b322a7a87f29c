"""`/healthz` tells that this process answers, `/readyz` that the parts it needs work.

Readiness names the missing part to staff and to this machine only; others get the verdict. It answers in time,
also while a part hangs. If readers of events are held back, or `make run` starts a part again, it is "degraded", with
200: pages work, and taking this process out of the balancer would not help.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from threading import Lock, Thread
from typing import Generic, TypeVar

import redis
from django.conf import settings
from django.db import DatabaseError, connection, connections
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.models import SweeperPass, Worker
from agents.models.worker import SILENT
from agents.serving import announcing
from checkpoints.events.commit_order import horizon_age
from config.local import restarts as restarted
from config.messages import connect_redis
from config.middleware import is_local

ANSWERED_WITHIN = 2.0  # seconds
SWEEPER_SILENT = timedelta(seconds=10)
READERS_LATE = 60  # seconds: Holdpoint's own transactions are ended by then
LATE = f"no answer within {ANSWERED_WITHIN:g} s"
Answer = TypeVar("Answer")


class BoundedChecks(Generic[Answer]):
    """The running checks of one process, each with a time limit.

    A server that hangs, or whose host is gone, keeps its clients waiting, and a balancer asks every second. So each
    check runs in a thread of its own, one at a time: another caller meanwhile waits for the same answer.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: dict[str, Future[Answer]] = {}

    def ask(self, checks: Mapping[str, Callable[[], Answer]], *, within: float, late: Answer) -> dict[str, Answer]:
        """Return each check's answer, or `late` after `within` seconds without one. Raises what a check raises."""
        until = time.monotonic() + within
        asked = {name: self._asked(name, check) for name, check in checks.items()}
        answers = {}
        for name, answer in asked.items():
            try:
                answers[name] = answer.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                answers[name] = late
        return answers

    def _asked(self, name: str, check: Callable[[], Answer]) -> Future[Answer]:
        """Return the answer of a check that runs already, or start it."""
        with self._lock:
            answer = self._under_way.get(name)
            if answer is None or answer.done():
                answer = self._under_way[name] = Future()
                # A daemon: a process that is asked to end does not wait for a server that hangs.
                Thread(target=_run, args=(check, answer), name=f"asks-{name}", daemon=True).start()
        return answer


def _run(check: Callable[[], Answer], answer: Future[Answer]) -> None:
    try:
        result = check()
    except BaseException as error:  # noqa: BLE001 - raised where it is asked for
        answer.set_exception(error)
    else:
        answer.set_result(result)
    finally:
        connections.close_all()  # back to the pool


bounded = BoundedChecks[str]()


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer without using any other part."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if PostgreSQL, Redis, the sweeper and a worker work, else 503; what does little harm is "degraded"."""
    checks = {name: partial(find_part_fault, check) for name, check in (CHECKS | HARMLESS).items()}
    parts = bounded.ask(checks, within=ANSWERED_WITHIN, late=LATE)
    harmless = {name: parts.pop(name) for name in HARMLESS}
    ready = not any(parts.values())
    body: dict[str, object] = {"status": ("degraded" if any(harmless.values()) else "ready") if ready else "not ready"}
    if may_see_parts(request, parts["postgresql"]):
        body["parts"] = {name: problem or "ok" for name, problem in (parts | harmless).items()}
    return JsonResponse(body, status=200 if ready else 503)


def may_see_parts(request: HttpRequest, database: str) -> bool:
    """Tell whether the client may see the details. `database`: its fault, if any; then no session is read."""
    if is_local(request):
        return True
    try:
        return not database and request.user.is_authenticated and request.user.is_staff
    except DatabaseError:
        return False


def find_part_fault(check: Callable[[], str]) -> str:
    """Return the fault that a check finds, or that it can find none while a server is away; or ""."""
    try:
        return check()
    except DatabaseError:
        return "does not answer" if check is postgresql else "unknown: PostgreSQL does not answer"
    except redis.RedisError:
        return "does not answer" if check is redis_server else "unknown: Redis does not answer"


def postgresql() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return ""


def redis_server() -> str:
    with connect_redis(settings.REDIS_URL) as client:
        client.ping()
    return ""


def sweeper() -> str:
    """Return the fault of the sweeper, by the database's clock, or ""."""
    if SweeperPass.objects.filter(at__gte=Now() - SWEEPER_SILENT).exists():
        return ""
    latest = SweeperPass.latest()
    return f"silent since {latest.at.isoformat()}" if latest else "has never run"


def worker() -> str:
    """Return the fault of the workers as a whole, or of one that was ended because it took nothing; or "".

    A worker that is busy with long steps counts as present: each of its processes reports itself.
    """
    if not Worker.objects.there().exists():
        return f"none was heard of for {SILENT.seconds} s"
    return announcing.describe_ended_worker()


def readers() -> str:
    """Return for how long, and by whom, readers of events are held back; "" unless it is too long."""
    age = horizon_age()
    return f"held back for {age.seconds:.0f} s by {age.holder}" if age.seconds > READERS_LATE else ""


def restarts() -> str:
    """Return the parts of a stack of `make run` that have ended and are started again, or ""."""
    return restarted.describe_parts_down(settings.HOME)


CHECKS: dict[str, Callable[[], str]] = {
    "postgresql": postgresql,
    "redis": redis_server,
    "sweeper": sweeper,
    "worker": worker,
}
HARMLESS: dict[str, Callable[[], str]] = {"readers": readers, "restarts": restarts}  # which make it "degraded" alone
