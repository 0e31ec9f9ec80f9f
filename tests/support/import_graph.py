"""Which files a file imports, over the code, its scripts and the tests, found without importing any.

grimp, which the import contracts use, knows packages only: neither the tests and the scripts, which are folders, nor
that a package whose names are loaded on first use imports just the module of the name that is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["import_graph"]

ROOTS = ("storage_lib", "plugins", "docker/local", "dags", "benchmarks", "tests")
ON_PATH = ("", "plugins/", "docker/local/", "dags/", "storage_lib/spark/discovery/")
"""Folders from which modules are imported: ``pythonpath`` of pyproject.toml, and what Spark puts there."""


def import_graph(checkout: Path) -> dict[str, frozenset[str]]:
    """Return for each Python file the files that it imports when it runs, and the conftest files that serve it.

    Paths are relative to the checkout.
    """
    paths = [path for root in ROOTS for path in sorted((checkout / root).rglob("*.py"))]
    files = [path.relative_to(checkout).as_posix() for path in paths]
    modules = {
        module_name(file.removeprefix(start)): file for start in ON_PATH for file in files if file.startswith(start)
    }
    trees = {file: ast.parse((checkout / file).read_text()) for file in files}
    facades = {
        file: {alias.name: f"{node.module}" for node in type_imports(tree) for alias in node.names}
        for file, tree in trees.items()
        if file.endswith("/__init__.py")
    }
    found = {
        file: {imported for node in runtime_imports(tree) for imported in targets(node, modules, facades)}
        for file, tree in trees.items()
    }
    for file in files:
        if file.startswith("tests/"):
            found[file].update(conftest for conftest in conftests_of(file) if conftest in found)
    return {file: frozenset(imported - {file}) for file, imported in found.items()}


def module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def conftests_of(file: str) -> Iterator[str]:
    """Return the conftest files of a test's folder and of those above, but for that of all tests."""
    folder = Path(file).parent
    while folder.parent != Path():
        yield f"{folder.as_posix()}/conftest.py"
        folder = folder.parent


def targets(
    node: ast.Import | ast.ImportFrom, modules: dict[str, str], facades: dict[str, dict[str, str]]
) -> Iterator[str]:
    """Return the files of one import statement: of its modules, and of the packages that contain these."""
    names = [alias.name for alias in node.names]
    imported = names if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        package = modules.get(node.module, "")
        homes = facades.get(package, {})
        imported = [homes.get(name, f"{node.module}.{name}") for name in names]
        if not package.endswith("/__init__.py"):
            imported.append(node.module)
    for name in imported:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            if (file := modules.get(".".join(parts[:end]))) is not None:
                yield file
        if isinstance(node, ast.Import) and (package := modules.get(name, "")) in facades:
            yield from (modules[home] for home in facades[package].values() if home in modules)


def runtime_imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Return the imports of a file that run, inside functions as well, in no particular order."""
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.If) and is_type_checking(node):
            rest.extend(node.orelse)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        else:
            rest.extend(ast.iter_child_nodes(node))


def type_imports(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Return the imports of a file that only type checkers see; in a package, those of the names that it loads late."""
    for node in tree.body:
        if isinstance(node, ast.If) and is_type_checking(node):
            yield from (each for each in node.body if isinstance(each, ast.ImportFrom))


def is_type_checking(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
