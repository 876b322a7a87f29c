"""`/healthz` tells that this process answers, `/readyz` that the parts it needs work.

Readiness names the missing part to staff and to this machine only; others get the verdict. It answers in time,
also while a part hangs. If readers of events are held back, or `make run` starts a part again, it is "degraded", with
200: pages work, and taking this process out of the balancer would not help.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.models import SweeperPass, Worker
from agents.models.worker import SILENT
from agents.serving import deaf_workers
from checkpoints.events.commit_order import horizon_age
from config.health.bounded_checks import BoundedChecks
from config.local import restarts as restarted
from config.messages import canary
from config.web import proxies

ANSWERED_WITHIN = 2.0  # seconds
SWEEPER_SILENT = timedelta(seconds=10)
READERS_LATE = 60  # seconds: Holdpoint's own transactions are ended by then
LATE = f"no answer within {ANSWERED_WITHIN:g} s"
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
    parts = bounded.ask(CHECKS | HARMLESS, within=ANSWERED_WITHIN, late=LATE)
    harmless = {name: parts.pop(name) for name in HARMLESS}
    ready = not any(parts.values())
    body: dict[str, object] = {"status": ("degraded" if any(harmless.values()) else "ready") if ready else "not ready"}
    if may_see_parts(request, parts["postgresql"]):
        body["parts"] = {name: problem or "ok" for name, problem in (parts | harmless).items()}
    return JsonResponse(body, status=200 if ready else 503)


def may_see_parts(request: HttpRequest, database: str) -> bool:
    """Tell whether the client may see the details. `database`: its fault, if any; then no session is read."""
    if proxies.is_local(request):
        return True
    try:
        return not database and request.user.is_authenticated and request.user.is_staff
    except DatabaseError:
        return False


def postgresql() -> str:
    """Return the fault of PostgreSQL, or ""."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "does not answer"
    return ""


def redis_server() -> str:
    """Return the fault of Redis, or ""."""
    try:
        with canary.client(settings.REDIS_URL) as client:
            client.ping()
    except redis.RedisError:
        return "does not answer"
    return ""


def sweeper() -> str:
    """Return the fault of the sweeper, by the database's clock, or ""."""
    try:
        if SweeperPass.objects.filter(at__gte=Now() - SWEEPER_SILENT).exists():
            return ""
        latest = SweeperPass.latest()
    except DatabaseError:
        return "unknown: PostgreSQL does not answer"
    return f"silent since {latest.at.isoformat()}" if latest else "has never run"


def worker() -> str:
    """Return the fault of the workers as a whole, or of one that was ended because it took nothing; or "".

    A worker that is busy with long steps counts as present: each of its processes reports itself.
    """
    try:
        if not Worker.objects.there().exists():
            return f"none was heard of for {SILENT.seconds} s"
        return deaf_workers.describe_ended_worker()
    except DatabaseError:
        return "unknown: PostgreSQL does not answer"
    except redis.RedisError:
        return "unknown: Redis does not answer"


def readers() -> str:
    """Return for how long, and by whom, readers of events are held back; "" unless it is too long."""
    try:
        age = horizon_age()
    except DatabaseError:
        return "unknown: PostgreSQL does not answer"
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
