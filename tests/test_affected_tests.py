"""`make test CHANGED=<revision>` runs the tests that a change can affect, and says which."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.affected_tests import UnknownRevisionError, affected_tests, changed_files
from tests.support.import_graph import import_graph

GRAPH = {
    file: frozenset(imported)
    for file, imported in {
        "storage_lib/io/files.py": set[str](),
        "storage_lib/table/rows.py": {"storage_lib/io/files.py"},
        "storage_lib/sql/run.py": {"storage_lib/table/rows.py"},
        "tests/io/test_files.py": {"storage_lib/io/files.py"},
        "tests/table/test_rows.py": {"storage_lib/table/rows.py", "tests/support/some_rows.py"},
        "tests/sql/test_run.py": {"storage_lib/sql/run.py"},
        "tests/sql/test_read.py": set[str](),
        "tests/support/some_rows.py": set[str](),
        "tests/support/some_process.py": set[str](),
    }.items()
}
OF_STRUCTURE = [f"tests/test_{name}.py" for name in ("error_tree", "facade", "folders", "public_names")]
LATE = """
if TYPE_CHECKING:
    from storage_lib.one import One
    from storage_lib.two import Two
"""


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        (["tests/sql/test_read.py"], ["tests/sql/test_read.py"]),
        (["tests/support/some_rows.py"], ["tests/table/test_rows.py"]),
        (["tests/sql/cases/deep/a.sql"], ["tests/sql"]),
        (["tests/sql/conftest.py"], ["tests/sql"]),
        (["docs/sql.md"], ["tests/test_generated_pages.py", "tests/test_pages.py", "tests/test_tutorial_commands.py"]),
        (["storage_lib/sql/run.py"], ["tests/sql", *OF_STRUCTURE]),
        (["storage_lib/table/rows.py"], ["tests/sql/test_run.py", "tests/table", *OF_STRUCTURE]),
        (["storage_lib/io/deleted.py"], ["tests/io", *OF_STRUCTURE]),
        (["LICENSE"], []),
        ([], []),
    ],
)
def test_what_imports_or_mirrors_a_changed_file_is_affected(changed: list[str], chosen: list[str]) -> None:
    assert affected_tests(changed, GRAPH) == chosen


@pytest.mark.parametrize("path", ["pyproject.toml", "tests/conftest.py", "tests/support/some_process.py"])
def test_what_every_test_may_depend_on_affects_all(path: str) -> None:
    assert affected_tests([path, "tests/sql/test_read.py"], GRAPH) == ["tests"]


def test_imports_are_followed_to_the_module_that_a_package_loads_late(tmp_path: Path) -> None:
    for path, text in {
        "storage_lib/__init__.py": LATE,
        "storage_lib/one.py": "",
        "storage_lib/two.py": "if TYPE_CHECKING:\n    from storage_lib.one import One\n",
        "docker/local/local_thing.py": "def f():\n    import storage_lib.two\n",
        "tests/a/conftest.py": "import local_thing\n",
        "tests/a/test_a.py": "from storage_lib import One\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    assert import_graph(tmp_path) == {
        "storage_lib/__init__.py": set(),
        "storage_lib/one.py": set(),
        "storage_lib/two.py": set(),
        "docker/local/local_thing.py": {"storage_lib/__init__.py", "storage_lib/two.py"},
        "tests/a/conftest.py": {"docker/local/local_thing.py"},
        "tests/a/test_a.py": {"storage_lib/__init__.py", "storage_lib/one.py", "tests/a/conftest.py"},
    }


def test_changed_files_are_those_that_git_names_and_new_ones(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        person = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(("git", *person, *words), cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    for name in ("kept", "changed", "deleted"):
        (tmp_path / name).write_text(name)
    git("add", ".")
    git("commit", "--message", "one")
    (tmp_path / "changed").write_text("anew")
    (tmp_path / "deleted").unlink()
    (tmp_path / "new").touch()

    assert changed_files(tmp_path, "main") == ["changed", "deleted", "new"]
    with pytest.raises(UnknownRevisionError, match="bad revision 'no-such'"):
        changed_files(tmp_path, "no-such")
