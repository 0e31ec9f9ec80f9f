"""Every file of a table can be printed; any other file causes an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, open_catalog
from storage_lib.dump import dump, main
from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.io.local.local_file_io import LocalFileIO


@pytest.fixture
def table(tmp_path: Path) -> DynamicTable:
    catalog = open_catalog(str(tmp_path), {"log.system": "none"})
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("db.t", columns, primary_key=["id"])
    table.append(pa.table({"id": [1, 2], "v": ["first", "second"]}))
    table.tags.create("kept")
    table.branches.create("dev")
    table.consumers.create("etl")
    table.maintenance.analyze()
    return table


def test_every_file_of_a_table_is_printed(table: DynamicTable) -> None:
    shown = {}
    for path in Path(table.location).rglob("*"):
        if path.is_file():
            shown[path.name] = "\n".join(dump(LocalFileIO(), str(path)))
            assert shown[path.name]
    text = "\n".join(shown.values())
    for part in (
        '"commitKind": "ANALYZE"', '"highestFieldId": 1', "_NUM_ADDED_FILES", "_FILE_NAME", '"tagCreateTime"',
        "2 rows in 1 row group(s)", "v=second", '"nextSnapshot": 2', '"holder"', '"mergedRecordCount": 2',
    ):  # fmt: skip
        assert part in text, part


def test_as_many_rows_as_asked_for(table: DynamicTable) -> None:
    (data_file,) = Path(table.location).rglob("*.parquet")
    assert "v=second" not in "\n".join(dump(LocalFileIO(), str(data_file), rows=1))


def test_orc_and_avro_files_are_printed(tmp_path: Path) -> None:
    from pyarrow import orc

    from storage_lib.format.avro_container import encode_container

    orc.write_table(pa.table({"x": [1, 2]}), tmp_path / "data-x-0.orc")
    assert list(dump(LocalFileIO(), str(tmp_path / "data-x-0.orc")))[-1] == "x=2"
    schema = '{"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]}'
    (tmp_path / "data-x-0.avro").write_bytes(encode_container(schema, [{"x": 5}]))
    assert list(dump(LocalFileIO(), str(tmp_path / "data-x-0.avro"))) == ["1 rows", '{"x": 5}']


def test_deletion_vectors_and_counts_are_printed(tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path), {"log.system": "none"})
    options = {
        "deletion-vectors.enabled": "true",
        "num-sorted-run.compaction-trigger": "3",
        "num-levels": "6",
        "compaction.max-size-amplification-percent": "1000000",
        "compaction.size-ratio": "-99",
        "write-only": "true",
    }
    marked = catalog.create_table("db.marked", {"id": "INT"}, primary_key=["id"], options=options)
    marked.append(pa.table({"id": range(100)}))
    marked.compact()
    for key in (1, 3, 200):
        marked.append(pa.table({"id": [key]}))
    marked.compact(full=False)
    counted = catalog.create_table("db.counted", {"id": "INT"})
    counted.append(pa.table({"id": [7, 7]}))

    lines = [
        line
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name.startswith(("data-", "index-"))
        for line in dump(LocalFileIO(), str(path))
    ]

    assert "from byte 1: 2 deleted row(s): 1, 3" in lines
    assert any("id=7" in line and "_VALUE_COUNT=2" in line for line in lines)


def test_what_is_no_file_of_a_table_says_so(tmp_path: Path) -> None:
    def dumped(name: str, content: bytes = b"x") -> list[str]:
        (tmp_path / name).write_bytes(content)
        return list(dump(LocalFileIO(), str(tmp_path / name)))

    with pytest.raises(NotFoundError, match="no such file"):
        list(dump(LocalFileIO(), str(tmp_path / "snapshot-1")))
    for name in ("notes.txt", "README"):
        with pytest.raises(InvalidInputError, match="not named like a file of a table"):
            dumped(name)
    with pytest.raises(InvalidInputError, match="temporary file of a writer"):
        dumped(".snapshot-1.77.tmp")
    for name in ("snapshot-1", "schema-0", "manifest-x-0", "data-x-0.parquet", "data-x-0.orc", "tag-x"):
        with pytest.raises(CorruptFileError, match=name):
            dumped(name)


def test_the_command_prints_or_says_why_not(table: DynamicTable, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{table.location}/snapshot/snapshot-1"]) == 0
    assert '"id": 1' in capsys.readouterr().out
    assert main([f"{table.location}/nothing"]) == 2
    assert "no such file" in capsys.readouterr().err
    command = [sys.executable, "-m", "storage_lib.dump", f"{table.location}/schema/schema-0"]
    assert '"primaryKeys"' in subprocess.run(command, capture_output=True, text=True, check=True).stdout
