"""`make generated`: writes docs/settings.md and .env.example from the settings where they are declared.

Nothing is imported and no default is repeated: the calls of `env` are read from their source, with the comments that
begin with `#:` above them. config/settings.py says what may stand in those.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DECLARED_IN = ("config/settings.py", "config/sign_in/providers.py")
ROOMS = ("agents", "approvals", "checkpoints", "config")
NOT_DEPLOYED = "Only for `make run`, the examples and the tests"
OF_EACH = "HOLDPOINT_OIDC_<NAME>_"  # the prefix of what each provider of single sign-on has
# What a variable holds, by the method that reads it. Numbers have bounds beside, URLs schemes, choices their words.
HOLDS = {
    "boolean": "1 or 0", "file": "a path", "key": "a key", "keys": "keys", "networks": "networks", "number": "a number",
    "numbers": "numbers above 0", "origins": "origins", "pairs": "pairs", "proxies": "addresses or networks",
    "text": "text", "vapid_key": "a key", "whole": "a whole number", "words": "words",
}  # fmt: skip
HEAD = """# Settings

Every process reads its settings from its environment and checks them at its start: it ends with a sentence for each
unknown or invalid one. Lists are written with commas. *Read in* names the rooms whose code reads a setting. `make
generated` writes this page and `.env.example` from `config/settings.py`.
"""
TABLE = "| variable | default | holds | is | read in |\n|---|---|---|---|---|\n"
EXAMPLE_HEAD = """\
# What a deployment may set, with its default. Copy to .env for docker compose, and fill in what says change-me.
# docs/settings.md has bounds too, and what only `make run`, the examples and the tests read. Lists have commas.
"""


@dataclass(frozen=True)
class Setting:
    """One variable, as its declaration has it."""

    section: str
    name: str
    default: str  # "" where there is none, or where it is computed: then the words say it
    holds: str
    words: str
    example: str
    readers: str

    @property
    def row(self) -> str:
        """Return the setting's line in the page's table."""
        default = f"`{self.default}`" if self.default else ""
        return f"| `{self.name}` | {default} | {self.holds} | {self.words} | {self.readers} |"

    @property
    def lines(self) -> str:
        """Return the setting's lines in .env.example."""
        comment = textwrap.fill(
            self.words, 120, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
        )
        return f"{comment}\n{self.name}={self.example}\n"


def list_settings() -> list[Setting]:
    """List every variable that the settings read, section by section."""
    settings = [setting for path in DECLARED_IN for setting in read_declarations((ROOT / path).read_text())]
    sections = list(dict.fromkeys(setting.section for setting in settings if setting.section != NOT_DEPLOYED))
    return sorted(settings, key=lambda setting: [*sections, NOT_DEPLOYED].index(setting.section))


def read_declarations(source: str) -> Iterator[Setting]:
    """Yield the variables that one module reads. Raises ValueError where no words say a default that is computed."""
    lines, section = source.splitlines(), ""
    tree = ast.parse(source)
    targets = {
        call: node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        for call in ast.walk(node.value)
    }
    for call in sorted(_calls(tree), key=lambda node: node.lineno):
        comment = _comment_above(lines, call.lineno)
        section = next((line.removeprefix("## ") for line in comment if line.startswith("## ")), section)
        given = next((line.removeprefix("Example: ") for line in comment if line.startswith("Example: ")), "")
        words = " ".join(line for line in comment if not line.startswith(("## ", "Example: ")))
        name, default = _name(call.args[0]), _default(call)
        if default is None and "Default: " not in words:
            raise ValueError(f"The default of {name} is computed. Say it in words, after “Default:”.")
        readers = _readers(name, targets.get(call, name))
        yield Setting(section, name, default or "", _holds(call), words, given or default or "", readers)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls that read a variable by its name, which may have a provider's before it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or ast.unparse(node.func).rpartition(".")[0] != "env":
            continue
        if isinstance(node.args[0], ast.Constant | ast.JoinedStr):
            yield node


