"""``insert``, ``upsert``, ``update``, ``delete`` and ``merge``, compared with a dictionary, and their errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from storage_lib import (
    AddColumn,
    AlterType,
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    RenameColumn,
    UnavailableError,
    col,
)
from storage_lib.catalog.catalog import Catalog
from storage_lib.table.builders.write_builder import WriteBuilder
from tests.support.deep_tests import thinned
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, NAME, applied, content, orders, reopened, rows, streamed

LOGS = {
    "upserts": {},
    "with rows before": {"log.changelog-mode": "all"},
    "with given rows before": {"log.changelog-mode": "all", "write.produce-update-before": "input"},
    "eventual": {"log.consistency": "eventual"},
    "none": {"log.system": "none"},
    "deletion vectors": {"log.system": "none", "deletion-vectors.enabled": "true"},
    "dynamic buckets": {"log.system": "none", "bucket": "-1", "dynamic-bucket.target-row-num": "3"},
}

Model = dict[tuple[str, int], int | None]


def _row(key: tuple[str, int], price: int | None) -> dict[str, object]:
    return {"dt": key[0], "id": key[1], "price": price}


class Life:
    """Runs random verbs on a table and on a dictionary."""

    def __init__(self, table: DynamicTable, seed: int) -> None:
        self.table, self.rng = table, random.Random(seed)  # noqa: S311  chance, not secrets
        self.model: Model = {}

    def keys(self, count: int) -> list[tuple[str, int]]:
        every = [(dt, number) for dt in "ab" for number in range(6)]
        return self.rng.sample(every, self.rng.randint(0, count))

    def price(self) -> int | None:
        return self.rng.choice([None, *range(9)])

    def insert(self) -> None:
        new: Model = {key: self.price() for key in self.keys(3)}
        given = [_row(key, price) for key, price in new.items()]
        if set(new) & set(self.model):
            with pytest.raises(InvalidInputError, match="exists"):
                self.table.insert(given)
            return
        self.table.insert(pa.Table.from_pylist(given, schema=COLUMNS))
        self.model |= new

    def upsert(self) -> None:
        new: Model = {key: self.price() for key in self.keys(5)}
        schema = {"dt": pl.String, "id": pl.Int64, "price": pl.Int64}
        self.table.upsert(pl.DataFrame([_row(*each) for each in new.items()], schema=schema))
        self.model |= new

    def upsert_keys_only(self) -> None:
        keys = self.keys(4)
        self.table.upsert(
            pa.table(
                {
                    "dt": pa.array([key[0] for key in keys], pa.string()),
                    "id": pa.array([key[1] for key in keys], pa.int32()),
                }
            ),
            partial=True,
        )
        self.model |= {key: self.model.get(key) for key in keys}

    def update(self) -> None:
        above, new = self.rng.randint(0, 8), self.price()
        doubles = self.rng.random() < 0.5
        if doubles:
            self.table.update(f"price > {above}", {"price": pl.col("price") * 2 + pl.col("id")})
        else:
            self.table.update(col("price") > above, {"price": new})
        for key, price in self.model.items():
            if price is not None and price > above:
                self.model[key] = price * 2 + key[1] if doubles else new

    def delete_matching(self) -> None:
        dt, above = self.rng.choice("ab"), self.rng.randint(0, 6)
        self.table.delete((col("dt") == dt) & (col("price") > above))
        self.model = {
            key: price for key, price in self.model.items() if key[0] != dt or price is None or price <= above
        }

    def delete_keys(self) -> None:
        keys = self.keys(4)
        self.table.delete([{"id": number, "dt": dt} for dt, number in keys] or rows().select(["dt", "id"]))
        for key in keys:
            self.model.pop(key, None)

    def merge(self) -> None:
        source: Model = {key: self.price() for key in self.keys(6)}
        matched = self.rng.choice(["update", "delete", "keep"])
        not_matched = self.rng.choice(["insert", "ignore"])
        others = self.rng.choice(["keep", "delete"])
        self.table.merge(
            pa.Table.from_pylist([_row(*each) for each in source.items()], schema=COLUMNS),
            matched=matched,  # type: ignore[arg-type]
            not_matched=not_matched,  # type: ignore[arg-type]
            not_matched_by_source=others,  # type: ignore[arg-type]
        )
        model: Model = {}
        for key, price in self.model.items():
            if key in source:
                if matched != "delete":
                    model[key] = source[key] if matched == "update" else price
            elif others == "keep":
                model[key] = price
        if not_matched == "insert":
            model |= {key: price for key, price in source.items() if key not in self.model}
        self.model = model

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.5)


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("seed", thinned(range(6), keep=2))
def test_random_verbs_leave_what_a_dictionary_holds(log: str, seed: int) -> None:
    life = Life(_new(log), seed)
    verbs = [life.insert, life.upsert, life.upsert_keys_only, life.update, life.delete_matching, life.delete_keys]
    verbs += [life.merge, life.compact]
    done: list[str] = []
    for _ in range(14):
        verb = life.rng.choice(verbs)
        done.append(verb.__name__)
        verb()
        expected = {f"{dt} {number} {'-' if price is None else price}" for (dt, number), price in life.model.items()}
        assert content(life.table) == expected, done
    if life.table.log is not None:
        assert applied(streamed(life.table)) == expected, done


def _new(log: str, catalog: Catalog | None = None) -> DynamicTable:
    options = {"bucket": "2", **LOGS[log]}
    catalog = catalog or MemoryCatalog(environment=fake_environment())
    return catalog.create_table(NAME, COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options=options)


def test_a_counted_table_changes_every_copy_of_a_row() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table(NAME, COLUMNS, options={"bucket": "1", "log.system": "none"})
    table.insert(rows("+I a 1 10", "+I a 1 10", "+I b 2 5").drop_columns(["_row_kind"]))
    table.update("price = 10", {"price": 11})
    assert sorted(table.to_arrow()["price"].to_pylist()) == [5, 11, 11]

    table.delete("price = 11")
    assert table.to_arrow()["price"].to_pylist() == [5]
    with pytest.raises(InvalidInputError, match="no primary key"):
        table.delete([{"id": 2}])
    with pytest.raises(InvalidInputError, match="no primary key"):
        table.merge(rows().drop_columns(["_row_kind"]))


def test_nothing_to_change_makes_no_snapshot_and_frees_the_lease() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    empty = COLUMNS.empty_table()

    done: list[object] = [
        table.update("price > 99", {"price": 1}),
        table.delete("price > 99"),
        table.delete([{"dt": "a", "id": 9}]),
        table.insert(empty),
        table.upsert(empty),
        table.merge(empty),
        *(verb([]) for verb in (table.append, table.insert, table.upsert, table.merge, table.delete)),
        table.merge(pd.DataFrame({"dt": ["z"], "id": [1], "price": [1]}), not_matched="ignore"),
    ]

    assert done == [None] * 12
    assert table.inspect.latest_snapshot_id() == 1
    assert table.inspect.lease_holder() is None


def test_a_deletion_lacks_no_column_where_the_whole_row_is_the_key() -> None:
    table = MemoryCatalog().create_table(NAME, {"id": "BIGINT", "item": "STRING"}, options={"log.system": "none"})
    table.append([{"id": 1, "item": "tea"}])

    with pytest.raises(InvalidInputError, match="lack 'item'"):
        table.append([{"id": 1, "_row_kind": "-D"}])

    table.append([{"id": 1, "item": None}])
    assert table.to_arrow().sort_by("item").to_pylist() == [{"id": 1, "item": "tea"}, {"id": 1, "item": None}]


def test_a_column_with_a_default_may_be_missing() -> None:
    columns = {"id": "BIGINT", "item": "STRING"}
    options = {"log.system": "none", "fields.item.default-value": "tea"}
    table = MemoryCatalog().create_table(NAME, columns, primary_key=["id"], options=options)

    table.append([{"id": 1}])
    table.insert([{"id": 2}])
    table.upsert([{"id": 3}])
    table.overwrite([{"id": 4}])

    assert table.to_arrow().to_pylist() == [{"id": 4, "item": "tea"}]


def test_rows_of_a_partial_update_table_may_lack_columns_in_every_verb() -> None:
    columns = {"id": "BIGINT", "item": "STRING", "price": "BIGINT"}
    options = {"log.system": "none", "merge-engine": "Partial-Update"}
    table = MemoryCatalog().create_table(NAME, columns, primary_key=["id"], options=options)

    table.append([{"id": 1, "item": "tea"}])
    table.append([{"id": 1, "price": 4}])
    assert table.to_arrow().to_pylist() == [{"id": 1, "item": "tea", "price": 4}]
    table.upsert([{"id": 1, "price": 5}])
    table.insert([{"id": 2, "item": "cup"}])
    assert table.to_arrow().sort_by("id")["price"].to_pylist() == [5, None]

    table.overwrite([{"id": 3, "item": "pot"}])
    assert table.to_arrow().to_pylist() == [{"id": 3, "item": "pot", "price": None}]


@pytest.mark.parametrize("engine", ["aggregation", "first-row"])
def test_an_engine_that_merges_names_a_remedy_that_it_takes(engine: str) -> None:
    columns = {"id": "BIGINT", "item": "STRING"}
    options = {"log.system": "none", "merge-engine": engine}
    table = MemoryCatalog().create_table(NAME, columns, primary_key=["id"], options=options)

    with pytest.raises(InvalidInputError, match=r"lack 'item'\. Add the columns, with nulls"):
        table.append([{"id": 1}])

    table.append([{"id": 1, "item": None}])


def test_the_same_change_commits_once() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))

    first = table.update("id = 1", {"price": pl.col("price") + 1}, commit_user="job", commit_identifier=1)
    again = table.update("id = 1", {"price": pl.col("price") + 1}, commit_user="job", commit_identifier=1)

    assert first == again
    assert content(table) == {"a 1 11"}


REFUSED: dict[str, tuple[Callable[[DynamicTable], Any], str]] = {
    "an unknown column": (lambda table: table.update("id = 1", {"prize": 1}), "no column 'prize'.*'price'"),
    "the key": (lambda table: table.update("id = 1", {"id": 1}), "part of the primary key"),
    "no values": (lambda table: table.update("id = 1", {}), "values is empty"),
    "text for a number": (lambda table: table.update("id = 1", {"price": "much"}), "is not a value of column 'price'"),
    "half a number": (lambda table: table.update("id = 1", {"price": 1.5}), "cannot hold exactly 1.5"),
    "an expression of text": (lambda table: table.update("id = 1", {"price": pl.col("dt")}), "price"),
    "an unknown name": (lambda table: table.update("id = 1", {"price": pl.col("nope")}), "cannot be computed"),
    "a mean": (lambda table: table.update("id > 0", {"price": pl.col("price").mean()}), "other rows than its own"),
    "a mean in a sum": (
        lambda table: table.update("id > 0", {"price": pl.col("price") + pl.col("price").max()}),
        "other rows than its own",
    ),
    "the row before": (lambda table: table.update("id > 0", {"price": pl.col("price").shift(1)}), "other rows"),
    "a number of rows": (lambda table: table.update("id > 0", {"price": pl.len()}), "other rows than its own"),
    "lacking columns": (lambda table: table.upsert([{"dt": "a", "id": 1}]), "lack 'price'.*partial=True"),
    "an insert that lacks columns": (lambda table: table.insert([{"dt": "a", "id": 9}]), "lack 'price'.*partial=True"),
    "an append that lacks columns": (
        lambda table: table.append([{"dt": "a", "id": 9}]),
        "lack 'price'.*upsert.*partial=True",
    ),
    "an overwrite that lacks columns": (lambda table: table.overwrite([{"dt": "a", "id": 9}]), "lack 'price'"),
    "an append whose deletion hides the lack": (
        lambda table: table.append([{"dt": "a", "id": 9, "_row_kind": "+I"}, {"dt": "a", "id": 1, "_row_kind": "-D"}]),
        "lack 'price'",
    ),
    "a lacking key": (lambda table: table.upsert([{"id": 1}], partial=True), "lack 'dt' of the primary key"),
    "a key twice": (
        lambda table: table.merge([{"dt": "a", "id": 1, "price": 1}, {"dt": "a", "id": 1, "price": 2}]),
        "several rows have the key",
    ),
    "a row kind": (lambda table: table.upsert(rows("+I a 1 10")), "no column '_row_kind'"),
    "a delete without a condition": (lambda table: table.delete(None), "None, which would match every row"),
    "an update without a condition": (lambda table: table.update(None, {"price": 1}), "match every row"),
    "a misspelt action": (
        lambda table: table.merge([{"dt": "a", "id": 1, "price": 2}], matched="delte"),  # type: ignore[arg-type]
        "matched is one of update, delete, keep, not 'delte'",
    ),
    "an unknown action for other rows": (
        lambda table: table.merge([{"dt": "a", "id": 1, "price": 2}], not_matched_by_source="remove"),  # type: ignore[arg-type]
        "not_matched_by_source is one of keep, delete",
    ),
    "an unknown column of rows": (lambda table: table.insert([{"dt": "a", "idd": 1}]), "no column 'idd'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_right_is_refused_before_anything_is_committed(case: str) -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    verb, message = REFUSED[case]

    with pytest.raises(InvalidInputError, match=message) as caught:
        verb(table)

    assert caught.value.committed is False
    assert content(table) == {"a 1 10"}
    assert table.inspect.lease_holder() is None
    table.append(rows("+I a 2 20"))


@pytest.mark.parametrize("engine", ["aggregation", "first-row"])
def test_tables_that_merge_what_is_written_refuse_changes(engine: str) -> None:
    table = orders(None, **{"merge-engine": engine, "log.system": "none"})

    with pytest.raises(InvalidInputError, match=f"merge-engine={engine}"):
        table.update("id = 1", {"price": 1})
    with pytest.raises(InvalidInputError, match=f"merge-engine={engine}"):
        table.delete("id = 1")


def test_another_writer_cannot_commit_between_the_read_and_the_write() -> None:
    table = orders(None, **{"lease.wait-timeout": "1 ms"})
    table.append(rows("+I a 1 10"))
    outcomes: list[str] = []

    def while_another_writes(prices: pl.Series) -> pl.Series:
        with pytest.raises(UnavailableError, match="change rows") as caught:
            reopened(table).append(rows("+I a 1 99"))
        outcomes.append(f"committed: {caught.value.committed}")
        return prices + 1

    table.update("id = 1", {"price": pl.col("price").map_batches(while_another_writes, return_dtype=pl.Int64)})

    assert set(outcomes) == {"committed: False"}
    assert content(table) == {"a 1 11"}
    reopened(table).append(rows("+I a 1 99"))
    assert content(table) == {"a 1 99"}


def altered_by_another(log: str, *, wider: bool) -> tuple[DynamicTable, DynamicTable]:
    """Return a table that was opened before another process added a column and wrote into it, and the altered one."""
    catalog = MemoryCatalog({} if log == "log" else {"log.system": "none"})
    catalog.create_table("shop.t", {"id": "INT", "v": "INT"}, primary_key=["id"])
    old = catalog.load_table("shop.t")
    old.append([{"id": 1, "v": 1}])
    altered = catalog.load_table("shop.t").alter(
        AddColumn("x", "STRING"), *([AlterType("v", "BIGINT")] if wider else [])
    )
    altered.append([{"id": 1, "v": 1, "x": "kept"}, {"id": 2, "v": 2**40 if wider else 2, "x": "kept"}])
    return old, altered


VERBS_OF_STORED_ROWS: dict[str, tuple[Callable[[DynamicTable], object], list[dict[str, object]]]] = {
    "update": (lambda table: table.update("id = 1", {"v": 5}), [{"id": 1, "v": 5, "x": "kept"}]),
    "partial upsert": (lambda table: table.upsert([{"id": 1, "v": 5}], partial=True), [{"id": 1, "v": 5, "x": "kept"}]),
    "merge": (lambda table: table.merge([{"id": 1, "v": 5}]), [{"id": 1, "v": 5, "x": "kept"}]),
    "delete": (lambda table: table.delete("id = 1"), []),
}


@pytest.mark.parametrize("log", ["log", "no log"])
@pytest.mark.parametrize("wider", [True, False], ids=["wider", "as wide"])
@pytest.mark.parametrize("verb", VERBS_OF_STORED_ROWS)
def test_a_table_that_was_opened_before_a_column_was_added_keeps_the_values_in_it(
    verb: str,
    wider: bool,  # noqa: FBT001
    log: str,
) -> None:
    act, expected = VERBS_OF_STORED_ROWS[verb]
    old, altered = altered_by_another(log, wider=wider)
    stream = None if altered.log is None else altered.stream(startup="latest")

    act(old)

    assert altered.to_arrow(filter="id = 1").to_pylist() == expected
    assert altered.to_arrow(filter="id = 2").to_pylist() == [{"id": 2, "v": 2**40 if wider else 2, "x": "kept"}]
    if stream is not None:
        changes = stream.poll()
        assert changes is not None
        assert {row["x"] for row in changes.to_pylist()} == {"kept"}


@pytest.mark.parametrize("columns", ["columns", "fields of a ROW"])
@pytest.mark.parametrize("verb", VERBS_OF_STORED_ROWS)
def test_a_table_that_was_opened_before_two_names_were_swapped_refuses_verbs_that_would_take_one_for_the_other(
    verb: str, columns: str
) -> None:
    catalog, path = MemoryCatalog({"log.system": "none"}), "" if columns == "columns" else "r."
    types = {"v": "INT", "w": "INT"} if columns == "columns" else {"v": "INT", "r": "ROW<v INT, w INT>"}
    catalog.create_table("shop.t", {"id": "INT", **types}, primary_key=["id"])
    old = catalog.load_table("shop.t")
    swapped = catalog.load_table("shop.t").alter(
        RenameColumn(f"{path}v", "between"), RenameColumn(f"{path}w", "v"), RenameColumn(f"{path}between", "w")
    )

    with pytest.raises(InvalidInputError, match=rf"the name of column '{path}v', '{path}w' was given to another"):
        VERBS_OF_STORED_ROWS[verb][0](old)

    assert swapped.inspect.latest_snapshot_id() is None
    VERBS_OF_STORED_ROWS[verb][0](old.refresh())


def test_a_column_that_is_added_while_an_update_begins_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = MemoryCatalog()
    table = catalog.create_table("shop.t", {"id": "INT", "v": "INT"}, primary_key=["id"])
    table.append([{"id": 1, "v": 1}])
    begin = WriteBuilder.begin

    def begun(builder: WriteBuilder, **arguments: Any) -> Any:
        monkeypatch.setattr(WriteBuilder, "begin", begin)
        catalog.load_table("shop.t").alter(AddColumn("x", "STRING")).append([{"id": 1, "v": 1, "x": "kept"}])
        return begin(builder, **arguments)

    monkeypatch.setattr(WriteBuilder, "begin", begun)
    with pytest.raises(CommitConflictError, match="run it again") as refused:
        table.update("id = 1", {"v": 2})

    assert refused.value.committed is False
    assert table.inspect.lease_holder() is None
    table.update("id = 1", {"v": 2})
    assert catalog.load_table("shop.t").to_arrow().to_pylist() == [{"id": 1, "v": 2, "x": "kept"}]


@pytest.mark.parametrize("partial", [True, False])
@pytest.mark.parametrize("log", ["upserts", "with given rows before"])
def test_rows_that_can_be_read_once_are_written(log: str, partial: bool) -> None:  # noqa: FBT001
    table = orders(None, **LOGS[log])
    table.append(rows("+I a 1 1"))
    names = ["dt", "id"] if partial else ["dt", "id", "price"]
    given = rows("+I a 1 5", "+I a 2 5").select(names)

    table.upsert(pa.RecordBatchReader.from_batches(given.schema, given.to_batches()), partial=partial)

    assert content(table) == ({"a 1 1", "a 2 -"} if partial else {"a 1 5", "a 2 5"})


def test_a_partial_upsert_of_a_part_of_a_sequence_group_is_refused() -> None:
    """Merging would set the others to null."""
    table = MemoryCatalog(environment=fake_environment()).create_table(
        "shop.orders",
        {"id": "BIGINT", "s": "INT", "n": "INT", "t": "STRING", "x": "INT"},
        primary_key=["id"],
        options={"log.system": "none", "merge-engine": "partial-update", "fields.s.sequence-group": "n,t"},
    )
    table.upsert([{"id": 1, "s": 5, "n": 1, "t": "tea", "x": 1}])

    for row, missing in (({"s": 9, "n": 2}, "'t'"), ({"n": 2, "x": 2}, "'s', 't'")):
        with pytest.raises(InvalidInputError, match=f"lack {missing}, which would become null"):
            table.upsert([{"id": 1, **row}], partial=True)
    table.upsert([{"id": 1, "x": 3}], partial=True)
    table.upsert([{"id": 1, "s": 9, "n": None, "t": "cup"}], partial=True)

    assert table.to_arrow().to_pylist() == [{"id": 1, "s": 9, "n": None, "t": "cup", "x": 3}]
