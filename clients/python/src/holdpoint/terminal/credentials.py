"""Keeps the tokens of `holdpoint login`, by server, in a file that only its owner can read."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import NotConfigured
from ..sending import Api, Habits

OTHERS = 0o077
NO_SERVER = "Say which server: `holdpoint login https://…`, or set HOLDPOINT_URL."
NO_TOKEN = "There is no token for {url}: run `holdpoint login {url}`, or set HOLDPOINT_TOKEN."  # noqa: S105 - no token


@dataclass(frozen=True)
class Server:
    """A server and the token for it; `user` is the person's name where it is known."""

    url: str
    token: str = field(repr=False)
    user: str = ""

    def api(self, *, patience: float = 15.0) -> Api:
        """Return the requests to it, tried again for so many seconds."""
        return Api(Habits(patience=patience))


def path() -> Path:
    """Return the file."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home) / "holdpoint" / "credentials.json"


def address(url: str) -> str:
    """Return a server's address in one form. Raises NotConfigured."""
    found = url.strip().rstrip("/").removesuffix("/api")
    if not found.startswith(("http://", "https://")) or not urlsplit(found).hostname:
        raise NotConfigured(f"{url!r} is no address of a server: it begins with http:// or https://.")
    return found


def server(url: str = "") -> Server:
    """Return the server to talk to: HOLDPOINT_URL and HOLDPOINT_TOKEN come first. Raises NotConfigured."""
    kept = _read()
    found = url or os.environ.get("HOLDPOINT_URL", "") or str(kept.get("default", ""))
    if not found:
        raise NotConfigured(NO_SERVER)
    found = address(found)
    mine: dict[str, Any] = kept.get("servers", {}).get(found, {})
    given = os.environ.get("HOLDPOINT_TOKEN", "")
    if given:
        return Server(found, given)
    if not mine.get("token"):
        raise NotConfigured(NO_TOKEN.format(url=found))
    return Server(found, str(mine["token"]), str(mine.get("user", "")))


def keep(login: Server) -> Path:
    """Store the token, for this server, which is the default from now on."""
    everything = _read()
    servers = {**everything.get("servers", {}), login.url: {"token": login.token, "user": login.user}}
    return _write({"default": login.url, "servers": servers})


def forget(url: str) -> None:
    """Remove the token for this server."""
    everything = _read()
    servers = {other_url: entry for other_url, entry in everything.get("servers", {}).items() if other_url != url}
    default = everything.get("default", "")
    _write({"default": next(iter(servers), "") if default == url else default, "servers": servers})


def _read() -> dict[str, Any]:
    place = path()
    try:
        with place.open(encoding="utf-8") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & OTHERS:
                raise NotConfigured(f"Others can read {place}, which holds tokens: run `chmod 600 {place}`.")
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise NotConfigured(f"{place} cannot be read ({error}): remove it, and run `holdpoint login`.") from None
    return found if isinstance(found, dict) else {}


def _write(everything: dict[str, Any]) -> Path:
    """Replace the file in one step; it is never readable for others, not even while it is written."""
    place = path()
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()
    return place
