"""`make bench ONLY=incremental` at tiny sizes, its check of answers, and its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import incremental
from benchmarks.incremental_work.answer_check import AnswerCheck, WrongRowsError
from benchmarks.incremental_work.nexmark_events import COLUMNS, ROUND, events
from benchmarks.incremental_work.nexmark_freshness import RefreshCommit, SourceCommit, freshness
from benchmarks.incremental_work.nexmark_texts import LEFT_OUT, in_flink_sql, nexmark_queries, tables_in
from benchmarks.incremental_work.parquet_copies import ParquetCopies
from benchmarks.incremental_work.refresh_functions import RefreshFunctions
from benchmarks.incremental_work.report import large_table, nexmark_table, picture_of, tpch_table
from benchmarks.tpch_work.upserted_table import with_plain_strings
from tests.benchmarks.tiny_tpch import write_tiny_tpch

CHECKOUT = Path(__file__).parents[2]


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = [f"--{name}={tmp_path / name}" for name in ("directory", "results")]
    command = [sys.executable, "-m", "benchmarks.incremental", "--memory", "1g", *words, *places]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


@pytest.mark.spark
@pytest.mark.integration
def test_the_sums_of_a_large_table_are_measured_and_right(tmp_path: Path) -> None:
    done = run(tmp_path, "--works", "large", "--rows", "3000", "--refreshes", "2")

    assert done.returncode == 0, done.stderr
    assert_sums(json.loads((tmp_path / "results" / "incremental.json").read_text()))


@pytest.mark.deep
@pytest.mark.spark
@pytest.mark.integration
def test_every_work_is_measured_and_its_answers_are_right(tmp_path: Path) -> None:
    write_tiny_tpch(tmp_path / "data")
    tpch = ("--scale", "0.0003", "--pairs", "1", "--warm-ups", "0", f"--data={tmp_path / 'data'}")
    nexmark = ("--rates", "200", "--seconds", "20")
    large = ("--rows", "3000", "--refreshes", "2")

    done = run(tmp_path, "--queries", "Q03,Q06,q02", *tpch, *nexmark, *large)

    assert done.returncode == 0, done.stderr
    records: list[dict[str, Any]] = json.loads((tmp_path / "results" / "incremental.json").read_text())
    of_tpch = [(each["query"], each["function"], each["mode"]) for each in records if each["work"] == "tpch"]
    assert of_tpch[:2] == [("Q03", "load", "full"), ("Q06", "load", "full")]
    assert of_tpch[2:4] == [("Q03", "RF1", "incremental"), ("Q06", "RF1", "incremental")]
    assert of_tpch[4:] == [("Q03", "RF2", "incremental"), ("Q06", "RF2", "incremental")]
    [ages] = [each for each in records if each["work"] == "nexmark"]
    assert (ages["query"], ages["mode"]) == ("q02", "incremental")
    assert 0 < ages["since_commit_p50"] <= ages["since_commit_p99"] < ages["since_creation_p99"] + 1
    assert_sums(records)
    assert (tmp_path / "results" / "incremental.svg").read_text() == picture_of(records)
    assert [len(table(records)) for table in (tpch_table, nexmark_table, large_table)] == [3, 2, 2]


def assert_sums(records: list[dict[str, Any]]) -> None:
    sums = [each for each in records if each["work"] == "large table"]
    assert [each["mode"] for each in sums] == ["full", "incremental", "incremental"]
    assert sums[-1]["rows_read"] == 2000
    assert all(each["jvm_bytes"] > each["driver_bytes"] > 0 for each in sums)


def test_a_query_that_was_left_out_is_refused_with_its_reason(tmp_path: Path) -> None:
    done = run(tmp_path, "--queries", "q12")

    assert done.returncode == 2
    assert LEFT_OUT["q12"] in done.stderr
    assert not (tmp_path / "results").exists()


def check(text: str, found: pa.Table) -> int:
    checked = AnswerCheck()
    checked.set_rows("t", pa.table({"k": [1, 1, 2], "x": [0.1, 0.2, 0.3], "n": [3, 3, None]}))
    return checked.check("answer", text, found)


def test_equal_bags_of_rows_pass_in_any_order() -> None:
    assert check("SELECT k, n FROM t", pa.table({"k": [2, 1, 1], "n": [None, 3, 3]})) == 3


@pytest.mark.parametrize(
    "found",
    [
        {"k": [2, 1], "n": [None, 3]},
        {"k": [2, 1, 1, 1], "n": [None, 3, 3, 3]},
        {"k": [2, 2, 1], "n": [None, None, 3]},
        {"k": [2, 1, 1], "n": [0, 3, 3]},
        {"k": [2, 1, 1], "n": [None, 3, 4]},
    ],
)
def test_a_missing_a_repeated_and_a_changed_row_fail(found: dict[str, list[int | None]]) -> None:
    with pytest.raises(WrongRowsError, match="first differences"):
        check("SELECT k, n FROM t", pa.table(found))


def test_other_columns_fail() -> None:
    with pytest.raises(WrongRowsError, match="has the columns k"):
        check("SELECT k, n FROM t", pa.table({"k": [1, 1, 2]}))


def test_only_a_double_may_differ_in_its_last_digits() -> None:
    assert check("SELECT k, sum(x) AS s FROM t GROUP BY k", pa.table({"k": [1, 2], "s": [0.3, 0.3]})) == 2
    with pytest.raises(WrongRowsError):
        check("SELECT k, sum(x) AS s FROM t GROUP BY k", pa.table({"k": [1, 2], "s": [0.3000001, 0.3]}))
    with pytest.raises(WrongRowsError):
        check("SELECT k, sum(x) AS s FROM t GROUP BY k", pa.table({"k": [1, 3], "s": [0.3, 0.3]}))


def test_a_decimal_that_spark_divided_equals_the_quotient_to_its_last_digit() -> None:
    def found(text: str) -> pa.Table:
        return pa.table({"q": pa.array([Decimal(text)], pa.decimal128(10, 4))})

    assert check("SELECT max(k) / 3 AS q FROM t", found("0.6667")) == 1
    with pytest.raises(WrongRowsError):
        check("SELECT max(k) / 3 AS q FROM t", found("0.6669"))


def tiny_functions(directory: Path) -> tuple[dict[str, pa.Table], RefreshFunctions]:
    write_tiny_tpch(directory)
    names = ("orders", "lineitem", "customer", "part", "partsupp")
    tables = {name: with_plain_strings(pq.read_table(directory / f"{name}.parquet")) for name in names}
    return tables, RefreshFunctions(tables)


def test_rf1_inserts_new_keys_and_rf2_deletes_old_ones_and_no_pair_repeats_another(tmp_path: Path) -> None:
    tables, functions = tiny_functions(tmp_path)
    loaded = set(tables["orders"]["o_orderkey"].to_pylist())
    inserted, deleted = [], []
    for pair in range(5):
        inserted += functions.new_orders(pair).orders["o_orderkey"].to_pylist()
        deleted += functions.deleted_keys(pair).to_pylist()
    assert len(inserted) == len(set(inserted)) == 5 * functions.orders_in_pair
    assert len(deleted) == len(set(deleted)) == len(inserted)
    assert not loaded & set(inserted)
    assert loaded >= set(deleted)
    assert functions.new_orders(3).lineitem.equals(tiny_functions(tmp_path)[1].new_orders(3).lineitem)


def test_new_orders_satisfy_the_constraints_of_the_specification(tmp_path: Path) -> None:
    tables, functions = tiny_functions(tmp_path)
    for pair in range(20):
        new = functions.new_orders(pair)
        assert new.orders.schema == tables["orders"].schema
        assert new.lineitem.schema == tables["lineitem"].schema
        [customer] = set(new.orders["o_custkey"].to_pylist())
        assert customer % 3
        lines = new.lineitem.to_pylist()
        assert [each["l_linenumber"] for each in lines] == list(range(1, len(lines) + 1))
        assert {each["l_orderkey"] for each in lines} == set(new.orders["o_orderkey"].to_pylist())
        prices = dict(zip(*(tables["part"][name].to_pylist() for name in ("p_partkey", "p_retailprice")), strict=True))
        offers = {tuple(row.values()) for row in tables["partsupp"].select(["ps_partkey", "ps_suppkey"]).to_pylist()}
        total = Decimal(0)
        for each in lines:
            assert each["l_extendedprice"] == each["l_quantity"] * prices[each["l_partkey"]]
            assert (each["l_partkey"], each["l_suppkey"]) in offers
            assert each["l_shipdate"] < each["l_receiptdate"]
            assert (each["l_linestatus"] == "O") == (each["l_shipdate"] > date(1995, 6, 17))
            assert (each["l_returnflag"] == "N") == (each["l_receiptdate"] > date(1995, 6, 17))
            total += each["l_extendedprice"] * (1 - each["l_discount"]) * (1 + each["l_tax"])
        states = {each["l_linestatus"] for each in lines}
        [order] = new.orders.to_pylist()
        assert order["o_orderstatus"] == (states.pop() if len(states) == 1 else "P")
        assert abs(order["o_totalprice"] - total) < Decimal("0.02") * len(lines)


def test_copies_contain_inserted_rows_and_no_deleted_ones(tmp_path: Path) -> None:
    tables, functions = tiny_functions(tmp_path / "data")
    copies = ParquetCopies(tmp_path / "data", tmp_path / "copies")
    new, old = functions.new_orders(0), functions.deleted_keys(0)

    copies.insert("orders", new.orders)
    copies.delete("orders", "o_orderkey", old)

    kept = tables["orders"].filter(pc.invert(pc.is_in(tables["orders"]["o_orderkey"], old)))
    expected = pa.concat_tables([kept, new.orders]).sort_by("o_orderkey")
    assert pq.read_table(copies.files["orders"]).sort_by("o_orderkey").to_pylist() == expected.to_pylist()
    assert len(list((tmp_path / "copies").iterdir())) == 1


def test_events_are_one_person_three_auctions_and_46_bids_of_50_and_changes_of_earlier_rows() -> None:
    created = np.arange(200 * ROUND)
    changes = [events(first, 20, created[first * ROUND : (first + 20) * ROUND]) for first in range(0, 200, 20)]
    kinds = ("+U", "-D")
    rows = {name: [row for each in changes for row in each[name].to_pylist()] for name in COLUMNS}
    inserted, deleted = (
        {name: [r["id"] for r in rows[name] if r["_row_kind"] == kind] for name in rows} for kind in kinds
    )
    assert inserted["person"] == list(range(200))
    assert set(inserted["auction"]) == set(range(600))
    assert len(inserted["auction"]) > 600
    assert inserted["bid"] == list(range(200 * 46))
    assert deleted["auction"]
    assert len(deleted["bid"]) > 3
    for each in changes:
        for table in each.values():
            assert len(set(table["id"].to_pylist())) == table.num_rows


def test_every_query_of_nexmark_is_there_or_left_out_with_a_reason() -> None:
    assert sorted([*nexmark_queries(), *LEFT_OUT]) == [f"q{number:02d}" for number in range(23)]


def test_flink_gets_the_queries_with_quoted_names_and_functions_of_its_own() -> None:
    texts = {name: in_flink_sql(text) for name, text in nexmark_queries().items()}

    assert texts["q02"] == "/* Selection */ SELECT `id`, `auction`, `price` FROM `bid` WHERE `auction` % 123 = 0"
    assert "SPLIT_INDEX(`url`, '/', 3) AS `dir1`" in texts["q22"]
    assert "CHAR_LENGTH(`url`) - CHAR_LENGTH(REPLACE(`url`, 'c', ''))" in texts["q14"]
    assert tables_in(nexmark_queries()["q05"]) == {"bid", "hop"}


_NEXMARK_AGES = {"since_commit_p50": 0.5, "since_commit_p99": 1, "since_creation_p50": 1, "since_creation_p99": 2}


def test_the_table_of_nexmark_has_the_ages_of_flink_and_the_queries_that_it_refuses_or_does_not_finish() -> None:
    ours = {"work": "nexmark", "rate": 1000, "mode": "incremental", "refresh_seconds": 0.4, **_NEXMARK_AGES}
    flink = {"work": "nexmark flink", "rate": 1000}
    records = [{**ours, "query": f"q0{number}"} for number in range(4)]
    records += [{**flink, "query": "q00", **_NEXMARK_AGES}, {**flink, "query": "q01", "refused": "because"}]
    records += [{**flink, "query": "q02", "late": "after 120 s"}]

    rows = [row[-2:] for row in nexmark_table(records)[1:]]

    assert rows == [("0.5 s", "1 s"), ("refused", "refused"), ("late", "late"), ("", "")]


def test_the_figures_of_a_part_are_stored_before_the_next_part_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parts(*_: object) -> Iterator[list[dict[str, Any]]]:
        work = {"work": "nexmark", "rate": 1000, "mode": "incremental", "reason": "", "rows": 1, "refreshes": 1}
        yield [{**work, "query": "q00", "refresh_seconds": 0.4, **_NEXMARK_AGES}]
        message = "the second part failed"
        raise RuntimeError(message)

    monkeypatch.setattr(incremental, "measured", parts)
    monkeypatch.setattr(
        "sys.argv",
        ["incremental", "--works", "nexmark", "--results", str(tmp_path), "--directory", str(tmp_path / "w")],
    )

    with pytest.raises(RuntimeError, match="the second part failed"):
        incremental.main()

    assert [each["query"] for each in json.loads((tmp_path / "incremental.json").read_text())] == ["q00"]


def test_the_age_of_a_change_is_that_at_the_first_refresh_that_contains_it() -> None:
    commits = [SourceCommit("bid", 5, 1000, 0, 1000, 3), SourceCommit("bid", 6, 2000, 1000, 2000, 1)]
    refreshes = [RefreshCommit(900, {"bid": 4}), RefreshCommit(3000, {"bid": 5}), RefreshCommit(5000, {"bid": 7})]

    ages = freshness(commits, refreshes, (0, 50, 100))

    assert ages.since_commit == {0: 2.0, 50: 2.0, 100: 3.0}
    assert ages.since_creation == {0: 2.0, 50: 2.75, 100: 4.0}
    with pytest.raises(ValueError, match="no refresh contains snapshot 6"):
        freshness(commits, refreshes[:2], (50,))
