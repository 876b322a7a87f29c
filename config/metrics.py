"""Metrics for Prometheus, at `/metrics` of each web process.

There are three kinds. This process counts its requests, the events that its tailer reads (checkpoints.events.tailer)
and its pool of connections. PostgreSQL and Redis are queried at each scrape in bounded time; these figures are the same
in every process. The library reports on the process itself. Workers, sweeper and beat listen on no port: their work
shows in the database, in Redis and in the events. docs/watch.md lists all metrics, and docs/monitoring has rules and a
dashboard.

The statements run in a thread of their own, so that neither a server that stops in the middle of an answer nor an
exhausted pool delays the scrape: the process's own counts are reported all the same. Each statement reads along an
index and its count is bounded, so that a scrape costs the same at any number of events and runs. One that fails, or
waits for a lock, loses only its own figures: each has at most its share of the time that is left, and
holdpoint_database_figures says which are missing, since an alert does not fire on a missing figure.
"""

from __future__ import annotations

import hmac
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import ip_address, ip_network

import prometheus_client as prometheus
import redis
import structlog
from django.conf import settings
from django.db import Error, connections, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from agents.definition import registry
from agents.models import SweeperPass, Worker
from agents.ringing import doorbell
from approvals.middleware import Respond
from approvals.models import ChannelState, Gate, Message, Unrun, Webhook
from checkpoints.audit import sealer
from checkpoints.events.commit_order import horizon_age
from checkpoints.events.tailer import OTHERS
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from config.health.checks import BoundedChecks
from config.messages import canary_age
from config.middleware import is_local, trusted_address

STATEMENT = 1.0  # seconds for one at most
ASKED = 1.9  # seconds after which no more is asked for
LONGEST = 3.0  # seconds for all of them
Family = Callable[[], Iterable[Metric]]
bounded = BoundedChecks[list[Metric]]()
log = structlog.get_logger(__name__)
ANSWERED = prometheus.Counter(
    "holdpoint_http_requests", "Requests that this process answered, by view and status.", ["view", "status"]
)
TOOK = prometheus.Histogram(
    "holdpoint_http_request_seconds",
    "Seconds until the answer began, by view. What waits is asked anew each time that it may have its answer.",
    ["view"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def count_requests(get_response: Respond) -> Respond:
    """Count and time answers by view: not by address, which would be one series per object."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = get_response(request)
        view = request.resolver_match.view_name if request.resolver_match else "none"
        TOOK.labels(view).observe(time.perf_counter() - began)
        ANSWERED.labels(view, str(response.status_code)).inc()
        return response

    return respond


class AskedMetrics(Collector):
    """The collector of metrics that are queried at each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, each part in bounded time."""
        yield from _database()
        yield from _broker()
        yield from _pool()

    def describe(self) -> list[Metric]:
        """Return no names; without this the library would collect the metrics just to learn their names."""
        return []


prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each counter, which nobody reads
prometheus.REGISTRY.register(AskedMetrics())


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return all metrics."""
    refused = refusal_for(request)
    if refused is not None:
        return refused
    encode, media_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(prometheus.REGISTRY), content_type=media_type)


def refusal_for(request: HttpRequest) -> HttpResponse | None:
    """Return a 401 for a client that may not read, None for others. Raises Http404 where no token is set.

    The token or the networks let it read; where neither is set, only this machine may.
    """
    kind, _, sent = request.headers.get("Authorization", "").partition(" ")
    token = settings.HOLDPOINT_METRICS_TOKEN.encode()
    sends_token = bool(token) and kind.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), token)
    if sends_token or _asks_from_inside(request):
        return None
    if not token:
        raise Http404
    refused = HttpResponse("Send the token of HOLDPOINT_METRICS_TOKEN.\n", status=401, content_type="text/plain")
    refused["WWW-Authenticate"] = 'Bearer realm="Holdpoint metrics"'
    return refused


