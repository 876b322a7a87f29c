"""Stores the counts of tries of passwords and codes, of all web processes together, in Redis.

They are JSON: what comes back from there is only data, and never code to run. Without Redis nobody signs in (503), as
nothing would limit the guesses.
"""

from __future__ import annotations

import json
from typing import Any


def in_redis(url: str) -> dict[str, Any]:
    """Return the settings of Django's cache that keeps them."""
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": url,
        "KEY_PREFIX": "holdpoint",
        "OPTIONS": {
            "serializer": "config.sign_in.shared_counts.JsonSerializer",
            "socket_connect_timeout": 2,
            "socket_timeout": 2,
        },
    }


class JsonSerializer:
    """Writes a value of Django's cache as JSON, where Django would pickle it."""

    def dumps(self, value: Any) -> bytes:
        """Return the value as bytes."""
        return json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Return the value of the bytes. Raises ValueError for anything but JSON."""
        return json.loads(data)
