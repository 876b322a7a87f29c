"""Settings from the environment, read strictly: every junk value is reported, all at once, in plain words.

A reader never raises. It notes what is wrong and returns something harmless, so that one start reports
every mistake; `refuse_junk` ends the process when there is any. Each name that was asked for is remembered,
so that a misspelt HOLDPOINT_ variable is refused too, instead of being quietly without effect.
"""

from __future__ import annotations

import difflib
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

PREFIX = "HOLDPOINT_"
TEMPLATE = "change-me"  # what .env.example has where a secret is to be filled in
OF_CLIENTS = frozenset({"HOLDPOINT_URL", "HOLDPOINT_TOKEN"})  # read by clients/python, in the same shell maybe
KEY_LENGTH, KEY_LETTERS = 32, 8  # characters of a key, and different ones among them, at least
KEY_P256 = 43  # letters of a private key of that curve in base64url
ORDER_P256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})


class EnvironmentReader:
    """Reads one mapping of variables."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.known: set[str] = set()
        self.complaints: list[str] = []

    def text(self, name: str, default: str = "", *, required: str = "") -> str:
        """Return the variable; if it is unset or empty, complain with the reason `required`, if given."""
        self.known.add(name)
        value = self.variables.get(name, "")
        if required and not value:
            self.complaints.append(f"{name} is not set: {required}.")
        return value or default

    def key(self, name: str, *, required: str = "") -> str:
        """Return a secret key; "" where there is none, with a complaint if it is required."""
        value = self.text(name, required=required)
        self._refuse_guessable(name, [value] if value else [])
        return value

    def keys(self, name: str) -> list[str]:
        """Return secret keys written with commas."""
        values = self.words(name)
        self._refuse_guessable(name, values)
        return values

    def _refuse_guessable(self, name: str, keys: Sequence[str]) -> None:
        """Complain of a key that could be guessed, without repeating it: complaints are logged."""
        if any(len(key) < KEY_LENGTH or len(set(key)) < KEY_LETTERS or TEMPLATE in key for key in keys):
            self.complaints.append(
                f"{name} holds a key that could be guessed; make one of at least {KEY_LENGTH} characters with "
                "`openssl rand -base64 48`."
            )

    def vapid_key(self, name: str) -> str:
        """Return a private key of the curve P-256 as base64url of its 32 bytes (RFC 8292 calls its use VAPID)."""
        value = self.text(name).rstrip("=")
        try:
            number = int.from_bytes(urlsafe_b64decode(f"{value}=")) if len(value) == KEY_P256 else 0
        except ValueError:
            number = 0
        if value and not 0 < number < ORDER_P256:
            self.complaints.append(f"{name} is no key; write what `python manage.py vapid` prints.")
            return ""
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """Return a yes or a no."""
        value = self.text(name).lower()
        if value and value not in YES | NO:
            self.complaints.append(f"{name} is {value!r}; write 1 or 0.")
        return value in YES if value in YES | NO else default

    def number(self, name: str, default: float, *, least: float = 0.0, most: float = 1e12) -> float:
        """Return a finite number within its bounds."""
        value = self.text(name)
        if not value:
            return default
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not least <= number <= most:
            self.complaints.append(f"{name} is {value!r}; write a number from {least:g} to {most:g}.")
            return default
        return number

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 10**12) -> int:
        """Return a whole number within its bounds."""
        number = self.number(name, default, least=least, most=most)
        if number != int(number):
            self.complaints.append(f"{name} is {self.variables[name]!r}; write a whole number.")
            return default
        return int(number)

    def words(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Return a list written with commas."""
        return [word.strip() for word in self.text(name).split(",") if word.strip()] or list(default)

    def pairs(self, name: str) -> dict[str, str]:
        """Return pairs written `value=Team,value=Team`."""
        pairs = {}
        for word in self.words(name):
            value, equals, team = (part.strip() for part in word.partition("="))
            if not (value and equals and team):
                self.complaints.append(f"{name} holds {word!r}; write pairs like finance=Finance, with commas.")
            pairs[value] = team
        return pairs

    def numbers(self, name: str, default: Sequence[float], *, most: float = 1e6) -> list[float]:
        """Return a list of numbers written with commas, each above 0."""
        values = []
        for word in self.words(name, [str(item) for item in default]):
            try:
                value = float(word)
            except ValueError:
                value = float("nan")
            if not 0 < value <= most:
                self.complaints.append(f"{name} holds {word!r}; write numbers above 0, with commas.")
                return list(default)
            values.append(value)
        return values

    def file(self, name: str) -> str:
        """Return the path of a file that is there, or nothing."""
        value = self.text(name)
        if value and not Path(value).is_file():
            self.complaints.append(f"{name} is {value!r}; write the path of a file that is there.")
            return ""
        return value

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """Return one of `choices`."""
        value = self.text(name, default)
        if value not in choices:
            self.complaints.append(f"{name} is {value!r}; write one of {', '.join(choices)}.")
            return default
        return value

    def origins(self, name: str, default: Sequence[str]) -> list[str]:
        """Return a list of origins as browsers write them: scheme, host and port where it is not the usual one."""
        values = self.words(name, default)
        for value in values:
            parts = urlsplit(value)
            if (
                parts.scheme not in ("http", "https")
                or not parts.hostname
                or value != f"{parts.scheme}://{parts.netloc}"
            ):
                self.complaints.append(f"{name} holds {value!r}; write origins like https://holdpoint.example.")
        return values

    def networks(self, name: str) -> list[str]:
        """Return a list of networks in CIDR notation."""
        values = self.words(name)
        for value in values:
            try:
                ip_network(value)
            except ValueError:
                self.complaints.append(f"{name} holds {value!r}; write networks like 10.0.0.0/8 or fd00::/8.")
                return []
        return values

    def proxies(self, name: str) -> None:
        """Complain of values other than addresses and networks: trusting all would let a header fake any address."""
        for value in self.words(name):
            try:
                everybody = ip_network(value).prefixlen == 0
            except ValueError:
                everybody = True
            if everybody:
                words = "name your proxies by addresses or networks, like 172.18.0.1 or 10.42.0.0/16"
                self.complaints.append(f"{name} holds {value!r}; {words}.")

    def url(self, name: str, schemes: Sequence[str], default: str = "", *, required: str = "") -> str:
        """Return a URL with one of `schemes`."""
        value = self.text(name, default, required=required)
        if TEMPLATE in value:  # a password, mostly, which is not repeated
            self.complaints.append(
                f"{name} still holds the {TEMPLATE} of .env.example; put a password of your own there."
            )
            return default
        if value and urlsplit(value).scheme not in schemes:
            self.complaints.append(f"{name} must start with {' or '.join(f'{scheme}://' for scheme in schemes)}.")
            return default
        return value

    def database(self, name: str, *, required: str) -> dict[str, Any]:
        """Return Django's description of a PostgreSQL database; the URL's query becomes connection options."""
        parts = urlsplit(self.url(name, ("postgres", "postgresql"), required=required))
        try:
            port = str(parts.port or "")
        except ValueError:
            self.complaints.append(f"{name} has a port that is not a number.")
            port = ""
        database = unquote(parts.path.lstrip("/"))
        if parts.scheme and not database:
            self.complaints.append(f"{name} names no database; write postgres://user@host/database.")
        return {
            "ENGINE": "checkpoints.postgresql",
            "NAME": database or "unset",
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": port,
            "OPTIONS": dict(parse_qsl(parts.query)),
        }

    @staticmethod
    def broker(redis_url: str) -> str:
        """Return the URL of a Redis as Celery writes it: a unix socket has another scheme there."""
        parts = urlsplit(redis_url)
        if parts.scheme != "unix":
            return redis_url
        return f"redis+socket://{unquote(parts.path)}?virtual_host={dict(parse_qsl(parts.query)).get('db', '0')}"

    def refuse_junk(self) -> None:
        """End the process, with one sentence for each mistake, where there is any."""
        # Kubernetes gives a pod the address of each service in variables; those of holdpoint-web are
        # HOLDPOINT_WEB_SERVICE_HOST, HOLDPOINT_WEB_PORT, HOLDPOINT_WEB_PORT_8000_TCP_ADDR etc.
        ending = "_SERVICE_HOST"
        services = [name.removesuffix(ending) for name in self.variables if name.endswith(ending)]
        of_services = tuple(f"{service}{part}" for service in services for part in ("_SERVICE_", "_PORT_"))
        for name in sorted(set(self.variables) - self.known - OF_CLIENTS):
            if name.startswith(PREFIX) and not f"{name}_".startswith(of_services):
                close = difflib.get_close_matches(name, self.known, 1)
                self.complaints.append(f"{name} is no setting{f'; is {close[0]} meant?' if close else '.'}")
        if self.complaints:
            raise SystemExit("\n".join(self.complaints))