def _asks_from_inside(request: HttpRequest) -> bool:
    """Tell whether the client's address may read the metrics."""
    if not settings.HOLDPOINT_METRICS_NETWORKS:
        return not settings.HOLDPOINT_METRICS_TOKEN and is_local(request)
    try:
        client = ip_address(trusted_address(request))
    except ValueError:  # no trusted address
        return False
    return any(client in ip_network(network) for network in settings.HOLDPOINT_METRICS_NETWORKS)


def _database() -> Iterator[Metric]:
    """Yield the database's metrics, or only that it does not answer; simultaneous scrapes get the same answer."""
    found = bounded.ask({"metrics": _read}, within=LONGEST, late=[_up("database", 0)])
    yield from found["metrics"]


def _read() -> list[Metric]:
    """Read all metrics in one transaction, which writes nothing and so holds nobody back."""
    until, found = time.monotonic() + ASKED, [_up("database", 1)]
    gauge = GaugeMetricFamily(
        "holdpoint_database_figures", "1 where these figures are told, 0 where PostgreSQL did not.", labels=["family"]
    )
    try:
        with transaction.atomic():
            for asked, name in enumerate(FAMILIES):
                figures = _family(name, (until - time.monotonic()) / (len(FAMILIES) - asked))
                gauge.add_metric([name], bool(figures))
                found += figures
    except Error as error:
        log.warning("metrics.no_database", error=str(error) or type(error).__name__)
        return [_up("database", 0)]
    return [*found, gauge]


def _family(name: str, share: float) -> list[Metric]:
    """Read one kind of metrics, each of its statements in `share` seconds; none if one failed or no time is left."""
    timeout = int(min(share, STATEMENT) * 1000)
    if timeout < 1:  # 0 would be for ever
        log.warning("metrics.left_out", family=name, error="no time was left")
        return []
    run_sql(f"SET LOCAL statement_timeout = {timeout}", [], prepare=False)  # its first statement
    try:
        with transaction.atomic():
            return list(FAMILIES[name]())
    except Error as error:
        log.warning("metrics.left_out", family=name, error=str(error) or type(error).__name__)
        return []


def _delays() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "holdpoint_horizon_age_seconds",
        "Seconds for which an open transaction that wrote has held readers back, in whatever database of the server.",
        horizon_age().seconds,
    )


def _seals() -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "holdpoint_sealer_lag_seconds", "Age of the oldest event that could be sealed and is not.", sealer.lag()
    )


def _processes() -> Iterator[Metric]:
    if (age := SweeperPass.age()) is not None:
        yield GaugeMetricFamily("holdpoint_sweeper_age_seconds", "Seconds since the sweeper last finished a pass.", age)
    yield GaugeMetricFamily(
        "holdpoint_worker_processes", "Processes of workers that were heard of lately.", Worker.objects.there().count()
    )


def _runs() -> Iterator[Metric]:
    known, numbers, waits = registry.names(), Counter[tuple[str, str]](), dict[tuple[str], float]()
    for name, counts, longest in Run.objects.figures_by_agent():
        agent = name if name in known else OTHERS
        waits[agent,] = max(longest, waits.get((agent,), 0.0))
        for status, count in counts.items():
            numbers[agent, status] += count
    words = "Runs that have not ended, up to 5,000 of a status."
    yield _gauge("holdpoint_runs", words, ["agent", "status"], numbers.items())
    words = "For how long the run that is due longest waits for a worker."
    yield _gauge("holdpoint_run_due_seconds", words, ["agent"], waits.items())


def _gates() -> Iterator[Metric]:
    figures: dict[tuple[str, str, str], int] = {}
    for team, policy, number, overdue in Gate.objects.asking():
        figures |= {(team, policy, "open"): number, (team, policy, "overdue"): overdue}
    words = "Gates that ask, and those of them past their deadline."
    yield _gauge("holdpoint_gates", words, ["team", "policy", "state"], figures.items())
    unrun = {(team,): number for team, number in Unrun.objects.by_team()}
    words = "Approved gates of which nothing has run, minutes later."
    yield _gauge("holdpoint_gates_not_run", words, ["team"], unrun.items())


