"""Metrics from PostgreSQL, queried at each scrape, and reported as missing where it does not answer in time.

The statements run in a thread of their own, so that neither a server that stops in the middle of an answer nor an
exhausted pool delays the scrape: the process's own counts are reported all the same. Each statement reads along an
index and its count is bounded, so that a scrape costs the same at any number of events and runs. One that fails, or
waits for a lock, loses only its own figures: each has at most its share of the time that is left, and
holdpoint_database_figures says which are missing, since an alert does not fire on a missing figure.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import structlog
from django.db import Error, transaction
from prometheus_client.core import GaugeMetricFamily, Metric

from agents.definition import registry
from agents.models import SweeperPass, Worker
from approvals.models import ChannelState, Delivery, Gate, Unrun, Webhook
from checkpoints.audit import sealer
from checkpoints.events.commit_order import horizon_age
from checkpoints.events.tailer import OTHERS
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from config.health.bounded_checks import BoundedChecks

STATEMENT = 1.0  # seconds for one at most
ASKED = 1.9  # seconds after which no more is asked for
LONGEST = 3.0  # seconds for all of them
Family = Callable[[], Iterable[Metric]]
bounded = BoundedChecks[list[Metric]]()
log = structlog.get_logger(__name__)


def collect() -> Iterator[Metric]:
    """Yield the database's metrics, or only that it does not answer; simultaneous scrapes get the same answer."""
    found = bounded.ask({"metrics": _read}, within=LONGEST, late=[_up(0)])
    yield from found["metrics"]


def _read() -> list[Metric]:
    """Read all metrics in one transaction, which writes nothing and so holds nobody back."""
    until, found = time.monotonic() + ASKED, [_up(1)]
    gauge = GaugeMetricFamily(
        "holdpoint_database_figures", "1 where these figures are told, 0 where PostgreSQL did not.", labels=["family"]
    )
    try:
        with transaction.atomic():
            for asked, family in enumerate(FAMILIES):
                figures = _family(family, (until - time.monotonic()) / (len(FAMILIES) - asked))
                gauge.add_metric([_name(family)], bool(figures))
                found += figures
    except Error as error:
        log.warning("metrics.no_database", error=str(error) or type(error).__name__)
        return [_up(0)]
    return [*found, gauge]


def _family(read: Family, share: float) -> list[Metric]:
    """Read one kind of metrics, each of its statements in `share` seconds; none if one failed or no time is left."""
    timeout = int(min(share, STATEMENT) * 1000)
    if timeout < 1:  # 0 would be for ever
        log.warning("metrics.left_out", family=_name(read), error="no time was left")
        return []
    run_sql(f"SET LOCAL statement_timeout = {timeout}", [], prepare=False)  # its first statement
    try:
        with transaction.atomic():
            return list(read())
    except Error as error:
        log.warning("metrics.left_out", family=_name(read), error=str(error) or type(error).__name__)
        return []


def _name(family: Family) -> str:
    return family.__name__.strip("_")


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
    number = GaugeMetricFamily(
        "holdpoint_runs", "Runs that have not ended, up to 5,000 of a status.", labels=["agent", "status"]
    )
    due = GaugeMetricFamily(
        "holdpoint_run_due_seconds", "For how long the run that is due longest waits for a worker.", labels=["agent"]
    )
    known, numbers, waits = registry.names(), Counter[tuple[str, str]](), dict[str, float]()
    for name, counts, longest in Run.objects.figures_by_agent():
        agent = name if name in known else OTHERS
        waits[agent] = max(longest, waits.get(agent, 0.0))
        for status, count in counts.items():
            numbers[agent, status] += count
    for labels, count in numbers.items():
        number.add_metric(labels, count)
    for agent, longest in waits.items():
        due.add_metric([agent], longest)
    yield number
    yield due


def _gates() -> Iterator[Metric]:
    gates = GaugeMetricFamily(
        "holdpoint_gates", "Gates that ask, and those of them past their deadline.", labels=["team", "policy", "state"]
    )
    for team, policy, number, overdue in Gate.objects.asking():
        gates.add_metric([team, policy, "open"], number)
        gates.add_metric([team, policy, "overdue"], overdue)
    yield gates
    unrun = GaugeMetricFamily(
        "holdpoint_gates_not_run", "Approved gates of which nothing has run, minutes later.", labels=["team"]
    )
    for team, number in Unrun.objects.by_team():
        unrun.add_metric([team], number)
    yield unrun


def _webhooks() -> Iterator[Metric]:
    deliveries = GaugeMetricFamily(
        "holdpoint_deliveries",
        "Messages to webhooks that are to be sent, and of each webhook's last hundred those that failed.",
        labels=["status"],
    )
    deliveries.add_metric(["pending"], Delivery.objects.pending().count())
    deliveries.add_metric(["failed"], Delivery.objects.lately_failed())
    yield deliveries
    failing = Webhook.objects.failing().count()
    yield GaugeMetricFamily("holdpoint_webhooks_failing", "Webhooks to which the last message did not go.", failing)


def _notices() -> Iterator[Metric]:
    notices = GaugeMetricFamily(
        "holdpoint_notices",
        "Messages to people, up to 5,000: those that are due and not sent, and those that failed within a day.",
        labels=["channel", "status"],
    )
    failing = GaugeMetricFamily(
        "holdpoint_notice_channel_failing_seconds", "For how long a channel has reached nobody.", labels=["channel"]
    )
    for channel, due, failed, since in ChannelState.objects.figures():
        notices.add_metric([channel, "due"], due)
        notices.add_metric([channel, "failed"], failed)
        failing.add_metric([channel], since)
    yield notices
    yield failing


def _up(value: int) -> Metric:
    return GaugeMetricFamily("holdpoint_database_up", "1 where PostgreSQL answers in time.", value)


FAMILIES = (_delays, _seals, _processes, _runs, _gates, _webhooks, _notices)
