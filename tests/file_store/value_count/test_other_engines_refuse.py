"""Other engines would read a table with counts wrongly, as one without a key: each of them must refuse it.

Two marks cause that, for engines that check only one of them: ``merge-engine`` has a value, and data files have an
extension, that no other engine knows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.support.counted_tables import counted_schema
from tests.support.line_servant import RefusedError
from tests.support.other_readers import (
    append_with_pypaimon,
    append_with_rust,
    needs_pypaimon,
    read_with_pypaimon,
    read_with_rust,
)
from tests.support.paimon_core import PaimonCore
from tests.support.stored_table import StoredTable

IDENTIFIER = "db.t"
REASON = "this table has no primary key and counts equal rows, which only the library dynamic-tables reads"
MORE = pa.table({"id": pa.array([9], pa.int64()), "item": ["theirs"]})

pytestmark = pytest.mark.integration


@pytest.fixture(params=[{"bucket-key": "id"}, {}], ids=["by a bucket-key", "by all columns"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> StoredTable:
    root = f"{tmp_path}/db.db/t"
    schema = counted_schema(request.param)
    table = StoredTable(schema, system_environment(LocalFileIO(durable=False)), root=root)
    table.append([(1, "a"), (1, "a")])
    return table


@pytest.fixture
def marked_by_extension_only(table: StoredTable) -> StoredTable:
    """Remove the option's mark, as for an engine that ignores the option."""
    options = {key: value for key, value in table.schema.options.items() if key != "merge-engine"}
    options |= {"bucket-key": "id"}
    path = Path(table.paths.schema_path(0))
    path.write_bytes(replace(table.schema, options=options).to_json())
    return table


@pytest.mark.usefixtures("table")
def test_pypaimon_rust_refuses_the_merge_engine(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=f"Unsupported merge-engine: 'value-count .{REASON}"):
        read_with_rust(tmp_path, IDENTIFIER)


@needs_pypaimon
@pytest.mark.usefixtures("table")
def test_pypaimon_refuses_the_merge_engine(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=REASON):
        read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path)


def test_paimons_java_core_refuses_the_merge_engine(table: StoredTable, tmp_path: Path) -> None:
    with PaimonCore() as java:
        with pytest.raises(RefusedError, match=REASON):
            java.read(tmp_path, IDENTIFIER, table.schema)
        with pytest.raises(RefusedError, match=REASON):
            java.write(tmp_path, IDENTIFIER, [(9, "theirs")], table.schema)
    assert len(table.rows()) == 2


@pytest.mark.usefixtures("marked_by_extension_only")
def test_pypaimon_rust_refuses_the_extension(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="parquet-counts"):
        read_with_rust(tmp_path, IDENTIFIER)


@needs_pypaimon
@pytest.mark.usefixtures("marked_by_extension_only")
def test_pypaimon_refuses_the_extension(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Unexpected file format: parquet-counts"):
        read_with_pypaimon(tmp_path, IDENTIFIER, tmp_path)


def test_pypaimon_rust_refuses_to_write(table: StoredTable, tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=REASON):
        append_with_rust(tmp_path, IDENTIFIER, MORE)
    assert len(table.rows()) == 2


@needs_pypaimon
def test_pypaimon_refuses_to_write(table: StoredTable, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=REASON):
        append_with_pypaimon(tmp_path, IDENTIFIER, tmp_path, MORE)
    assert len(table.rows()) == 2