def _webhooks() -> Iterator[Metric]:
    figures = {
        ("pending",): Message.objects.pending().to_webhooks().count(),
        ("failed",): Message.objects.lately_failed(),
    }
    words = "Messages to webhooks that are to be sent, and of each webhook's last hundred those that failed."
    yield _gauge("holdpoint_deliveries", words, ["status"], figures.items())
    failing = Webhook.objects.failing().count()
    yield GaugeMetricFamily("holdpoint_webhooks_failing", "Webhooks to which the last message did not go.", failing)


def _notices() -> Iterator[Metric]:
    figures, failing = dict[tuple[str, str], int](), dict[tuple[str], float]()
    for channel, due, failed, since in ChannelState.objects.figures():
        figures |= {(channel, "due"): due, (channel, "failed"): failed}
        failing[channel,] = since
    words = "Messages to people, up to 5,000: those that are due and not sent, and those that failed within a day."
    yield _gauge("holdpoint_notices", words, ["channel", "status"], figures.items())
    words = "For how long a channel has reached nobody."
    yield _gauge("holdpoint_notice_channel_failing_seconds", words, ["channel"], failing.items())


FAMILIES: dict[str, Family] = {
    "delays": _delays, "seals": _seals, "processes": _processes, "runs": _runs, "gates": _gates,
    "webhooks": _webhooks, "notices": _notices,
}  # fmt: skip


def _broker() -> Iterator[Metric]:
    """Yield the queues' lengths and the canary's age, or only that Redis does not answer within two seconds each."""
    names = [*registry.queues(), settings.CELERY_TASK_DEFAULT_QUEUE]
    try:
        lengths = doorbell.waiting(names)
        age = canary_age(settings.REDIS_URL)
    except redis.RedisError:
        yield _up("redis", 0)
        return
    yield _up("redis", 1)
    waiting = {(name,): length for name, length in lengths.items()}
    words = "Messages that no worker has taken yet, by queue."
    yield _gauge("holdpoint_queue_messages", words, ["queue"], waiting.items())
    yield GaugeMetricFamily(
        "holdpoint_canary_age_seconds", "Seconds since a worker took a message of beat's; 60 is at least that.", age
    )


def _pool() -> Iterator[Metric]:
    """Yield the figures of this process's pool of PostgreSQL connections, as psycopg_pool counts them."""
    stats = connections["default"].pool.get_stats()  # type: ignore[attr-defined]
    names = {"most": "pool_max", "open": "pool_size", "idle": "pool_available"}
    sizes = {(state,): stats.get(name, 0) for state, name in names.items()}
    yield _gauge("holdpoint_pool_connections", "Connections of this process to PostgreSQL.", ["state"], sizes.items())
    waiting = stats.get("requests_waiting", 0)
    yield GaugeMetricFamily("holdpoint_pool_waiting", "Requests that wait for a connection now.", waiting)
    for name, words, figure in (
        ("holdpoint_pool_requests", "Times that a connection was asked for.", stats.get("requests_num", 0)),
        ("holdpoint_pool_wait_seconds", "Seconds waited for one.", stats.get("requests_wait_ms", 0) / 1000),
        ("holdpoint_pool_timeouts", "Times that none came in time.", stats.get("requests_errors", 0)),
    ):
        yield CounterMetricFamily(name, words, figure)


def _gauge(name: str, words: str, labels: list[str], figures: Iterable[tuple[Sequence[str], float]]) -> Metric:
    gauge = GaugeMetricFamily(name, words, labels=labels)
    for values, figure in figures:
        gauge.add_metric(values, figure)
    return gauge


def _up(server: str, value: int) -> Metric:
    words = {"database": "1 where PostgreSQL answers in time.", "redis": "1 where Redis answers."}
    return GaugeMetricFamily(f"holdpoint_{server}_up", words[server], value)
