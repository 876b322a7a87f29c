"""Connects for an outgoing message: to an address that was checked, until one deadline.

A second lookup of a name may give another address (DNS rebinding), so there is only one, and the connection goes to an
address that was checked. TLS still verifies the name. Every read and write ends at one deadline, since a receiver that
sends a byte just before each timeout would keep a worker for ever.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

import httpcore
from django.conf import settings

from .addresses import AddressRefused, Networks, is_within, resolve_addresses

CONNECT = 5.0  # seconds for a lookup, and for a connection to one address


class NotSent(Exception):
    """The message was not sent; `word` is the code of the reason."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class OutboundConnection(httpcore.NetworkBackend):
    """One connection, until `deadline` by the monotonic clock. Without `secure` only to networks that are set."""

    def __init__(self, *, secure: bool, deadline: float) -> None:
        self.secure = secure
        self.deadline = deadline
        self.plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to one of the host's addresses, if all of them are allowed. Raises NotSent."""
        failed: Exception | None = None
        for address in self._addresses(host, port):
            try:
                stream = self.plain.connect_tcp(address, port, timeout=min(self.remaining(), CONNECT))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return DeadlineStream(stream, self)
        raise failed or NotSent("dns_failed")

    def remaining(self) -> float:
        """Return the seconds until the deadline. Raises ReadTimeout after it."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("The receiver took too long.")
        return left

    def _addresses(self, host: str, port: int) -> list[str]:
        inside = settings.HOLDPOINT_WEBHOOKS_PRIVATE
        found = looked_up(host, port, inside, seconds=min(self.remaining(), CONNECT))
        if not self.secure and not all(is_within(ip_address(item), inside) for item in found):
            raise NotSent("not_https")
        return found


def looked_up(host: str, port: int, inside: Networks, *, seconds: float) -> list[str]:
    """Look up the host's addresses, within `seconds`: the resolver has no timeout of its own. Raises NotSent."""
    aside = ThreadPoolExecutor(1)
    try:
        return aside.submit(resolve_addresses, host, port, inside=inside).result(seconds)
    except AddressRefused as refused:
        raise NotSent(refused.code) from refused
    except TimeoutError as error:
        raise NotSent("dns_failed") from error
    finally:
        aside.shutdown(wait=False)


class DeadlineStream(httpcore.NetworkStream):
    """A stream on which every wait ends at the connection's deadline."""

    def __init__(self, stream: httpcore.NetworkStream, line: OutboundConnection) -> None:
        self.stream = stream
        self.line = line

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read up to `max_bytes` bytes."""
        return self.stream.read(max_bytes, timeout=self.line.remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of the bytes."""
        self.stream.write(buffer, timeout=self.line.remaining())

    def close(self) -> None:
        """Close the stream."""
        self.stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Encrypt the stream, if the receiver has a valid certificate for the name. Raises NotSent."""
        try:
            return DeadlineStream(
                self.stream.start_tls(ssl_context, server_hostname, timeout=self.line.remaining()), self.line
            )
        except httpcore.ConnectError as error:
            raise NotSent("tls_failed") from error

    def get_extra_info(self, info: str) -> Any:
        """Return the information of the wrapped stream."""
        return self.stream.get_extra_info(info)
