"""Names that users may rely on: those of ``storage_lib`` and ``storage_lib.spark``, and the naming of files."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import storage_lib
import storage_lib.spark

CHECKOUT = Path(__file__).parents[1]
FOLDERS = ("storage_lib", "plugins", "dags")
CITED_PAGE = re.compile(r"docs/[\w./-]*\.md|\w+\.md\b")
MODULES = sorted(chain.from_iterable((CHECKOUT / folder).rglob("*.py") for folder in FOLDERS))
PUBLIC = {
    "AddColumn",
    "AlreadyExistsError",
    "AlterType",
    "Catalog",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CorruptFileError",
    "DropColumn",
    "DynamicTable",
    "HybridSource",
    "IngestResult",
    "InvalidInputError",
    "LeaseLostError",
    "LogOffsetsExpiredError",
    "LogRepairError",
    "MemoryCatalog",
    "MoveColumn",
    "NotFoundError",
    "OptionDescription",
    "PermanentError",
    "ReingestResult",
    "RemoveOption",
    "RenameColumn",
    "RetryableError",
    "RowKind",
    "SetComment",
    "SetNullable",
    "SetOption",
    "SnapshotExpiredError",
    "SqlSyntaxError",
    "SourceRange",
    "StorageError",
    "StreamPosition",
    "SyncResult",
    "TableAddress",
    "TableDescriptor",
    "TableSync",
    "UnavailableError",
    "UntrackedCommitError",
    "Verification",
    "WarehouseCatalog",
    "col",
    "describe_options",
    "ingest",
    "load_table_at",
    "open_catalog",
    "reingest",
    "sync_database",
    "verify",
    "verify_tables",
}
PUBLIC_OF_SPARK = {
    "SinkHeartbeat",
    "SinkSource",
    "SinkSpec",
    "SinkState",
    "TableStream",
    "compact",
    "create_auto_cdc_flow",
    "read",
    "read_changelog",
    "read_stream",
    "register",
    "session",
    "write",
    "write_stream",
    "RefreshResult",
    "create_materialized_table",
    "refresh",
    "resume",
    "set_freshness",
    "set_query",
    "set_refresh_mode",
    "suspend",
}
WORDS_THAT_HIDE_A_NOUN = ("Manager", "Handler", "Helper", "Util", "Base", "Impl", "Abstract", "Processor", "Common")


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the parsed modules, by path."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def named(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def test_the_public_names_of_the_library() -> None:
    """Removing one breaks a user's program: change this list and the README with it."""
    assert set(storage_lib.__all__) == PUBLIC
    assert list(storage_lib.__all__) == sorted(storage_lib.__all__)
    assert all(getattr(storage_lib, name).__module__.startswith("storage_lib.") for name in PUBLIC)


def test_what_the_library_lists_is_what_is_public() -> None:
    assert set(dir(storage_lib)) == PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = storage_lib.nothing


@pytest.mark.parametrize("program", ["storage_lib.errors.StorageError", "storage_lib.spark.SinkSpec"])
def test_modules_are_reached_by_their_package(program: str) -> None:
    script = f"import storage_lib, sys; {program}; assert 'pyspark' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "missing", "extras"),
    [
        ("storage_lib.spark.session", "pyspark", "spark"),
        ("storage_lib.sql.parse", "lark", "spark,sql"),
        ("storage_lib.sql.Session", "sqlglot", "spark,sql"),
    ],
)
def test_a_name_that_needs_an_extra_says_which(name: str, missing: str, extras: str) -> None:
    package, _, verb = name.rpartition(".")
    script = f"import sys; sys.modules[{missing!r}] = None; from {package} import {verb}"

    refused = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stderr

    wanted = f"{name} needs {missing}: pip install 'spark-dynamic-tables[{extras}]'"
    assert refused.splitlines()[-1] == f"ModuleNotFoundError: {wanted}"


def test_errors_come_without_arrow() -> None:
    script = "from storage_lib.errors import StorageError; import sys; assert 'pyarrow' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.spark
def test_the_public_names_of_the_connector() -> None:
    pytest.importorskip("pyspark")
    assert set(storage_lib.spark.__all__) == PUBLIC_OF_SPARK
    for name in PUBLIC_OF_SPARK:
        assert getattr(storage_lib.spark, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = storage_lib.spark.nothing


def test_the_library_alone_loads_no_engine_no_broker_and_no_scheduler() -> None:
    program = (
        "import sys, storage_lib, storage_lib.spark, storage_lib.spark.stream.sink.sink_spec; "
        "print(sorted({'pyspark', 'kafka', 'airflow', 'great_expectations'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_table_is_loaded_and_read_without_pandas(tmp_path: Path) -> None:
    """Arrow imports pandas to convert a list, and for its expressions; that takes longer than to read a small table."""
    table = storage_lib.open_catalog(tmp_path).create_table("shop.orders", {"id": "BIGINT"}, primary_key=["id"])
    table.append([{"id": 1}])
    program = (
        "import sys, storage_lib; catalog = storage_lib.open_catalog(sys.argv[1]); "
        "print(catalog.load_table('shop.orders').to_arrow().num_rows, 'pandas' in sys.modules)"
    )

    command = [sys.executable, "-c", program, str(tmp_path)]
    ran = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["1", "False"]


def test_a_file_name_means_one_file() -> None:
    counts = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_file_is_named_as_a_standard_module() -> None:
    assert [path.name for path in MODULES if path.stem in sys.stdlib_module_names] == []


def test_every_module_of_the_library_can_be_imported_by_its_name() -> None:
    for path in (CHECKOUT / "storage_lib").rglob("*.py"):
        if "spark" not in path.parts and path.name != "__init__.py":
            importlib.import_module(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))


def test_every_module_says_what_it_is() -> None:
    silent = {path: tree for path, tree in trees().items() if tree.body and not ast.get_docstring(tree)}

    assert sorted(map(named, silent)) == []


def test_no_class_is_named_by_a_word_that_hides_a_noun() -> None:
    found = [
        f"{named(path)}: {node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.strip("_").endswith(WORDS_THAT_HIDE_A_NOUN)
    ]

    assert found == []


def test_no_message_cites_a_page_that_the_wheel_lacks() -> None:
    """Docstrings may cite it: they are for readers of the source."""
    found = [
        f"{named(path)}: {text}"
        for path, tree in trees().items()
        for text in texts_outside_docstrings(tree)
        if CITED_PAGE.search(text)
    ]

    assert found == []


def texts_outside_docstrings(tree: ast.Module) -> list[str]:
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return [text for text in texts if isinstance(text, str)]


def test_no_file_that_is_copied_for_a_user_cites_a_page_that_the_wheel_lacks() -> None:
    files = sorted((CHECKOUT / "dags").rglob("*.yaml"))

    assert files
    assert [file.name for file in files if CITED_PAGE.search(file.read_text())] == []
