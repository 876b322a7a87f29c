"""Who has a gate in sight, told to the others who have: a courtesy that is never lost money, so that it is no event.

The rows are in PostgreSQL. That they changed goes through Redis, as the number of a gate and nothing else, to the
pages of every web process; a Redis that is down makes it late, since a page reads the rows whenever it is drawn.
"""

from __future__ import annotations

import asyncio
import contextlib

import redis.asyncio
import structlog
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth.models import User

from checkpoints import rings

from .models import Looking

PAUSE = 1.0  # seconds before a lost connection is tried again
DIGITS = 19  # of the largest number of a gate
log = structlog.get_logger(__name__)


def channel() -> str:
    """The channel's name; see checkpoints.rings."""
    return f"{rings.channel()}.looking"


def look(socket: str, gate_id: int, *, by: User) -> None:
    """Note that the page behind a socket has this gate in sight. Whether the person may see it the caller has asked."""
    for changed in Looking.objects.look(gate_id, by=by, socket=socket):
        rings.publish(channel(), str(changed))


def away(socket: str) -> None:
    """Note that the page has no gate in sight any more."""
    for changed in Looking.objects.away(socket):
        rings.publish(channel(), str(changed))


async def tell() -> None:
    """Tell the pages of this process, until cancelled, through every loss of the connection."""
    while True:
        client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1)
        try:
            async with client.pubsub() as listened:
                await listened.subscribe(channel())
                async for message in listened.listen():
                    await _hand_on(message)
        except (redis.RedisError, OSError, TimeoutError) as error:
            log.info("presence.deaf", error=str(error))
        finally:
            with contextlib.suppress(redis.RedisError, OSError):
                await client.aclose()
        await asyncio.sleep(PAUSE)


async def _hand_on(message: dict[str, object]) -> None:
    said, layer = message.get("data"), get_channel_layer()
    if message.get("type") != "message" or not isinstance(said, bytes) or layer is None:
        return
    if not said.isdigit() or len(said) > DIGITS:  # whoever can publish must not end the listening
        return
    await layer.group_send(f"gate.{int(said)}", {"type": "looked", "gate": int(said)})
