"""Celery messages by Redis: the broker's transport, the canary that shows they arrive, and beat's schedule."""
