"""Sends one message once, until one deadline. The result is a code that pages show, never an exception.

A second lookup of a name may give another address (DNS rebinding), so there is only one, and the connection goes to an
address that was checked. TLS still verifies the name. Every read and write ends at one deadline, since a receiver that
sends a byte just before each timeout would keep a worker for ever.

Also here: secrets of webhooks, signatures by them (Standard Webhooks, symmetric: HMAC-SHA256), and texts that are
sealed.

Signing needs the secret itself, so a digest of it would not do. Yet none is stored: it is derived from the
installation's secret key and a random salt in the webhook's row whenever it is needed, so that a copy of the database
can sign nothing. The row also names the key, so that a change of the secret key is noticed instead of signing wrongly.

A text that must come back in full, as an address that is a secret itself, is sealed before it is stored (Fernet), by a
key derived from the same one. While an earlier key is among HOLDPOINT_OLD_SECRET_KEYS, its webhooks go on, and what was
sealed with it can be opened.
"""

from __future__ import annotations

import email.utils
import secrets
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.utils.crypto import salted_hmac
from standardwebhooks.webhooks import Webhook as Signer

from .targets import AddressRefused, Networks, is_within, resolve_addresses, target_of

CONNECT = 5.0  # seconds for a lookup, and for a connection to one address
DELIVERED, GONE = "delivered", "gone"
ANSWER = 8192  # bytes of an answer that are read, so that a receiver can finish a short one
AFTERWARDS = 1.0  # seconds for reading them
ALWAYS = {"user-agent": "Holdpoint-Webhooks/1", "content-type": "application/json"}


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


@dataclass(frozen=True)
class SendResult:
    """The result of sending one message."""

    word: str
    status: int | None = None  # of the answer
    retry_after: float | None = None  # seconds that the receiver asks for
    answer: bytes = b""  # the beginning of its body

    @property
    def delivered(self) -> bool:
        return self.word == DELIVERED


def send(url: str, body: bytes, headers: Mapping[str, str], *, most: int = ANSWER) -> SendResult:
    """POST the message, and judge it by the answer's status alone. Takes no longer than the setting says.

    `most`: bytes of the answer's body that are read, at least.
    """
    target = target_of(url)
    if target is None:
        return SendResult("bad_address")
    line = OutboundConnection(secure=target.secure, deadline=time.monotonic() + settings.HOLDPOINT_WEBHOOKS_TIMEOUT)
    values = {"host": target.authority, "content-length": str(len(body)), **ALWAYS, **headers}
    try:
        with (
            httpcore.ConnectionPool(ssl_context=_trusted(), network_backend=line) as pool,
            pool.stream("POST", url, headers=list(values.items()), content=body) as answer,
        ):
            line.deadline = min(line.deadline, time.monotonic() + AFTERWARDS)
            heard = _hear_out(answer, most)
            return replace(judged(answer.status, answer.headers, now=time.time()), answer=heard)
    except NotSent as reason:
        return SendResult(reason.word)
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        return SendResult(_word(error))


def judged(status: int, headers: Sequence[tuple[bytes, bytes]], *, now: float) -> SendResult:
    """Return the result that an answer's status means. Pure."""
    if 200 <= status < 300:
        return SendResult(DELIVERED, status)
    if status == httpx.codes.GONE:
        return SendResult(GONE, status)
    if 300 <= status < 400:
        return SendResult("redirected", status)
    wait = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    return SendResult(f"http_{status}", status, _seconds(wait.decode("latin-1").strip(), now))


def _seconds(text: str, now: float) -> float | None:
    """Parse Retry-After (RFC 9110, 10.2.3), seconds or a date, into seconds; None for anything else."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    found = email.utils.parsedate_tz(text)
    try:
        return max(email.utils.mktime_tz(found) - now, 0.0) if found else None
    except (ValueError, OverflowError):
        return None


def _word(error: Exception) -> str:
    if isinstance(error, httpcore.TimeoutException):
        return "timeout"
    if isinstance(error, httpcore.ConnectError):
        return "refused"
    return "bad_answer" if isinstance(error, httpcore.ProtocolError) and not _cut(error) else "cut"


def _cut(error: Exception) -> bool:
    return isinstance(error, httpcore.RemoteProtocolError) and "disconnected" in str(error)


def _hear_out(answer: httpcore.Response, most: int) -> bytes:
    """Read the beginning of the answer's body, ignoring errors: the status counts."""
    heard = bytearray()
    try:
        for part in answer.iter_stream():
            heard += part
            if len(heard) >= most:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        pass
    return bytes(heard)


@cache
def _trusted() -> ssl.SSLContext:
    """Return a context that trusts the usual certificates and those that a setting adds. No environment, no proxy."""
    context = httpx.create_ssl_context(trust_env=False)
    if settings.HOLDPOINT_WEBHOOKS_CA:
        context.load_verify_locations(cafile=settings.HOLDPOINT_WEBHOOKS_CA)
    return context


PREFIX = "whsec_"
SALT = 32  # bytes


def seal(text: str) -> str:
    """Encrypt a text; each time it reads differently."""
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str | None:
    """Return the text; None where the key that it was sealed with is gone, or it was altered."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        return None


def _box() -> MultiFernet:
    return _cipher_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(4)
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    derived = (salted_hmac("holdpoint.sealed", b"", secret=key, algorithm="sha256").digest() for key in keys)
    return MultiFernet([Fernet(urlsafe_b64encode(item)) for item in derived])


def make_secret() -> tuple[str, bytes, str]:
    """Make a new secret: (name of the key, salt, secret)."""
    salt = secrets.token_bytes(SALT)
    return _name(settings.SECRET_KEY), salt, _derived(settings.SECRET_KEY, salt)


def secret_of(key: str, salt: bytes) -> str | None:
    """Return the secret that was made with the key of this name; None where that key is no longer known."""
    for known in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        if _name(known) == key:
            return _derived(known, salt)
    return None


def headers(message: str, body: bytes, *, at: datetime, by: Sequence[str]) -> dict[str, str]:
    """Return the headers of a message, signed with each of these secrets."""
    signed = " ".join(Signer(secret).sign(message, at, body.decode()) for secret in by)
    return {"webhook-id": message, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signed}


def _derived(key: str, salt: bytes) -> str:
    return (
        PREFIX
        + b64encode(salted_hmac("holdpoint.webhook.secret", salt, secret=key, algorithm="sha256").digest()).decode()
    )


def _name(key: str) -> str:
    return salted_hmac("holdpoint.webhook.key", b"", secret=key, algorithm="sha256").hexdigest()[:16]
