"""What the assistant's tools do: with files in its folder, by commands there, and on the web.

No path leads out of the folder, and no link is followed. Every refusal is an OSError whose sentence the model is told.

A command runs without a shell. It gets a few plain variables of this process's environment, so no key and no password;
a session of its own, whose whole group is killed at its end or after its time; and no input. When the worker dies it is
killed too, where `setpriv` can tie it. It runs as the worker's own account, and may read all that this account may:
docs/run.md says how to prevent that.

An address is asked by one GET to exactly the approved host, and never inside. A redirect is reported and not followed,
since only this address was approved. The host is looked up once, and the address that was checked is connected to. A
GET is safe and may be repeated (RFC 9110 §9.2), so any outcome is told to the model and no effect is left unknown.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
from django.conf import settings
from pydantic import Field

from agents.effects.classify_failure import trusted
from agents.examples.nouns import Noun
from approvals.outbound.targets import AddressRefused, resolve_address
from checkpoints.values import artifacts

LARGEST_FILE = 2_000_000  # bytes that are read or written over
READING, SHOWN = 24_000, 8_000  # characters of a file that the model gets, and that a gate shows
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")  # of the environment
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
HEAD, TAIL = 10_000, 6_000  # bytes of a command's output that the model gets, from its beginning and from its end
TIE = ("--pdeathsig", "KILL")  # of util-linux's setpriv: prctl(2), PR_SET_PDEATHSIG
LARGEST_BODY = 1_000_000  # bytes that are read of an answer
ANSWER = 16_000  # characters of it that the model gets
SECONDS = 30.0  # for all of it
PLAIN = "identity"  # the only coding: a packed body says nothing of how much it holds
TEXTS = ("text/", "application/json", "application/xml", "application/javascript")
CHARSETS = ("utf-8", "iso-8859-1", "windows-1252", "shift_jis", "euc-jp", "gb18030")  # of which none can raise


class Replaced(Noun):
    """What a file holds over which a call wants to write, as the reviewer is shown it."""

    call: str  # the call's id
    path: str
    digest: str  # SHA-256 in hex; "" where there is no such file
    text: str = ""  # its beginning; empty where it is no text


class Written(Noun):
    """What writing a file changed, for whoever takes it back."""

    path: str
    digest: str  # SHA-256 of what was written
    before: dict[str, Any] | None = None  # the artifact of what was there; None where nothing was
    folders: list[str] = Field(default_factory=list)  # that were made for it, the outermost first


def open_home() -> str:
    """Return the resolved path of HOLDPOINT_ASSISTANT_FOLDER; make the folder if it is missing."""
    path = Path(settings.HOLDPOINT_ASSISTANT_FOLDER)
    path.mkdir(parents=True, exist_ok=True)
    return str(path.resolve())


def check_home(folder: str, refusal: type[Exception]) -> None:
    """Raise `refusal` where a run's folder is not the setting's: somebody changed either of them."""
    if folder != (home := open_home()):
        raise refusal(f"This run works in {folder}, and HOLDPOINT_ASSISTANT_FOLDER is {home} now; nothing was done.")


def look_up(folder: str, tool: str, arguments: dict[str, Any]) -> str:
    """Make a call that nobody has to be asked about, and return what it gives."""
    if tool == "list_files":
        return list_folder(folder, **arguments)
    return read_text(folder, **arguments) if tool == "read_file" else fetch_address(**arguments)


def list_folder(folder: str, path: str) -> str:
    """Return a line for each entry of a folder: folders have a / at their end, files have their size."""
    entries = sorted(_locate(folder, path).iterdir())
    lines = [f"{file.name}/" if file.is_dir() else f"{file.name}  {file.lstat().st_size:,} bytes" for file in entries]
    return _clip(os.fsencode("\n".join(lines) or "(nothing is in it)").decode(errors="replace"))


def read_text(folder: str, path: str) -> str:
    """Return as much of a file's text as the model gets at once."""
    content = _content(folder, path)
    if content is None:
        raise OSError(f"There is no file {path}.")
    try:
        return _clip(content.decode())
    except UnicodeDecodeError as error:
        raise OSError(f"{path} is no text in UTF-8 ({len(content):,} bytes).") from error