def _name(node: ast.expr) -> str:
    return str(ast.literal_eval(ast.unparse(node).removeprefix("f").replace("{prefix}", OF_EACH)))


def _comment_above(lines: list[str], number: int) -> list[str]:
    """Return the `#:` lines that end above a line, which is counted from 1."""
    begin = number - 1
    while lines[begin - 1].lstrip().startswith("#: "):
        begin -= 1
    return [line.lstrip().removeprefix("#: ") for line in lines[begin : number - 1]]


def _default(call: ast.Call) -> str | None:
    """Return the default as the variable would be written; None where it is computed from others."""
    position = 2 if ast.unparse(call.func) == "env.url" else 1
    value = _value(call.args[position]) if len(call.args) > position else ""
    return None if value is None else _written(value)


def _value(node: ast.expr) -> Any:
    if any(isinstance(part, ast.Name | ast.Call | ast.JoinedStr) for part in ast.walk(node)):
        return None
    return eval(compile(ast.Expression(node), "settings", "eval"))  # noqa: S307 - our own source, and no name in it


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_written, value))
    return f"{value:.15g}" if isinstance(value, float) else str(int(value) if isinstance(value, bool) else value)


def _holds(call: ast.Call) -> str:
    method = ast.unparse(call.func).removeprefix("env.")
    bounds = {word.arg: _written(_value(word.value)) for word in call.keywords if word.arg in ("least", "most")}
    if method == "choice":
        return ", ".join(f"`{word}`" for word in _value(call.args[2]) if word)
    if method in ("url", "database", "broker"):
        schemes = _value(call.args[1]) if method == "url" else ("postgres", "postgresql")
        return " or ".join(f"`{scheme}:`" for scheme in schemes)
    if method not in ("whole", "number"):
        return HOLDS[method]
    least, most = bounds.get("least", "0"), bounds.get("most")
    return f"{HOLDS[method]}, {least} to {most}" if most else f"{HOLDS[method]} from {least}"


def _readers(name: str, target: str) -> str:
    """Return the rooms whose code reads a setting; where none does, Django or a library of ours reads it."""
    names = {target, name, name.partition("_<")[0]}
    rooms = [room for room, read in _read_in().items() if names & read]
    return ", ".join(rooms) or "Django"


@cache
def _read_in() -> dict[str, set[str]]:
    """Return the names of settings and variables that each room reads."""
    found: dict[str, set[str]] = {}
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        names = re.findall(r"""\bsettings\.([A-Z_]+)\b|environ(?:\.get\(|\[)["']([A-Z_]+)""", path.read_text())
        room = "/".join(path.relative_to(ROOT).parent.parts[:2])
        found.setdefault(f"`{room}`", set()).update(filter(None, (name for pair in names for name in pair)))
    compose = re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text())
    return found | {"`docker-compose.yml`": set(compose)}


def write_page(settings: Iterable[Setting]) -> str:
    """Return docs/settings.md."""
    parts = [HEAD]
    for section, members in groupby(settings, lambda setting: setting.section):
        parts += [f"\n## {section}\n\n", TABLE, *(f"{setting.row}\n" for setting in members)]
    return "".join(parts)


def write_example(settings: Iterable[Setting]) -> str:
    """Return .env.example: what a deployment may set, without what is for examples and tests."""
    parts = [EXAMPLE_HEAD]
    deployed = [
        setting for setting in settings if setting.section != NOT_DEPLOYED and not setting.name.startswith(OF_EACH)
    ]
    for section, members in groupby(deployed, lambda setting: setting.section):
        parts += [f"\n## {section}\n", *(setting.lines for setting in members)]
    return "".join(parts)


if __name__ == "__main__":
    (ROOT / "docs" / "settings.md").write_text(write_page(list_settings()))
    (ROOT / ".env.example").write_text(write_example(list_settings()))
