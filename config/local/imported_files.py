"""The files of agents that are being written: the modules that HOLDPOINT_AGENTS names, and all that these import.

They are followed by their import statements, those inside functions too, and nothing is run: so it works for code that
cannot be imported yet, and a module that is still to be written is among them. Tests are not, unless an agent imports
them. Beside modules, a package's files that are no Python count, such as its prompts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PRODUCT = ("agents", "approvals", "checkpoints", "config")
TESTS = {"test", "tests", "__pycache__"}  # folders of a package


def list_imported_files(names: Iterable[str], folders: Sequence[Path], root: Path) -> set[Path]:
    """Return the files of these modules and of what they import, there or not, in the folders of PYTHONPATH.

    What belongs to the product in `root` is left out, except beside a module that is named there.
    """
    own = [folder.joinpath(*name.split(".")[:-1]) for name in names if "." in name for folder in folders]
    files: set[Path] = set()
    ahead = [path for name in names for path in places(name, folders)]
    while ahead:
        path = ahead.pop()
        of_product = any(path.is_relative_to(root / name) for name in PRODUCT)
        if path in files or (of_product and not any(path.is_relative_to(folder) for folder in own)):
            continue
        files.add(path)
        for name, beside in imports(path):
            ahead += places(name, [beside] if beside else folders)
    return files | {path for name in names for path in data_files(name, folders)}


def places(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield where a module and the packages around it may be."""
    parts = name.split(".")
    for folder in folders:
        for length in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:length])
            yield from (place.with_suffix(".py"), place / "__init__.py")


def imports(path: Path) -> Iterator[tuple[str, Path | None]]:
    """Yield the modules that a file imports, each with the folder that it is relative to."""
    try:
        nodes = ast.walk(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError):  # not there, or being written
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((name.name, None) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            beside = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else None
            for name in node.names:  # a name may be a module
                yield ".".join(filter(None, (node.module, name.name))), beside


def data_files(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of a package that are no Python; none of its tests, and none that are hidden."""
    for folder in folders:
        package = folder.joinpath(*name.split("."))
        for path in package.rglob("*") if (package / "__init__.py").is_file() else ():
            parts = path.relative_to(package).parts
            if path.suffix != ".py" and not TESTS.intersection(parts) and not any(p.startswith(".") for p in parts):
                yield path
