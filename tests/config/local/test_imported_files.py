"""What is saved reloads the stack only where an agent that is being written imports it.

Each save of any module beside an agent reloaded it, such as of its tests, and took the pages away meanwhile.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from config.local.authoring import list_imported_files

FILES = {
    "my_agent.py": "import shop, json, unwritten\nfrom helpers.text import clean\nfrom agents import Agent\n",
    "shop.py": "def price():\n    from prices import table\n",
    "prices.py": "import broken\n",
    "broken.py": "def (:\n",
    "helpers/text.py": "from . import words\nfrom .deep import more\n",
    "helpers/words.py": "",
    "helpers/deep.py": "",
    "helpers/other.py": "",
    "test_my_agent.py": "import my_agent, only_of_tests\n",
    "only_of_tests.py": "",
    "scratch.py": "import my_agent\n",
    "agents/__init__.py": "import agents.definition\n",
    "agents/definition.py": "",
    "agents/examples/__init__.py": "",
    "agents/examples/mine.py": "from agents import definition\nfrom . import sandbox\n",
    "agents/examples/sandbox.py": "",
    "team/__init__.py": "",
    "team/agent.py": "from .. import outside\nfrom .steps import first\n",
    "team/steps/__init__.py": "",
    "team/steps/first.py": "",
    "team/prompt.md": "",
    "team/steps/table.csv": "",
    "team/.git/index": "",
    "team/tests/test_agent.py": "",
    "team/tests/golden.json": "",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def files_of(name: str, folder: Path) -> set[str]:
    """Those that are there."""
    found = list_imported_files([name], [folder], folder)
    return {str(path.relative_to(folder)) for path in found if path.is_file()}


def test_a_modules_imports_are_followed_into_functions_and_past_what_cannot_be_read(folder: Path) -> None:
    names = {"my_agent.py", "shop.py", "prices.py", "broken.py"}
    assert files_of("my_agent", folder) == names | {f"helpers/{name}.py" for name in ("text", "words", "deep")}


def test_what_is_still_to_be_written_is_waited_for(folder: Path) -> None:
    found = list_imported_files(["my_agent", "next_agent"], [folder], folder)
    assert {folder / "unwritten.py", folder / "next_agent.py", folder / "next_agent" / "__init__.py"} <= found


def test_a_package_has_its_own_data_and_none_of_its_tests(folder: Path) -> None:
    (folder / "team.py").unlink(missing_ok=True)
    (folder / "team" / "__init__.py").write_text("from . import agent\n")
    of_package = {"team/__init__.py", "team/agent.py", "team/steps/__init__.py", "team/steps/first.py"}
    assert files_of("team", folder) == of_package | {"team/prompt.md", "team/steps/table.csv"}


def test_the_product_itself_is_not_followed_but_what_lies_beside_a_module_in_it_is(folder: Path) -> None:
    found = files_of("agents.examples.mine", folder)
    assert found == {f"agents/examples/{name}.py" for name in ("__init__", "mine", "sandbox")}
