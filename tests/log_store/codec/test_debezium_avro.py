"""Changes in Avro: other readers of ours, our reading of Debezium's, and changed schemas."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage_lib.errors import InvalidInputError
from storage_lib.log_store.codec.debezium_avro import DebeziumAvro, refuse_names
from storage_lib.log_store.codec.log_codec import CorruptRecordError
from storage_lib.log_store.codec.schema_registry import SchemaRegistry
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_type
from tests.support.every_type import EVERY_TYPE, same_rows, tables
from tests.support.kept_schemas import KeptSchemas
from tests.support.nested_values import tables as nested_tables

PATIENT = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def table(**columns: str) -> TableSchema:
    typed = [(name, parse_type(spelling)) for name, spelling in columns.items()]
    return new_table_schema(typed, primary_keys=("id",), options={"bucket": "1"}, time_millis=0)


def codec(schema: TableSchema, kept: KeptSchemas | None = None, **more: Any) -> DebeziumAvro:
    return DebeziumAvro(schema, cast("SchemaRegistry", kept or KeptSchemas()), "shop.orders", **more)


def encoded(of: DebeziumAvro, rows: pa.RecordBatch, kinds: list[int]) -> tuple[pa.Array, pa.Array]:
    parts = list(of.encode(rows, pa.array(kinds, pa.int8())))
    return pa.concat_arrays([part.keys for part in parts]), pa.concat_arrays([part.values for part in parts])


def read_by_fastavro(kept: KeptSchemas, value: bytes) -> Any:
    assert value[0] == 0
    written = fastavro.parse_schema(json.loads(kept.schema(int.from_bytes(value[1:5], "big"))))
    return fastavro.schemaless_reader(io.BytesIO(value[5:]), written, None)


def written_by_fastavro(kept: KeptSchemas, schema: dict[str, Any], *values: dict[str, Any]) -> pa.Array:
    number, parsed = kept.register("theirs", json.dumps(schema)), fastavro.parse_schema(schema)
    records = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        records.append(bytes([0]) + number.to_bytes(4, "big") + out.getvalue())
    return pa.array(records, pa.binary())


@given(tables(EVERY_TYPE), st.data())
@settings(PATIENT, max_examples=60)
def test_every_type_and_kind_survives_the_log(drawn: tuple[TableSchema, pa.RecordBatch], data: st.DataObject) -> None:
    schema, rows = drawn
    kinds = data.draw(st.lists(st.sampled_from([0, 2, 3]), min_size=len(rows), max_size=len(rows)))
    of = codec(schema)
    values = encoded(of, rows, kinds)[1] if len(rows) else pa.array([], pa.binary())

    found = of.decode(values)

    assert found.kinds.to_pylist() == kinds
    assert same_rows(found.rows, rows)


@given(nested_tables())
@settings(PATIENT, max_examples=40)
def test_nested_values_survive_the_log(drawn: tuple[TableSchema, pa.RecordBatch]) -> None:
    schema, rows = drawn
    of = codec(schema)
    values = encoded(of, rows, [0] * len(rows))[1] if len(rows) else pa.array([], pa.binary())

    assert of.decode(values).rows.to_pylist() == rows.to_pylist()


def test_others_read_envelopes_and_keys_by_their_schemas() -> None:
    schema, kept = table(id="INT", price="DECIMAL(10, 2)", at="TIMESTAMP(3)", tags="ARRAY<STRING>"), KeptSchemas()
    values = {"id": [1, 2], "price": [None, -1], "at": [5, None], "tags": [["a", None], None]}
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(values["id"], pa.int32()),
            pa.array(values["price"], pa.int64()).cast(pa.decimal128(21, 2)).cast(pa.decimal128(10, 2)),
            pa.array(values["at"], pa.timestamp("ms")),
            pa.array(values["tags"], pa.list_(pa.string())),
        ],
        schema=schema.arrow_schema,
    )

    keys, records = encoded(codec(schema, kept, avro_keys=True), rows, [RowKind.INSERT, RowKind.DELETE])

    assert [read_by_fastavro(kept, key) for key in keys.to_pylist()] == [{"id": 1}, {"id": 2}]
    first, second = (read_by_fastavro(kept, record) for record in records.to_pylist())
    assert first == {"before": None, "after": {"id": 1, "price": None, "at": 5, "tags": ["a", None]}, "op": "c"}
    assert (second["op"], second["after"], second["before"]["tags"], str(second["before"]["price"])) == (
        "d",
        None,
        None,
        "-1.00",
    )
    assert set(kept.subjects) == {"shop.orders-key", "shop.orders-value"}
    envelope = json.loads(kept.schema(kept.subjects["shop.orders-value"][0]))
    price, at = (field["type"][1] for field in envelope["fields"][0]["type"][1]["fields"][1:3])
    assert price == {
        "type": "bytes",
        "connect.version": 1,
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "precision": 10,
        "scale": 2,
        "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
        "logicalType": "decimal",
    }
    assert at == {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.Timestamp"}


def test_a_pair_is_one_record_with_the_row_before() -> None:
    schema, kept = table(id="INT", v="STRING"), KeptSchemas()
    rows = pa.RecordBatch.from_pydict({"id": [1, 1], "v": ["old", "new"]}, schema=schema.arrow_schema)
    of = codec(schema, kept, with_update_before=True)

    keys, values = encoded(of, rows, [RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER])

    assert [json.loads(key) for key in keys.to_pylist()] == [{"id": 1}]
    assert read_by_fastavro(kept, values[0].as_py()) == {
        "before": {"id": 1, "v": "old"},
        "after": {"id": 1, "v": "new"},
        "op": "u",
    }
    found = of.decode(values)
    assert (found.kinds.to_pylist(), found.rows.to_pylist()) == ([1, 2], rows.to_pylist())


def debezium(**fields: Any) -> dict[str, Any]:
    """Encode an envelope as by Debezium's MySQL connector and Confluent's converter."""
    value = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": name, "type": of} for name, of in fields.items()],
        "connect.name": "db.shop.orders.Value",
    }
    source = {
        "type": "record",
        "name": "Source",
        "namespace": "io.debezium.connector.mysql",
        "fields": [
            {"name": "version", "type": "string"},
            {"name": "snapshot", "type": [{"type": "string", "connect.default": "false"}, "null"], "default": "false"},
            {"name": "ts_ms", "type": "long"},
        ],
    }
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "db.shop.orders",
        "fields": [
            {"name": "before", "type": ["null", value], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": ["null", "long"], "default": None},
        ],
    }


SOURCE = {"version": "3.1", "snapshot": "true", "ts_ms": 7}


def named(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": meaning, **more}


def test_what_debezium_writes_is_read_by_its_meaning() -> None:
    kept = KeptSchemas()
    parameters = {"scale": "2", "connect.decimal.precision": "8"}
    written = debezium(
        id="int",
        small=named("int", "", **{"connect.type": "int16"}),
        price=["null", named("bytes", "org.apache.kafka.connect.data.Decimal", **{"connect.parameters": parameters})],
        day=["null", named("int", "io.debezium.time.Date")],
        clock=["null", named("long", "io.debezium.time.MicroTime")],
        at=["null", named("long", "io.debezium.time.MicroTimestamp")],
        logical=["null", {"type": "long", "logicalType": "timestamp-millis"}],
        zoned=["null", named("string", "io.debezium.time.ZonedTimestamp")],
        unasked=["null", {"type": "array", "items": "string"}],
    )
    row = {"small": 3, "price": b"\xff", "day": 1, "clock": 3_600_000_000, "at": 1_715_648_523_000_000}
    row |= {"logical": 1_715_648_523_000, "zoned": "2024-05-14T01:02:03Z", "unasked": ["x"], "id": 1}
    nulls = {**dict.fromkeys(row), "id": 2, "small": 4}
    values = written_by_fastavro(
        kept,
        written,
        {"before": None, "after": row, "source": SOURCE, "op": "r", "ts_ms": 1},
        {"before": row, "after": nulls, "source": SOURCE, "op": "u", "ts_ms": None},
        {"before": nulls, "after": None, "source": {**SOURCE, "snapshot": None}, "op": "d", "ts_ms": 2},
    )
    schema = table(
        id="BIGINT",
        small="INT",
        price="DECIMAL(10, 3)",
        day="DATE",
        clock="TIME(3)",
        at="TIMESTAMP(3)",
        logical="TIMESTAMP(6)",
        zoned="TIMESTAMP_LTZ(3)",
        missing="STRING",
    )

    found = codec(schema, kept).decode(pa.concat_arrays([values, pa.array([None], pa.binary())]))

    assert found.kinds.to_pylist() == [0, 1, 2, 3]
    assert found.record_indices.tolist() == [0, 1, 1, 2]
    rows = [
        {name: None if value is None else str(value) for name, value in each.items()} for each in found.rows.to_pylist()
    ]
    assert (
        rows[0]
        == rows[1]
        == {
            "id": "1",
            "small": "3",
            "price": "-0.010",
            "day": "1970-01-02",
            "clock": "01:00:00",
            "at": "2024-05-14 01:02:03",
            "logical": "2024-05-14 01:02:03",
            "zoned": "2024-05-14 01:02:03+00:00",
            "missing": None,
        }
    )
    assert rows[2] == rows[3] == {**dict.fromkeys(rows[0]), "id": "2", "small": "4"}


def test_each_record_is_read_by_the_schema_it_was_written_with() -> None:
    kept, narrow, wide = KeptSchemas(), table(id="INT", v="INT"), table(id="BIGINT", n="STRING", v="BIGINT")
    old = pa.RecordBatch.from_pydict({"id": [1, 2], "v": [10, 20]}, schema=narrow.arrow_schema)
    new = pa.RecordBatch.from_pydict({"id": [3], "n": ["x"], "v": [2**40]}, schema=wide.arrow_schema)
    before, after = encoded(codec(narrow, kept), old, [0, 3])[1], encoded(codec(wide, kept), new, [0])[1]

    found = codec(wide, kept).decode(pa.concat_arrays([before[:1], after, before[1:]]))

    assert found.rows.to_pylist() == [
        {"id": 1, "n": None, "v": 10},
        {"id": 3, "n": "x", "v": 2**40},
        {"id": 2, "n": None, "v": 20},
    ]
    assert found.kinds.to_pylist() == [0, 0, 3]
    assert codec(narrow, kept).decode(before).rows.to_pylist() == old.to_pylist()


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (b"{}", "does not begin with 0"),
        (b"\x01\x00\x00\x00\x01\x00", "does not begin with 0"),
        (b"\x00\x00\x00\x00\x01", "bytes end before"),
        (b"\x00\x00\x00\x00\x01\x00\x00\x02x", "unknown op"),
        (b"\x00\x00\x00\x00\x01\x00\x00\x02c", "another change without after"),
        (b"\x00\x00\x00\x00\x02\x02", "no before, after and op"),
        (b"\x00\x00\x00\x00\x63\x02", "has no schema of number 99"),
    ],
)
def test_the_first_record_that_is_no_change_is_named(value: bytes, complaint: str) -> None:
    schema, kept = table(id="INT", v="STRING"), KeptSchemas()
    rows = pa.RecordBatch.from_pydict({"id": [1], "v": ["a"]}, schema=schema.arrow_schema)
    good = encoded(codec(schema, kept), rows, [0])[1]
    kept.register("other", json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}))

    with pytest.raises(CorruptRecordError, match=complaint) as refused:
        codec(schema, kept).decode(pa.concat_arrays([good, pa.array([None, value], pa.binary()), good]))

    assert refused.value.index == 2


def test_values_that_do_not_fit_the_column_are_refused() -> None:
    kept = KeptSchemas()
    values = written_by_fastavro(
        kept, debezium(id="long"), {"before": None, "after": {"id": 2**40}, "source": SOURCE, "op": "c", "ts_ms": None}
    )

    with pytest.raises(CorruptRecordError, match="column 'id' is INT"):
        codec(table(id="INT"), kept).decode(values)
    with pytest.raises(CorruptRecordError, match="column 'n' is null or missing, but NOT NULL"):
        codec(table(id="BIGINT", n="INT NOT NULL"), kept).decode(values)


def test_names_that_avro_does_not_know_are_refused() -> None:
    refuse_names(table(id="INT", _v1="INT"))
    with pytest.raises(InvalidInputError, match="column 'a b' can't be in an Avro log"):
        refuse_names(table(id="INT", **{"a b": "INT"}))
