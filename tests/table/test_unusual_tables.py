"""Tables and batches of unusual shape: empty, many partitions, many columns, rows too large for the log."""

from __future__ import annotations

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, MemoryCatalog
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, applied, content, orders, rows, streamed


@pytest.mark.parametrize(
    "nothing",
    [
        pa.RecordBatchReader.from_batches(COLUMNS, []),
        COLUMNS.empty_table(),
        pa.RecordBatch.from_pylist([], schema=COLUMNS),
        pa.table({"dt": pa.array([], pa.string()), "id": pa.array([], pa.null()), "price": pa.array([], pa.int8())}),
    ],
    ids=["reader", "table", "batch", "other types"],
)
def test_nothing_is_written_as_nothing(nothing: pa.Table) -> None:
    table = orders()

    assert table.append(nothing) is None
    assert table.context.leases.holder() is None
    assert streamed(table) == []


def test_empty_batches_between_others_do_no_harm() -> None:
    table = orders()
    given = rows("+I a 1 10")

    table.append(pa.Table.from_batches([*given.slice(0, 0).to_batches(), *given.to_batches()], schema=given.schema))

    assert content(table) == {"a 1 10"}


def test_a_value_that_holds_no_rows_is_refused_with_the_forms_that_do() -> None:
    table = orders()

    for write in (table.append, table.overwrite):
        with pytest.raises(InvalidInputError, match=r"rows come as an Arrow table.*not as int"):
            write(1)


def test_a_null_in_the_key_is_refused_before_anything_is_written() -> None:
    table = orders()
    given = pa.table({"dt": ["a", None], "id": [1, 2], "price": [10, 20]})

    with pytest.raises(InvalidInputError, match=r"'dt' is part of the primary key.*the first is row 1"):
        table.append(given)

    assert table.inspect.snapshots().num_rows == 0
    assert table.context.leases.holder() is None
    assert streamed(table) == []


def test_a_bad_batch_after_good_ones_undoes_them_all() -> None:
    table = orders()
    good, bad = rows("+I a 1 10"), rows("+I a 2 20", "+X a 3 30")

    with pytest.raises(InvalidInputError, match="row kind"):
        table.append(pa.Table.from_batches([*good.to_batches(), *bad.to_batches()]))
    table.append(rows("+I a 4 40"))

    assert content(table) == {"a 4 40"}
    assert streamed(table) == ["+I a 4 40"]
    files = table.environment.file_io.list_directory(f"{table.location}/dt=a/bucket-0")
    assert len(files) == 1


def test_a_thousand_partitions_in_one_batch() -> None:
    table = orders(bucket="2")
    count = 1000
    given = pa.table(
        {"dt": [f"p{n % count}" for n in range(2 * count)], "id": range(2 * count), "price": [1] * 2 * count}
    )

    table.append(given)

    assert table.inspect.partitions().num_rows == count
    assert table.to_arrow().num_rows == 2 * count
    assert applied(streamed(table)) == content(table)
    dropped = table.maintenance.drop_partitions([{"dt": f"p{n}"} for n in range(count // 2)])
    assert dropped is not None
    assert table.to_arrow().num_rows == count


def test_a_table_of_a_thousand_columns() -> None:
    names = [f"c{n}" for n in range(1000)]
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), *((name, pa.int32()) for name in names)])
    table = MemoryCatalog(environment=fake_environment()).create_table("db.wide", columns, primary_key=["id"])
    given = pa.table([pa.array([1, 2]), *(pa.array([n, None], pa.int32()) for n in range(1000))], schema=columns)

    table.append(given)

    assert table.to_arrow().sort_by("id").equals(given)
    changes = table.stream(startup="from-timestamp", timestamp=0).poll()
    assert changes is not None
    assert changes.drop_columns(["_row_kind"]).sort_by("id").equals(given)
    assert table.to_arrow(columns=["c999"]).column("c999").to_pylist() in ([999, None], [None, 999])


@pytest.mark.parametrize("value", ["x" * 253, "é" * 127, "/" * 85], ids=["letters", "of two bytes", "escaped"])
@pytest.mark.parametrize("consistency", ["transactional", "eventual"])
def test_a_partition_whose_directory_would_have_too_long_a_name_is_refused_before_anything_is_written(
    value: str, consistency: str
) -> None:
    table = orders(None, **{"log.consistency": consistency})
    given = pa.table({"dt": ["a", value], "id": [1, 2], "price": [10, 20]})

    for write in (table.append, table.overwrite):
        with pytest.raises(
            InvalidInputError, match=rf"'dt' has a value of {len(value)} characters .*255 bytes at most"
        ):
            write(given)

    assert streamed(table) == []
    assert table.inspect.snapshots().num_rows == 0
    fits = pa.table({"dt": [value[:-1] if value[0] == "x" else value[:-10]], "id": [2], "price": [20]})
    table.append(fits)
    assert len(streamed(table)) == 1