def _clip(text: str) -> str:
    return (
        text if len(text) <= READING else f"{text[:READING]}\n… {len(text) - READING:,} characters more are left out."
    )


def look_before(folder: str, call: str, path: str) -> Replaced:
    """Return what a call would write over, as a gate shows it."""
    content = _content(folder, path)
    text = (content or b"")[: SHOWN * 4].decode(errors="ignore")[:SHOWN]
    return Replaced(call=call, path=path, digest=_digest(content), text="" if "\0" in text else text)


def keep_file(folder: str, path: str) -> dict[str, Any]:
    """Keep what stands where a file is to be written, with the names of the folders that are missing there."""
    content, place = _content(folder, path), _locate(folder, path)
    missing = [str(above.relative_to(folder)) for above in reversed(place.parents) if not above.exists()]
    return {"before": None if content is None else artifacts.keep(content, "text/plain"), "made": missing}


def write_file(folder: str, path: str, text: str, *, was: dict[str, Any], shown: str | None, key: str) -> Written:
    """Put `text` in the place of what `was` kept; as often as it is asked, with the same end.

    Nothing is written where that is not what a person was `shown` (its digest; None if it was the person who named the
    path), or where something else stands there by now.
    """
    content, before = text.encode(), was["before"][artifacts.MARK] if was["before"] else ""
    if shown not in (None, before) or _digest(_content(folder, path)) not in (before, _digest(content)):
        raise OSError(f"{path} was changed after a person had looked at it; read it again.")
    _put(folder, path, content, key)
    return Written(path=path, digest=_digest(content), before=was["before"], folders=was["made"])


def put_back(folder: str, written: Written, *, key: str) -> None:
    """Take a write back; as often as it is asked."""
    now = _digest(_content(folder, written.path))
    if now == (written.before[artifacts.MARK] if written.before else ""):
        return
    if now != written.digest:
        raise OSError(f"{written.path} was changed since it was written, so what was there is not put back.")
    if written.before is not None:
        _put(folder, written.path, artifacts.read(written.before), key)
        return
    _locate(folder, written.path).unlink()
    for path in reversed(written.folders):
        with suppress(OSError):  # somebody put something into it meanwhile
            _locate(folder, path).rmdir()


def _put(folder: str, path: str, content: bytes, key: str) -> None:
    """Write beside it, flush, rename: a crash leaves what was there, or all of what is new.

    The name beside it is the key's, so that whoever comes again after a crash takes the same one. Permissions stay, but
    for those to run with another account's rights: they were for what it held.
    """
    place = _locate(folder, path)
    mode = place.stat().st_mode & 0o777 if place.exists() else 0o644
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{key[:24]}.part")
    with draft.open("wb") as out:
        out.write(content)
        out.flush()
        os.fchmod(out.fileno(), mode)
        os.fsync(out.fileno())
    draft.replace(place)


def _content(folder: str, path: str) -> bytes | None:
    """Return a file's bytes, None if there is no such file."""
    place = _locate(folder, path)
    if not place.exists():
        return None
    if not place.is_file():  # a pipe would hold the worker up
        raise OSError(f"{path} is no file.")
    if (size := place.stat().st_size) > LARGEST_FILE:
        raise OSError(f"{path} has {size:,} bytes; the most is {LARGEST_FILE:,}.")
    return place.read_bytes()


def _locate(folder: str, path: str) -> Path:
    place = Path(folder, path)
    if path.startswith(("/", "~")) or "\0" in path or ".." in place.parts:
        raise OSError(f"{path!r} leads out of the folder; write a path like notes/today.md.")
    if os.path.realpath(place) != str(place):
        raise OSError(f"{path} is a link, or behind one, and links are not followed.")
    return place


