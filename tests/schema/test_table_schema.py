from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from tests.support.schemas import schema_of

OF_ANOTHER_WRITER = b"""{"version":3,"id":0,"fields":[{"id":0,"name":"dt","type":"STRING NOT NULL"},
 {"id":1,"name":"id","type":"BIGINT NOT NULL","description":"the key"},{"id":3,"name":"price","type":"DECIMAL(10, 2)"},
 {"id":8,"name":"ltz","type":"TIMESTAMP(6) WITH LOCAL TIME ZONE","defaultValue":"now"}],"fromTheFuture":{"a":1},
 "highestFieldId":13,"partitionKeys":["dt"],"primaryKeys":["dt","id"],"options":{"bucket":"2"},"timeMillis":1795226358784}"""


def test_a_schema_of_another_writer_is_read() -> None:
    schema = TableSchema.from_json(OF_ANOTHER_WRITER)

    assert [(each.id, each.name, str(each.type)) for each in schema.fields] == [
        (0, "dt", "STRING NOT NULL"),
        (1, "id", "BIGINT NOT NULL"),
        (3, "price", "DECIMAL(10, 2)"),
        (8, "ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ]
    assert (schema.highest_field_id, schema.bucket_count, schema.time_millis) == (13, 2, 1795226358784)
    assert (schema.field("id").description, schema.field("ltz").default_value) == ("the key", "now")
    assert schema.trimmed_primary_keys == ("id",)
    assert [each.name for each in schema.key_fields] == ["id"]
    assert [each.name for each in schema.bucket_key_fields] == ["id"]
    assert [each.name for each in schema.partition_fields] == ["dt"]
    assert schema.value_fields == schema.fields


def test_a_schema_is_read_back_as_it_was_written() -> None:
    schema = schema_of(
        "dt DATE, id BIGINT, name VARCHAR(20), d DECIMAL(5, 1)", key="dt, id", partition="dt", bucket="4"
    )
    for each in (schema, replace(schema, comment="orders"), TableSchema.from_json(OF_ANOTHER_WRITER)):
        assert TableSchema.from_json(each.to_json()) == each


def test_every_key_that_some_reader_insists_on_is_written() -> None:
    written = json.loads(schema_of("id BIGINT, name STRING", key="id").to_json())

    assert written == {
        "version": 3,
        "id": 0,
        "fields": [{"id": 0, "name": "id", "type": "BIGINT NOT NULL"}, {"id": 1, "name": "name", "type": "STRING"}],
        "highestFieldId": 1,
        "partitionKeys": [],
        "primaryKeys": ["id"],
        "options": {"bucket": "1"},
        "timeMillis": 0,
    }


@pytest.mark.parametrize(("version", "buckets"), [(1, 1), (2, 1), (3, -1)])
def test_a_missing_bucket_means_what_it_meant_to_its_writer(version: int, buckets: int) -> None:
    value = json.loads(OF_ANOTHER_WRITER)
    value["version"] = version
    del value["options"]["bucket"]

    assert TableSchema.from_json(json.dumps(value).encode()).bucket_count == buckets


def test_columns_of_types_that_this_version_lacks_are_refused_by_name() -> None:
    value = json.loads(OF_ANOTHER_WRITER)
    vectors = {"type": "ARRAY", "element": {"type": "VECTOR", "element": "FLOAT", "length": 128}}
    value["fields"].append({"id": 10, "name": "tags", "type": vectors})

    with pytest.raises(InvalidInputError, match=r"'tags'.*VECTOR"):
        TableSchema.from_json(json.dumps(value).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"{}", b'{"id": 0}', OF_ANOTHER_WRITER[:-20], b"\xff"])
def test_what_is_no_schema_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        TableSchema.from_json(data)


@pytest.mark.parametrize("missing", ["id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options"])
def test_without_a_key_that_says_what_the_table_is_a_schema_is_corrupt(missing: str) -> None:
    value = json.loads(OF_ANOTHER_WRITER)
    del value[missing]

    with pytest.raises(CorruptFileError, match=missing):
        TableSchema.from_json(json.dumps(value).encode())


def test_arrow_columns_carry_nullability() -> None:
    schema = schema_of("id BIGINT, name STRING, at TIMESTAMP(3) NOT NULL", key="id")

    assert schema.arrow_schema == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("at", pa.timestamp("ms"), nullable=False),
        ]
    )


