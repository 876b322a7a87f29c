"""Beat's schedule; the tasks are in config.housekeeping and checkpoints.tasks."""

from typing import Any

from celery.schedules import crontab

from agents.ringing.ring_pauses import EXPIRES

CANARY_EVERY = 5.0  # seconds
PRUNE_EVERY = 30.0  # seconds after which a prune that was killed goes on
NEVER = 24  # as the hour of the nightly prune

SCHEDULE = {
    "canary": {
        "task": "config.housekeeping.sing",
        "schedule": CANARY_EVERY,
        "options": {"expires": EXPIRES},
    },
    "clear answers": {"task": "config.housekeeping.clear_answers", "schedule": crontab(hour="3", minute="57")},
    "clear drafts": {"task": "config.housekeeping.clear_drafts", "schedule": crontab(hour="3", minute="37")},
    "clear deliveries": {"task": "config.housekeeping.clear_deliveries", "schedule": crontab(hour="3", minute="47")},
    "clear sessions": {"task": "config.housekeeping.clear_sessions", "schedule": crontab(hour="3", minute="17")},
}


def build_schedule(*, prune_hour: int) -> dict[str, Any]:
    """Return the whole schedule, with the nightly prune at that hour (UTC)."""
    again: dict[str, Any] = {
        "task": "checkpoints.prune",
        "schedule": PRUNE_EVERY,
        "options": {"expires": EXPIRES},
    }
    nightly = {"task": "checkpoints.prune_nightly", "schedule": crontab(hour=str(prune_hour), minute="23")}
    return SCHEDULE | {"go on pruning": again} | ({} if prune_hour == NEVER else {"prune": nightly})