def _digest(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def run_command(argv: list[str], *, folder: str, seconds: float) -> str:
    """Run a command, and return how it ended and what it said. Never raises for what the command does."""
    passed_on = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    env = {"PATH": PLAIN_PATH, **passed_on, "HOME": folder, "PWD": folder, "TERM": "dumb"}
    try:
        process = subprocess.Popen(
            [*_tie(), *argv], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, bufsize=0,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return f"It did not start: {argv[0]}: {getattr(error, 'strerror', None) or error}."
    head, tail = bytearray(), bytearray()
    reader = Thread(target=_listen, args=(process.stdout, head, tail), daemon=True)
    reader.start()
    try:
        code = process.wait(seconds)
        ending = f"with exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
    except subprocess.TimeoutExpired:
        ending = f"after {seconds:g} seconds"
    finally:  # whatever ends this, a time limit of the runtime's own among it, nothing of it stays
        with suppress(ProcessLookupError, PermissionError):  # all of it has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    reader.join(1.0)  # what left the session may hold the pipe open
    between = b"\n... bytes are left out here ...\n" if len(tail) > TAIL else b""
    return f"It ended {ending}.\n{(head + between + tail[-TAIL:]).decode(errors='replace')}".strip()


def _listen(pipe: Any, head: bytearray, tail: bytearray) -> None:
    """Read all that a command says, and keep both ends of it."""
    with pipe:
        for block in iter(partial(pipe.read, 64 * 1024), b""):
            room = HEAD - len(head)
            head += block[:room]
            tail[:] = (tail + block[room:])[-TAIL - 1 :]  # one more than is told tells that there was more


@cache
def _tie() -> tuple[str, ...]:
    """Return what to put before a command so that it dies with its parent; empty if the machine has no such tool."""
    tool = shutil.which("setpriv")
    if tool is None or subprocess.run([tool, *TIE, "true"], capture_output=True).returncode:
        return ()
    return (tool, *TIE, "--")


def parse_address(url: str) -> httpx.URL:
    """Parse an address as it would be fetched. Raises ValueError."""
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise ValueError(f"The address cannot be read: {error}.") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError("The address is to begin with http:// or https:// and to name a host.")
    if address.userinfo:
        raise ValueError("The address holds a name or a password.")
    return address


def fetch_address(url: str) -> str:
    """Fetch an address, and say in words and text what came back. Never raises for what the other side does."""
    try:
        address = parse_address(url)
        port = address.port or (443 if address.scheme == "https" else 80)
        return _get(address, resolve_address(address.host, port, inside=settings.HOLDPOINT_ASSISTANT_NETWORKS))
    except (ValueError, AddressRefused) as refused:
        return f"Nothing was fetched: {refused}"
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        return f"Nothing came back: {type(error).__name__}: {error}"


def _get(address: httpx.URL, ip: str) -> str:
    headers = {"Host": address.netloc.decode("ascii"), "Accept-Encoding": PLAIN, "User-Agent": "holdpoint"}
    # The certificate is held against the name, though the connection goes to the address that was looked at.
    extensions = {"sni_hostname": address.host} if address.scheme == "https" else {}
    until = time.monotonic() + SECONDS
    body, whole = bytearray(), True
    with (
        httpx.Client(timeout=10.0, trust_env=False, verify=trusted(), follow_redirects=False) as client,
        client.stream("GET", address.copy_with(host=ip), headers=headers, extensions=extensions) as answer,
    ):
        first = f"HTTP {answer.status_code} {answer.reason_phrase}".strip()
        if answer.is_redirect:
            where = address.join(answer.headers.get("location", ""))
            return f"{first}: it is at {where} now. Nothing was followed; ask for that address if you want it."
        kind = answer.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
        if not kind.startswith(TEXTS) and not kind.endswith(("+json", "+xml")):
            return f"{first}, {kind}: no text, so nothing of it is told."
        if (packed := answer.headers.get("content-encoding", PLAIN).strip().lower()) != PLAIN:
            return f"{first}, packed as {packed[:100]}, which was not asked for: nothing of it is told."
        for block in answer.iter_raw():
            body += block
            if len(body) > LARGEST_BODY or time.monotonic() > until:
                whole = False
                break
    charset = (answer.charset_encoding or "utf-8").lower()
    text = body[:LARGEST_BODY].decode(charset if charset in CHARSETS else "utf-8", errors="replace")
    whole = whole and len(text) <= ANSWER
    cut = "" if whole else f"\n… only its first {min(len(text), ANSWER):,} characters are told."
    return f"{first}, {kind}\n\n{text[:ANSWER]}{cut}"