def test_a_table_is_made_of_an_arrow_schema() -> None:
    columns = pa.schema([pa.field("id", pa.int32()), pa.field("name", pa.large_string(), nullable=False)])

    schema = new_table_schema(columns, primary_keys=["id"], options={"bucket": "1"}, time_millis=7)

    assert [str(each.type) for each in schema.fields] == ["INT NOT NULL", "STRING NOT NULL"]
    assert (schema.id, schema.highest_field_id, schema.time_millis) == (0, 1, 7)


def test_an_arrow_column_that_no_table_can_have_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="'tags'"):
        new_table_schema(pa.schema([("tags", pa.list_(pa.duration("s")))]), options={"bucket": "1"}, time_millis=0)


def test_key_columns_are_in_key_order_not_in_table_order() -> None:
    schema = schema_of("a INT, b INT, p INT, c INT", key="c, p, a", partition="p")

    assert [each.name for each in schema.key_fields] == ["c", "a"]
    assert [each.name for each in schema.bucket_key_fields] == ["c", "a"]


def test_without_a_primary_key_the_whole_row_is_what_rows_are_distributed_by() -> None:
    schema = schema_of("a INT, b STRING")

    assert schema.key_fields == ()
    assert schema.bucket_key_fields == schema.fields


def test_a_schema_travels_to_other_processes() -> None:
    schema = schema_of("id BIGINT, name STRING", key="id")
    assert schema.arrow_schema.names == ["id", "name"]

    assert pickle.loads(pickle.dumps(schema)) == schema  # noqa: S301  our own bytes


def test_an_unknown_column_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match=r"'nme'.*id, name"):
        schema_of("id BIGINT, name STRING").field("nme")


@pytest.mark.parametrize(
    ("columns", "key", "partition", "options", "told"),
    [
        ("", "", "", {}, "at least one column"),
        ("id INT, id INT", "", "", {}, "'id' is declared twice"),
        ("id INT, ID INT", "", "", {}, "'id' and 'ID' differ in case only"),
        ("_row_kind STRING", "", "", {}, "reserved"),
        ("_KEY_id STRING", "", "", {}, "reserved"),
        ("_SEQUENCE_NUMBER BIGINT", "", "", {}, "reserved"),
        ("_VALUE_KIND TINYINT", "", "", {}, "reserved"),
        ("rowkind TINYINT", "", "", {}, "reserved"),
        ("kind STRING", "", "", {"row-kind.field": "kind"}, "reserved"),
        ("id INT", "nme", "", {}, "'nme' is not a column; the columns are id"),
        ("id INT", "id, id", "", {}, "named twice"),
        ("id INT", "", "dt", {}, "'dt' is not a column"),
        ("id INT, dt DATE", "id", "dt", {}, "'dt' is not in the primary key"),
        ("id INT, dt DATE", "dt", "dt", {}, "consists of partition columns only"),
        ("dt DATE", "", "dt", {}, "every column is a partition column"),
        ("id INT", "id", "", {"bucket": "0"}, "bucket is '0'"),
        ("id INT", "", "", {"bucket": "-1"}, "bucket is '-1'"),
        ("id INT", "id", "", {"bucket": "-2"}, "bucket is '-2'"),
        ("id INT", "id", "", {"bucket": "-1", "bucket_key": "id"}, "bucket-key goes with a fixed number"),
        ("id INT, dt DATE", "id", "dt", {"bucket": "-1", "sequence.field": "dt"}, "sequence.field can't be had"),
        ("id INT, dt DATE", "id", "dt", {"bucket": "-1", "ignore-delete": "true"}, "ignore-delete can't be had"),
        ("id INT", "id", "", {"bucket": "many"}, "bucket is 'many'"),
        ("id INT, n INT", "id", "", {"bucket_key": "n"}, "bucket-key names 'n'"),
        ("id INT, dt DATE", "id, dt", "dt", {"bucket_key": "dt"}, "bucket-key names 'dt'"),
        ("id INT", "id", "", {"bucket_key": "x"}, "no column 'x'"),
        ("id TIMESTAMP(9)", "id", "", {}, "6 digits"),
        ("id INT, at TIMESTAMP_LTZ(7)", "id, at", "at", {}, "6 digits"),
        ("id INT, at BYTES", "id, at", "at", {}, "make it a STRING"),
    ],
)
def test_a_table_that_would_not_work_is_refused_with_a_remedy(
    columns: str, key: str, partition: str, options: Mapping[str, str], told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told):
        schema_of(columns, key=key, partition=partition, **options)


