"""When beat asks for what; the tasks are in config.housekeeping."""

from celery.schedules import crontab

CANARY_EVERY = 5.0  # seconds

SCHEDULE = {
    "canary": {
        "task": "config.housekeeping.sing",
        "schedule": CANARY_EVERY,
        # While no worker is there, old canaries must not pile up.
        "options": {"expires": 2 * CANARY_EVERY},
    },
    "clear drafts": {"task": "config.housekeeping.clear_drafts", "schedule": crontab(hour="3", minute="37")},
    "clear sessions": {"task": "config.housekeeping.clear_sessions", "schedule": crontab(hour="3", minute="17")},
}
