"""Messages to pages that are no events: a number through Redis that says only what to read again.

The rows of each kind are in PostgreSQL, and a page reads them whenever it is drawn. So an outage of Redis delays them
and loses nothing, and whoever can publish learns and changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib

import redis.asyncio
import structlog
from channels.layers import get_channel_layer
from django.conf import settings

from checkpoints.events import wakeup

PAUSE = 1.0  # seconds before a lost connection is tried again
DIGITS = 19  # of the largest number
# Kind -> (the group of pages that hear of it, without the number; the method of approvals.live.consumer).
LOOKING, SPOKEN = "looking", "spoken"
KINDS = {LOOKING: ("gate", "looked"), SPOKEN: ("run", "spoke")}
log = structlog.get_logger()


def channel(kind: str) -> str:
    """Return the channel's name; see checkpoints.events.wakeup."""
    return f"{wakeup.channel()}.{kind}"


def whisper(kind: str, number: int) -> None:
    """Send a number to the pages of every web process. Never raises."""
    wakeup.publish(channel(kind), str(number))


async def tell() -> None:
    """Pass messages on to the pages of this process, until cancelled; reconnects after each loss of the connection."""
    while True:
        client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1)
        try:
            async with client.pubsub() as listened:
                await listened.subscribe(*map(channel, KINDS))
                async for message in listened.listen():
                    await hand_on(message)
        except (redis.RedisError, OSError) as error:
            log.info("whispers.deaf", error=str(error))
        finally:
            with contextlib.suppress(redis.RedisError, OSError):
                await client.aclose()
        await asyncio.sleep(PAUSE)


async def hand_on(message: dict[str, object]) -> None:
    """Pass one message of Redis on to its pages; ignore anything else."""
    said, where, layer = message.get("data"), message.get("channel"), get_channel_layer()
    if message.get("type") != "message" or not isinstance(said, bytes) or not isinstance(where, bytes) or layer is None:
        return
    kind = where.decode(errors="replace").rpartition(".")[2]
    if kind not in KINDS or not said.isdigit() or len(said) > DIGITS:  # a bad message must not end the listening
        return
    group, method = KINDS[kind]
    await layer.group_send(f"{group}.{int(said)}", {"type": method, "number": int(said)})