def history(files: MemoryFileIO) -> SchemaHistory:
    return SchemaHistory(files, TablePaths("/table"))


def versions(count: int) -> Sequence[TableSchema]:
    first = schema_of("id BIGINT, name STRING", key="id")
    return [replace(first, id=number, comment=f"version {number}") for number in range(count)]


def test_a_table_that_is_not_there_has_no_schema() -> None:
    assert history(MemoryFileIO()).latest() is None
    with pytest.raises(NotFoundError, match="schema-0"):
        history(MemoryFileIO()).load(0)


def test_the_highest_version_is_the_schema_and_each_is_made_once() -> None:
    files = MemoryFileIO()
    writer, reader = history(files), history(files)
    assert reader.latest() is None

    for version in versions(12):
        assert writer.append(version)
        assert reader.latest() == version
        assert not reader.append(replace(version, comment="late"))

    assert reader.ids() == list(range(12))
    assert reader.load(3) == versions(4)[3]


def test_a_broken_schema_file_is_told_by_its_path() -> None:
    files = MemoryFileIO()
    files.write_bytes("/table/schema/schema-0", b"{}")

    with pytest.raises(CorruptFileError, match="/table/schema/schema-0"):
        history(files).latest()


def test_a_schema_copied_to_another_number_is_noticed() -> None:
    files = MemoryFileIO()
    files.write_bytes("/table/schema/schema-1", versions(1)[0].to_json())

    with pytest.raises(CorruptFileError, match="schema-1 holds the schema of id 0"):
        history(files).latest()


@pytest.mark.parametrize("declared", [{}, {"bucket-key": "item"}], ids=["by all columns", "by a bucket-key"])
def test_a_table_that_counts_rows_has_a_bucket_key_for_other_engines_and_its_own_options_for_us(
    declared: Mapping[str, str],
) -> None:
    options = {"bucket": "2", "merge-engine": "value-count", **declared}
    columns = [("day", "STRING"), ("id", "BIGINT"), ("item", "STRING")]
    schema = new_table_schema(columns, partition_keys=["day"], options=options, time_millis=0)

    stored = json.loads(schema.to_json())["options"]
    read = TableSchema.from_json(schema.to_json())

    assert stored["bucket-key"] == declared.get("bucket-key", "id")
    assert read.options == schema.options
    assert read.bucket_key_fields == schema.bucket_key_fields


def test_a_comment_is_text() -> None:
    with pytest.raises(InvalidInputError, match=r"the comment of the table is 7\.1; it has to be text"):
        new_table_schema([("id", "INT")], options={"bucket": "1"}, time_millis=0, comment=7.1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"the comment of column 'id' is 2013; it has to be text"):
        new_table_schema([("id", "INT")], options={"bucket": "1"}, time_millis=0, column_comments={"id": 2013})  # type: ignore[dict-item]


def test_a_stored_comment_that_is_a_number_is_read_as_text() -> None:
    stored = new_table_schema([("id", "INT")], options={"bucket": "1"}, time_millis=0, comment="7.1").to_json()

    assert TableSchema.from_json(stored.replace(b'"7.1"', b"7.1")).comment == "7.1"
