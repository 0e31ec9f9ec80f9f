"""Accepted inputs, and inputs refused with column, value and remedy before anything is written."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.data_types import DataType, parse_data_type
from storage_lib.table.input import input_rows as input_rows_module
from storage_lib.table.input.input_arrays import misfit
from storage_lib.table.input.input_rows import InputRows

COLUMNS = pa.schema(
    [
        pa.field("id", pa.int32()),
        pa.field("name", pa.string(), nullable=False),
        pa.field("amount", pa.decimal128(6, 2)),
        pa.field("at", pa.timestamp("ms")),
        pa.field("on", pa.date32()),
    ]
)


@pytest.fixture(scope="module")
def schema() -> TableSchema:
    return new_table_schema(COLUMNS, primary_keys=["id"], options={"bucket": "1"}, time_millis=0)


@pytest.fixture(scope="module")
def input_rows(schema: TableSchema) -> InputRows:
    return InputRows("shop.orders", schema, "_row_kind")


def _batch(**columns: pa.Array) -> pa.RecordBatch:
    given = {"id": pa.array([1, 2]), "name": pa.array(["x", "y"]), **columns}
    return pa.RecordBatch.from_pydict({name: column for name, column in given.items() if column is not None})


def test_columns_come_in_any_order_and_missing_ones_are_null(input_rows: InputRows, schema: TableSchema) -> None:
    rows, kinds = input_rows.conform(_batch(on=pa.array([date(2013, 1, 5), None])).select(["on", "name", "id"]))

    assert rows.schema == schema.arrow_schema
    assert rows.column("amount").null_count == 2
    assert kinds.to_pylist() == [0, 0]


def test_types_are_widened_and_narrowed_where_no_value_changes(input_rows: InputRows) -> None:
    rows, _ = input_rows.conform(
        _batch(
            id=pa.array([1, 2], pa.int64()),
            name=pa.array(["x", "y"], pa.large_string()).dictionary_encode(),
            amount=pa.array([Decimal("1.5"), None], pa.decimal128(3, 1)),
            at=pa.array([5_000, None], pa.timestamp("us")),
        )
    )

    assert rows.column("id").to_pylist() == [1, 2]
    assert rows.column("name").to_pylist() == ["x", "y"]
    assert rows.column("amount").to_pylist() == [Decimal("1.50"), None]


@pytest.mark.parametrize(
    "amounts",
    [
        pa.array([3, None], pa.int64()),
        pa.array([3, None], pa.uint64()),
        pa.array([3, None], pa.int8()),
        pa.array([3.0, None]),
        pa.array([3.0, None], pa.float32()),
        pa.array(["3", None]),
        pa.array(["3.00", None], pa.large_string()),
        pa.array(["3.0", None]).dictionary_encode(),
    ],
    ids=lambda amounts: str(amounts.type),
)
def test_numbers_and_text_become_the_decimal_that_is_exactly_theirs(input_rows: InputRows, amounts: pa.Array) -> None:
    rows, _ = input_rows.conform(_batch(amount=amounts))

    assert rows.column("amount").to_pylist() == [Decimal("3.00"), None]


def test_row_kinds_are_read_from_their_column(input_rows: InputRows) -> None:
    _, kinds = input_rows.conform(_batch(_row_kind=pa.array(["-D", "+U"])))

    assert kinds.to_pylist() == [3, 2]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"nmae": pa.array([1, 2])}, r"no column 'nmae'; its columns are id, name.*Rename or drop"),
        ({"name": None}, r"lacks column 'name', which is STRING NOT NULL"),
        ({"id": pa.array(["1", "2"])}, r"column 'id' is INT NOT NULL.*input has string.*Cast"),
        ({"id": pa.array([1, 2**40])}, r"column 'id' is INT NOT NULL and can't hold every value.*1099511627776"),
        ({"id": pa.array([1, None])}, r"'id' is part of the primary key, but 1 of 2 rows.*first is row 1"),
        ({"name": pa.array([None, "y"])}, r"'name' is NOT NULL.*first is row 0"),
        ({"amount": pa.array([Decimal("1.234"), None], pa.decimal128(6, 3))}, r"column 'amount' is DECIMAL\(6, 2\)"),
        (
            {"amount": pa.array([1.25, 3.555])},
            r"'amount' is DECIMAL\(6, 2\).*3\.555 of row 1: .*data loss",
        ),
        ({"amount": pa.array([0.1 + 0.2, 1.0])}, r"0\.30000000000000004 of row 0"),
        ({"amount": pa.array([float("nan"), 1.0])}, r"nan of row 0: .*not a valid decimal"),
        ({"amount": pa.array(["1.25", "1.255"])}, r"'1\.255' of row 1: .*data loss"),
        ({"amount": pa.array(["much", "1"])}, r"'much' of row 0: .*not a valid decimal"),
        ({"amount": pa.array([1, 10_000])}, r"10000 of row 1: .*precision 6"),
        ({"amount": pa.array([True, False])}, r"column 'amount' is DECIMAL\(6, 2\).*input has bool"),
        ({"at": pa.array([1, 2], pa.timestamp("us"))}, r"column 'at' is TIMESTAMP\(3\).*lose data"),
        ({"at": pa.array([1, 2], pa.timestamp("ms", tz="UTC"))}, r"column 'at' is TIMESTAMP\(3\)"),
        ({"_row_kind": pa.array(["+I", "+X"])}, r"row 1 has '\+X'.*use one of \+I, -U, \+U, -D"),
        ({"_row_kind": pa.array(["+I", None])}, r"row 1 has None"),
        ({"_row_kind": pa.array([0, 1])}, r"'_row_kind' is int64; it has to be a string"),
    ],
)
def test_misfit_rows_are_refused_with_the_remedy(
    input_rows: InputRows, columns: dict[str, pa.Array], told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told) as refused:
        input_rows.conform(_batch(**columns))

    assert "shop.orders" in str(refused.value)


def test_text_longer_than_its_column_is_refused() -> None:
    schema = new_table_schema(
        [("id", parse_data_type("INT")), ("code", parse_data_type("VARCHAR(3)"))],
        primary_keys=["id"],
        options={"bucket": "1"},
        time_millis=0,
    )

    with pytest.raises(InvalidInputError, match=r"'code' is VARCHAR\(3\), but row 1"):
        InputRows("shop.orders", schema, "_row_kind").conform(
            pa.RecordBatch.from_pydict({"id": [1, 2], "code": ["abc", "abcd"]})
        )


def test_columns_are_checked_once_for_all_batches_that_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def noting(came: pa.DataType, wanted: DataType, name: str) -> str | None:
        checked.append(name)
        return misfit(came, wanted, name)

    monkeypatch.setattr(input_rows_module, "misfit", noting)
    schema = new_table_schema(pa.schema([("id", pa.int64())]), options={"bucket": "1"}, time_millis=0)
    input_ = InputRows("shop.orders", schema, "_row_kind")
    good, other = (pa.record_batch({"id": values}) for values in (pa.array([1], pa.int32()), pa.array([b"x"])))

    for batch in (good, good):
        input_.conform(batch)
    for _ in range(2):
        with pytest.raises(InvalidInputError):
            input_.conform(other)
    input_.conform(good)

    assert checked == ["id"] * 3
