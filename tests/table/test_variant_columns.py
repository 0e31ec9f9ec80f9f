"""VARIANT columns: stored unchanged where no comparison is needed, refused elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from storage_lib import InvalidInputError, MemoryCatalog, WarehouseCatalog, col
from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, DropColumn, RenameColumn, SetOption
from storage_lib.schema.types.variant import VARIANT_ARROW, is_variant
from storage_lib.table.dynamic_table import DynamicTable
from tests.support.variants import NO_NAMES, number, object_of, text

COLUMNS = {"id": "BIGINT NOT NULL", "v": "VARIANT", "n": "INT"}
UNMARKED = pa.struct([("metadata", pa.large_binary()), ("value", pa.binary())])
NESTED = {"list": "ARRAY<VARIANT>", "row": "ROW<a INT, v VARIANT>", "map": "MAP<STRING, VARIANT>"}


def make_table(columns: Mapping[str, str] = COLUMNS, options: Mapping[str, str] | None = None) -> DynamicTable:
    return MemoryCatalog({"log.system": "none"}).create_table(
        "db.t", dict(columns), primary_key=["id"], options=options
    )


def put(table: DynamicTable, *rows: dict[str, Any]) -> None:
    table.append(pa.Table.from_pylist(list(rows), schema=table.arrow_schema))


def rows_of(table: DynamicTable, **more: Any) -> list[dict[str, Any]]:
    return sorted(table.to_arrow(**more).to_pylist(), key=lambda row: row["id"])


def test_variants_are_given_back_bearing_sparks_mark_whatever_the_order_of_their_parts() -> None:
    table = make_table()
    values = [object_of("a", 1), None, text("x")]
    table.append(pa.table({"id": [1, 2, 3], "v": pa.array(values, UNMARKED), "n": pa.nulls(3)}))
    put(table, {"id": 4, "v": number(-5)}, {"id": 5, "n": 1})

    for _ in range(2):
        assert [row["v"] for row in rows_of(table)] == [*values, number(-5), None]
        assert is_variant(table.to_arrow().schema.field("v").type)
        assert rows_of(table, filter=col("v").is_null())[0]["id"] == 2
        table.compact(full=True)


def test_a_table_may_be_made_of_an_arrow_schema_with_a_marked_struct() -> None:
    catalog = MemoryCatalog({"log.system": "none"})
    unmarked = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    columns = pa.schema([("id", pa.int64()), ("v", VARIANT_ARROW), ("row", unmarked)])

    table = catalog.create_table("db.t", columns, primary_key=["id"])

    assert [str(field.type) for field in table.schema.fields[1:]] == ["VARIANT", "ROW<value BYTES, metadata BYTES>"]


def test_the_files_hold_the_group_that_other_engines_write(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"], options={"file.format": "parquet"})
    put(table, {"id": 1, "v": number(1), "n": 1})

    (file,) = tmp_path.rglob("*.parquet")
    written = " ".join(str(pq.ParquetFile(file).schema).split())
    assert (
        "optional group field_id=1 v { required binary field_id=0 value; required binary field_id=1 metadata; }"
        in written
    )


def test_shredded_variants_of_another_writer_are_refused_by_name_with_the_remedy(tmp_path: Path) -> None:
    catalog = WarehouseCatalog(str(tmp_path), {"log.system": "none"})
    table = catalog.create_table("db.t", COLUMNS, primary_key=["id"])
    put(table, {"id": 1, "v": number(1), "n": 1})
    (file,) = tmp_path.rglob("*.parquet")
    written = pq.read_table(file)
    shredded = pa.array([{"metadata": NO_NAMES, "value": None, "typed_value": 1}])
    pq.write_table(written.set_column(written.column_names.index("v"), "v", shredded), file)

    with pytest.raises(InvalidInputError, match=r"Column 'v' of .*\.parquet: .*shredded.*inferShreddingSchema=false"):
        catalog.load_table("db.t").to_arrow(columns=["v"])  # some columns only: the checksum of ours is not compared


def test_variants_inside_of_other_types_are_given_back() -> None:
    table = make_table({"id": "BIGINT NOT NULL", **NESTED})
    full = {
        "id": 1,
        "list": [number(1), None, text("x")],
        "row": {"a": 1, "v": object_of("a", 2)},
        "map": [("k", number(3)), ("l", None)],
    }
    rows = [full, {"id": 2, "list": [], "row": {"a": 2, "v": None}, "map": []}, dict.fromkeys(full) | {"id": 3}]
    put(table, *rows)

    assert rows_of(table) == rows
    put(table, {"id": 2})
    table.compact(full=True)
    assert rows_of(table) == [rows[0], dict.fromkeys(full) | {"id": 2}, rows[2]]


@pytest.mark.parametrize(
    ("options", "merged"),
    [
        ({}, None),
        ({"merge-engine": "partial-update"}, text("old")),
        ({"merge-engine": "first-row"}, text("old")),
        ({"merge-engine": "aggregation"}, text("old")),
        ({"merge-engine": "aggregation", "fields.v.aggregate-function": "last_value"}, None),
        ({"merge-engine": "partial-update", "fields.n.sequence-group": "v"}, None),
    ],
    ids=str,
)
def test_engines_choose_among_variants_as_among_other_values(options: dict[str, str], merged: object) -> None:
    table = make_table(options=options)
    put(table, {"id": 1, "v": text("old"), "n": 1}, {"id": 2, "v": text("kept"), "n": 1})
    put(table, {"id": 1, "v": None, "n": 2}, {"id": 3, "v": number(3), "n": 1})

    for _ in range(2):
        assert [row["v"] for row in rows_of(table)] == [merged, text("kept"), number(3)]
        table.compact(full=True)


def test_a_row_with_a_variant_is_updated_deleted_and_looked_up() -> None:
    table = make_table()
    put(table, {"id": 1, "v": text("one")}, {"id": 2, "v": text("two")})
    before = table.inspect.snapshots()["snapshot_id"].to_pylist()[-1]

    changed = pa.Table.from_pylist([{"id": 1, "v": number(1)}], table.arrow_schema)
    table.append(changed.append_column("_row_kind", pa.array(["+U"])))
    put(table, {"id": 3, "v": number(3)})
    table.append(pa.table({"id": [2], "_row_kind": ["-D"]}))

    assert [(row["id"], row["v"]) for row in rows_of(table)] == [(1, number(1)), (3, number(3))]
    assert table.lookup(pa.table({"id": [1, 2]})).column("v").to_pylist() == [number(1)]
    net = table.changes(start_snapshot_id=before).read_all()
    assert sorted(zip(net["_row_kind"].to_pylist(), net["id"].to_pylist(), strict=True)) == [
        ("+I", 3),
        ("+U", 1),
        ("-D", 2),
    ]


def test_an_append_only_table_has_variants() -> None:
    catalog = MemoryCatalog({"log.system": "none"})
    table = catalog.create_table("db.t", COLUMNS, options={"write-mode": "append-only"})
    put(table, {"id": 1, "v": number(1)})
    put(table, {"id": 1, "v": number(1)})

    assert [row["v"] for row in rows_of(table)] == [number(1)] * 2


def test_a_variant_column_is_added_renamed_and_dropped() -> None:
    table = make_table({"id": "BIGINT NOT NULL", "n": "INT"})
    put(table, {"id": 1, "n": 1})

    table = table.alter(AddColumn("v", "VARIANT"), AddColumn("rows", "ARRAY<ROW<a VARIANT>>"))
    put(table, {"id": 2, "v": text("x"), "rows": [{"a": number(1)}]})
    table = table.alter(RenameColumn("v", "w"), RenameColumn("rows.element.a", "b"))
    put(table, {"id": 3, "w": text("y")})

    assert [row["w"] for row in rows_of(table)] == [None, text("x"), text("y")]
    assert rows_of(table)[1]["rows"] == [{"b": number(1)}]
    table = table.alter(DropColumn("w"), AddColumn("w", "VARIANT"))
    table.compact(full=True)
    assert [row["w"] for row in rows_of(table)] == [None] * 3


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"primary_key": ["v"]}, "'v' is VARIANT NOT NULL, which has no order and no hash.*key or partition column"),
        ({"primary_key": ["id", "v"], "partition_by": ["v"]}, "no order and no hash"),
        (
            {"options": {"write-mode": "append-only", "bucket": "2", "bucket-key": "v"}},
            "no order and no hash, so it can't be a bucket key",
        ),
        (
            {"primary_key": ["id"], "options": {"sequence.field": "v"}},
            "names 'v', a VARIANT, which can't be a sequence",
        ),
        (
            {"primary_key": ["id"], "options": {"merge-engine": "aggregation", "fields.v.aggregate-function": "max"}},
            "function max is for numbers, texts, dates and times, but column 'v' is VARIANT",
        ),
        ({"primary_key": ["id"], "options": {"log.system": "kafka"}}, "'v' is a VARIANT, .*Set log.system=none"),
        (
            {"primary_key": ["id"], "options": {"file.format": "orc"}},
            "file.format=orc cannot store; set file.format=parquet",
        ),
        (
            {"primary_key": ["id"], "options": {"file.format.per.level": "0:avro"}},
            "file.format=avro cannot store; set file.format=parquet",
        ),
        ({}, r"no equality, so equal rows could not be counted. Declare primary_key=\[...\], or write-mode"),
        (
            {"primary_key": ["id"], "options": {"variant.inferShreddingSchema": "true"}},
            "option variant.inferShreddingSchema=true makes other engines shred.*remove the option",
        ),
    ],
)
def test_create_refuses_a_variant_where_it_would_be_compared_or_not_stored(given: dict[str, Any], remedy: str) -> None:
    catalog = MemoryCatalog()
    given["options"] = {"log.system": "none", **given.get("options", {})}

    with pytest.raises(InvalidInputError, match=remedy):
        catalog.create_table("db.t", COLUMNS, **given)

    assert catalog.list_tables() == []


def test_a_change_of_the_schema_is_held_to_the_same() -> None:
    table = make_table()
    with pytest.raises(InvalidInputError, match=r"set file\.format=parquet"):
        table.alter(SetOption("file.format", "orc"))
    with pytest.raises(InvalidInputError, match="'v' is VARIANT, of which STRING does not hold every value"):
        table.alter(AlterType("v", "STRING"))
    counted = MemoryCatalog({"log.system": "none"}).create_table("db.u", {"id": "BIGINT"})
    with pytest.raises(InvalidInputError, match="no equality, so equal rows could not be counted"):
        counted.alter(AddColumn("v", "ARRAY<VARIANT>"))


def test_a_condition_on_what_is_in_a_variant_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=re.escape("only is_null() and is_not_null() can be asked")):
        make_table().to_arrow(filter=col("v") == "x")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (pa.array(["{}"]), "not string"),
        (
            pa.array([{"value": b"", "metadata": NO_NAMES}], VARIANT_ARROW),
            "row 0 is not a variant: its value has 0 bytes",
        ),
        (pa.array([{"value": b"\x00", "metadata": b"{}"}], VARIANT_ARROW), "metadata begins with b'{'.*parse_json"),
        (pa.array([{"value": b"\x00", "metadata": None}], UNMARKED), "row 0 has no 'metadata'"),
        (pa.array([{"value": b"\x00"}]), "not struct<value: binary>"),
        (
            pa.array([{"value": b"\x00", "metadata": NO_NAMES, "typed_value": 1}]),
            "not struct<metadata: binary, typed_value: int64, value: binary>|typed_value",
        ),
    ],
)
def test_what_is_no_variant_is_refused_before_anything_is_written(value: pa.Array, said: str) -> None:
    table = make_table()

    with pytest.raises(InvalidInputError, match=f"(?s)table db.t: column 'v' is VARIANT.*{said}"):
        table.append(pa.table({"id": [1], "v": value, "n": pa.nulls(1)}))

    assert table.inspect.snapshots().num_rows == 0


def test_a_slice_of_variants_some_of_them_null_is_taken() -> None:
    table = make_table()
    values = pa.array([number(0), None, text("x"), None], VARIANT_ARROW)
    many = pa.table({"id": range(4), "v": values, "n": pa.nulls(4)}).slice(1, 2)
    table.append(many)

    assert [row["v"] for row in rows_of(table)] == [None, text("x")]
    assert pc.is_null(table.to_arrow()["v"]).to_pylist() == [True, False]
