"""Independent readers and writers of our tables: pypaimon-rust in this process, pypaimon in a separate one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from tests.support.extras import needed
from tests.support.line_servant import LineServant

PYPAIMON = Path(__file__).parents[2] / ".local" / "paimon" / "bin" / "python"
SCRIPT = Path(__file__).with_name("pypaimon_script.py")

Warehouse: TypeAlias = Path | Mapping[str, str]
"""Directory, or the options of a remote catalog as the reader in question spells them."""

needs_pypaimon = pytest.mark.skipif(not PYPAIMON.exists(), reason="pypaimon is not set up: run `make setup`")


def read_with_rust(warehouse: Warehouse, identifier: str) -> pa.Table:
    """Return all rows, read by pypaimon-rust."""
    builder = rust_table(warehouse, identifier).new_read_builder()
    batches = list(builder.new_read().read_arrow(builder.new_scan().plan().splits()))
    return pa.Table.from_batches(batches) if batches else pa.table({})


def append_with_rust(warehouse: Warehouse, identifier: str, rows: pa.Table) -> None:
    """Append rows in one commit by pypaimon-rust."""
    builder = rust_table(warehouse, identifier).new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    for batch in rows.to_batches():
        write.write_arrow(batch)
    commit.commit(write.prepare_commit())


def rust_table(warehouse: Warehouse, identifier: str) -> Any:
    """Load a table through pypaimon-rust."""
    needed("pypaimon_rust")
    from pypaimon_rust.datafusion import PaimonCatalog

    options = {"warehouse": str(warehouse)} if isinstance(warehouse, Path) else dict(warehouse)
    return PaimonCatalog(options).get_table(identifier)


def read_with_pypaimon(
    warehouse: Warehouse,
    identifier: str,
    scratch: Path,
    filters: tuple[str, str, Any] | None = None,
    options: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return all rows, or the matching ones, read by pypaimon; ``options`` apply to this read (``scan.tag-name``)."""
    out = scratch / "read.arrow"
    run_pypaimon("read", _spelled(warehouse), identifier, str(out), json.dumps(filters), json.dumps(options))
    with pa.OSFile(str(out)) as file:
        return pa.ipc.open_file(file).read_all()


def append_with_pypaimon(warehouse: Warehouse, identifier: str, scratch: Path, rows: pa.Table) -> None:
    """Append rows in one commit by pypaimon."""
    run_pypaimon("append", _spelled(warehouse), identifier, str(ipc_file(rows, scratch)))


def create_with_pypaimon(
    warehouse: Warehouse, identifier: str, scratch: Path, rows: pa.Table, *, primary_keys: list[str], **more: Any
) -> None:
    """Create a table with its first rows by pypaimon."""
    arguments = json.dumps({"primary_keys": primary_keys, **more})
    run_pypaimon("create", _spelled(warehouse), identifier, str(ipc_file(rows, scratch)), arguments)


def alter_with_pypaimon(warehouse: Warehouse, identifier: str, changes: list[list[str]]) -> None:
    """Change a schema by pypaimon: each change is a method name and its arguments, types as text."""
    run_pypaimon("alter", _spelled(warehouse), identifier, json.dumps(changes))


def call_catalog_of_pypaimon(warehouse: Warehouse, identifier: str, method: str, *arguments: object) -> None:
    """Call a method of pypaimon's catalog with a table's name and further arguments."""
    run_pypaimon("catalog", _spelled(warehouse), identifier, method, json.dumps(arguments))


def run_pypaimon(*arguments: str) -> None:
    """Run a command of pypaimon_script.py; raise ``RefusedError`` with pypaimon's error."""
    _pypaimon().ask(arguments)


@cache
def _pypaimon() -> LineServant:
    """Return the pypaimon process, shared by all tests of a session."""
    log = Path(tempfile.mkdtemp(prefix="pypaimon-")) / "said.log"
    return LineServant([PYPAIMON, SCRIPT, "serve"], log)


def _spelled(warehouse: Warehouse) -> str:
    return str(warehouse) if isinstance(warehouse, Path) else json.dumps(dict(warehouse))


def ipc_file(rows: pa.Table, scratch: Path) -> Path:
    path = scratch / "rows.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, rows.schema) as writer:
        writer.write_table(rows)
    return path
