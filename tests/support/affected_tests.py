"""Which tests a change can affect, by what the code and the tests import: ``make test CHANGED=<revision>``.

A file of tests is affected if it, or a file that it imports, directly or through others, has changed; and so is the
folder of tests that mirrors the folder of a changed module, because programs are also started by name. Imports do not
show who reads other files: a table says so.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from tests.support.import_graph import import_graph

__all__ = ["UnknownRevisionError", "affected_tests", "changed_files"]

CHECKOUT = Path(__file__).parents[2]
OF_ALL = (
    ".ci/",
    "Makefile",
    "docker/local/local_",
    "pyproject.toml",
    "requirements",
    "storage_lib/__init__.py",
    "tests/conftest.py",
    "tests/support/plugins/",
)
"""Beginnings of the paths on which all tests depend, although no import says so."""
READERS = {
    "CHANGELOG.md": ("tests/test_changelog.py",),
    "README.md": ("tests/test_pages.py", "tests/packaging"),
    "dags/": ("tests/dags",),
    "docker/": ("tests/docker",),
    "docker/local/flink": ("tests/interop",),
    "docker/local/java_servant": ("tests/interop",),
    "docker/local/paimon_core": ("tests/interop",),
    "docs/": ("tests/test_pages.py", "tests/test_generated_pages.py", "tests/test_tutorial_commands.py"),
    "plugins/": ("tests/plugins",),
    "plugins/dynamic_table/pages/": ("tests/plugins",),
}
"""Beginnings of paths, and the tests that read these files or start them by name."""
OF_STRUCTURE = {f"tests/test_{name}.py" for name in ("error_tree", "facade", "folders", "public_names")}
"""Quick tests that read all of the code."""


class UnknownRevisionError(ValueError):
    """Git does not know the revision; the message is git's."""


def changed_files(checkout: Path, revision: str) -> list[str]:
    """Return the paths that the working tree has changed since it left a revision, new and deleted ones included.

    Raises:
        UnknownRevisionError: git does not know the revision.
    """
    found: set[str] = set()
    for command in (
        ("git", "diff", "--name-only", "--no-renames", "--merge-base", revision, "--"),
        ("git", "ls-files", "--others", "--exclude-standard"),
    ):
        ran = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise UnknownRevisionError(ran.stderr.strip())
        found.update(ran.stdout.splitlines())
    return sorted(found)


def affected_tests(changed: Iterable[str], graph: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the files and folders of tests that a change of these files can affect; ``["tests"]`` is all of them.

    ``graph`` has the files that each file imports, as ``import_graph`` finds them.
    """
    paths = list(changed)
    importers: dict[str, set[str]] = defaultdict(set)
    for file, imported in graph.items():
        for other in imported:
            importers[other].add(file)
    # A helper that no file imports is a program that tests start by its path.
    if any(path.startswith(OF_ALL) or (path.startswith("tests/support/") and not importers[path]) for path in paths):
        return ["tests"]
    chosen = {test for path in paths for test in readers_of(path, graph)}
    seen, rest = set(paths), deque(paths)
    while rest:
        for importer in importers[rest.popleft()] - seen:
            seen.add(importer)
            rest.append(importer)
    chosen |= {file for file in seen if file in graph and is_test(file)}
    return sorted(test for test in chosen if not any(str(above) in chosen for above in PurePosixPath(test).parents))


def readers_of(path: str, graph: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the tests of a changed file that imports do not show."""
    readers = {test for start, tests in READERS.items() if path.startswith(start) for test in tests}
    if path.startswith("storage_lib/"):
        mirror = PurePosixPath("tests", path.partition("/")[2]).parent
        return readers | OF_STRUCTURE | nearest(mirror, graph)
    if path.startswith("tests/") and (not path.endswith(".py") or path.endswith("/conftest.py")):
        return readers | nearest(PurePosixPath(path).parent, graph)
    return readers


def nearest(folder: PurePosixPath, graph: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the folder, or the nearest above it, that has tests, but for that of all tests."""
    folders = {str(PurePosixPath(file).parent) for file in graph if is_test(file)} - {"tests"}
    return set([str(each) for each in (folder, *folder.parents) if str(each) in folders][:1])


def is_test(path: str) -> bool:
    """Return whether pytest collects a file."""
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")


def main(revision: str) -> None:
    """Print the affected tests, one a line, and on standard error why these; exit with git's words if it refuses."""
    try:
        changed = changed_files(CHECKOUT, revision)
    except UnknownRevisionError as error:
        sys.exit(f"CHANGED={revision}: {error}")
    graph = import_graph(CHECKOUT)
    chosen = affected_tests(changed, graph)
    tests = sum(map(is_test, graph))
    said = "all tests" if chosen == ["tests"] else f"{len(chosen)} files and folders of tests, of {tests} files"
    print(f"{len(changed)} files have changed since {revision}; they can affect {said}:", file=sys.stderr)
    for test in chosen:
        print(f"  {test}", file=sys.stderr)
    print("\n".join(chosen))


if __name__ == "__main__":
    main(*sys.argv[1:])
