"""Serves static files before Django, without a thread or a session; their hashed names may be cached for ever.

WhiteNoise's middleware is synchronous: under ASGI it would push every request through a thread and stream
files in a way that Django warns about. So this uses its index, compression and HTTP rules without it.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import get_finders
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, InMemoryStorage
from whitenoise.base import WhiteNoise
from whitenoise.responders import Response
from whitenoise.storage import CompressedManifestStaticFilesStorage

SHEET = "css/main.css"
IMPORT = re.compile(r'^@import url\("(?P<file>[^"]+)"\) layer\((?P<layer>\w+)\);$', re.MULTILINE)
BY_CONTENT = r"\.[0-9a-f]{12}\.[^./]+$"  # the end of a name that holds a digest of the content: main.3f2a9c81d0aa.css
# No browser asks whether a file changed whose name changes with its content, and a page loads dozens of them.
REVALIDATION = ("etag", "last-modified")
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class Storage(CompressedManifestStaticFilesStorage):
    """The storage that names files by a digest of their content, also files that JavaScript modules import."""

    support_js_module_import_aggregation = True

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        """Process files as Django does, with imports of style sheets inlined: one file loads faster than forty."""

        def read(name: str) -> str:
            storage, path = paths[name]
            with storage.open(path) as file:
                return str(file.read(), "utf-8")

        def layer(match: re.Match[str]) -> str:
            name = posixpath.join(posixpath.dirname(SHEET), match["file"])
            return f"@layer {match['layer']} {{\n{read(name)}}}"

        whole = InMemoryStorage()
        whole.save(SHEET, ContentFile(IMPORT.sub(layer, read(SHEET))))
        yield from super().post_process({**paths, SHEET: (whole, SHEET)}, dry_run, **options)

    def compress_files(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Compress what pages load: names with a digest. The same files under their own names took as long again."""
        yield from super().compress_files([path for path in paths if re.search(BY_CONTENT, path)])


class StaticFiles:
    """An ASGI application that serves the files collected under `root`; with `debug`, the sources themselves."""

    def __init__(self, *, prefix: str, root: Path, debug: bool) -> None:
        self.index = WhiteNoise(None, autorefresh=debug, allow_all_origins=False, immutable_file_test=BY_CONTENT)
        for folder in _sources() if debug else [str(root)]:
            self.index.add_files(folder, prefix)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        status, headers, body = await asyncio.to_thread(self.answer, scope)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def answer(self, scope: Scope) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Return the status, the headers and the body for one request."""
        path = scope["path"]
        known = self.index.find_file(path) if self.index.autorefresh else self.index.files.get(path)
        if known is None:
            return 404, [(b"content-type", b"text/plain; charset=utf-8")], b"There is no such file.\n"
        response: Response = known.get_response(scope["method"], _as_wsgi(scope))
        body = b""
        if response.file is not None:
            with response.file as file:
                body = file.read()
        needless = REVALIDATION if self.index.immutable_file_test(path, path) else ()
        headers = [
            (name.lower().encode("latin1"), value.encode("latin1"))
            for name, value in response.headers
            if name.lower() not in needless
        ]
        return int(response.status), [*headers, (b"x-content-type-options", b"nosniff")], body


def _sources() -> list[str]:
    """Return the source folders of static files, so that a change shows without collecting."""
    storages = [storage for finder in get_finders() for storage in getattr(finder, "storages", {}).values()]
    return [str(storage.location) for storage in storages if isinstance(storage, FileSystemStorage)]


def _as_wsgi(scope: Scope) -> dict[str, Any]:
    return {
        "HTTP_" + name.decode("latin1").upper().replace("-", "_"): value.decode("latin1")
        for name, value in scope["headers"]
    }
