"""When the keys of files are merged instead of their rows, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from storage_lib import open_catalog
from storage_lib.errors import NotFoundError
from storage_lib.spark.reading import keys_merge, native_read
from storage_lib.spark.reading.file_relation import ROW_POSITION, LeftOutBits, StoredFile, relation_of
from storage_lib.spark.reading.keys_merge import KeysMergeTasks
from storage_lib.spark.reading.remembered_bits import BucketFiles, RememberedBits
from storage_lib.sql import Session
from storage_lib.table.read.left_out_rows import LeftOutRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

SUM = "SELECT sum(n) AS n, count(v) AS v FROM db.t"
BY_SPARK = "0 files (0 bytes) by Python tasks"


class Overlapping:
    """A table whose two commits overlap in all of their keys, and the merges of its keys."""

    def __init__(self, spark: SparkSession, table: DynamicTable, merges: list[list[int]]) -> None:
        self.table = table
        self.merges = merges
        self.sql = Session(spark, open_catalog(table.address.warehouse), database="db")
        self.append(range(200), n=1)
        self.append(range(0, 200, 2), n=10)

    def append(self, keys: range, *, n: int) -> None:
        columns: dict[str, Any] = {name: [n] * len(keys) for name in self.table.schema.arrow_schema.names}
        columns |= {"id": [*keys], "v": ["x"] * len(keys)}
        self.table.append(pa.table(columns, schema=self.table.schema.arrow_schema))

    def answer(self, query: str = SUM) -> tuple[Any, ...]:
        return tuple(self.sql.execute(query).to_arrow().to_pylist()[0].values())

    def plan(self, query: str = SUM) -> str:
        return str(self.sql.execute(f"EXPLAIN {query}").to_arrow().to_pylist()[0]["plan"])


@pytest.fixture
def make_overlapping(
    spark: SparkSession, make_table: Callable[..., DynamicTable], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Overlapping]]:
    """Return a function that creates ``db.t``; ``merges`` gets the buckets of each merge of keys."""
    merges: list[list[int]] = []

    def noted(key: Any, splits: Any) -> KeysMergeTasks:
        merges.append(sorted({split.bucket for task in splits for split in task}))
        return KeysMergeTasks(key, splits)

    monkeypatch.setattr(keys_merge, "KeysMergeTasks", noted)
    monkeypatch.setattr(native_read, "KEYS_AGAIN_BYTES_MIN", 0)
    monkeypatch.setattr(keys_merge, "HERE_BYTES_MAX", 0)
    made: list[Overlapping] = []

    def make(**options: Any) -> Overlapping:
        made.append(Overlapping(spark, make_table(**{"bucket": 2, "write_only": "true", **options}), merges))
        return made[0]

    yield make
    for each in made:
        each.sql.close()


def test_the_second_query_of_a_snapshot_merges_the_keys_and_others_find_them(
    make_overlapping: Callable[..., Overlapping],
) -> None:
    rows = make_overlapping()

    answers, merges = [], []
    for _ in range(3):
        answers.append(rows.answer())
        merges.append(len(rows.merges))

    assert answers == [(1100, 200)] * 3
    assert merges == [0, 1, 1]
    assert rows.merges == [[0, 1]]
    assert BY_SPARK in rows.plan()


def test_the_keys_of_small_files_are_merged_without_a_job(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_overlapping()
    monkeypatch.setattr(keys_merge, "HERE_BYTES_MAX", 1_000_000)

    assert rows.plan().endswith(" by Python tasks, which will merge only their keys, for Spark's readers")
    assert rows.answer(f"{SUM} WHERE id IN (4, 5)") == (11, 2)
    assert BY_SPARK not in rows.plan(f"{SUM} WHERE id IN (4, 5)"), "a search for keys is not remembered"
    assert rows.answer() == (1100, 200)

    assert BY_SPARK in rows.plan()
    assert rows.merges == []


def test_a_merge_of_few_bytes_in_many_files_stays_a_merge_of_rows(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_overlapping()
    monkeypatch.setattr(native_read, "KEYS_AGAIN_BYTES_MIN", 1_000_000)

    assert [rows.answer(), rows.answer(), rows.answer()] == [(1100, 200)] * 3
    assert rows.merges == []


def test_explain_merges_no_keys(make_overlapping: Callable[..., Overlapping]) -> None:
    rows = make_overlapping()
    rows.answer()

    assert ": 0 files (0 bytes) by Spark's readers" in rows.plan()
    assert rows.plan().endswith(" by Python tasks, which will merge only their keys, for Spark's readers")
    assert rows.merges == []


def test_a_write_into_one_bucket_leaves_the_keys_of_the_others_merged(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    monkeypatch.setattr(native_read, "replaced_frame", lambda *_: None)
    rows = make_overlapping()
    rows.answer()
    rows.append(range(4, 5), n=100)

    assert rows.answer() == (1190, 200)

    assert rows.merges[0] == [0, 1]
    assert [len(each) for each in rows.merges] == [2, 1]


def test_a_query_of_a_few_keys_merges_no_other_keys(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    rows = make_overlapping()

    assert rows.answer(f"{SUM} WHERE id IN (4, 5)") == (11, 2)
    assert rows.merges == []
    # A join says of its keys that they are not null.
    assert rows.answer("SELECT sum(a.n), count(*) FROM db.t a JOIN db.t b ON a.id = b.n") == (1100, 200)
    assert rows.merges == [[0, 1]]


@pytest.mark.parametrize(
    "options",
    [{"merge_engine": "aggregation", "fields__n__aggregate_function": "max"}, {"sequence__field": "n"}],
    ids=["aggregation", "sequence field"],
)
def test_rows_that_the_keys_do_not_tell_are_merged(
    make_overlapping: Callable[..., Overlapping], options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    rows = make_overlapping(**options)
    rows.append(range(0, 200, 4), n=5)

    assert [rows.answer(), rows.answer()] == [(1100, 200)] * 2
    assert rows.merges == []


def test_files_of_orc_are_merged_by_tasks(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    rows = make_overlapping(file__format="orc")

    assert rows.answer() == (1100, 200)
    assert rows.merges == []


@pytest.mark.parametrize("bytes_here", [0, 1_000_000], ids=["by tasks", "in the driver"])
def test_a_file_that_is_gone_is_an_error_of_the_query(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch, bytes_here: int
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    monkeypatch.setattr(keys_merge, "HERE_BYTES_MAX", bytes_here)
    rows = make_overlapping(bucket=1)
    file = min(Path(rows.table.location).rglob("*.parquet"))
    file.unlink()

    with pytest.raises(NotFoundError, match=file.name):
        rows.answer()


def test_time_travel_finds_the_rows_of_its_snapshot(make_overlapping: Callable[..., Overlapping]) -> None:
    rows = make_overlapping()
    rows.append(range(50), n=1000)
    answers = {
        at: (rows.answer(f"{SUM} VERSION AS OF {at}"), rows.answer(f"{SUM} VERSION AS OF {at}")) for at in (2, 3)
    }

    assert answers == {2: ((1100, 200),) * 2, 3: ((50_825, 200),) * 2}
    assert rows.answer() == (50_825, 200)
    assert len(rows.merges) == len(answers)


def test_files_with_a_column_named_like_the_position_of_a_row_are_merged(
    make_overlapping: Callable[..., Overlapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_read, "KEYS_FIRST_BYTES_MIN", 0)
    columns = {"id": "BIGINT NOT NULL", "v": "STRING", "n": "INT", ROW_POSITION: "BIGINT"}
    rows = make_overlapping(columns=columns)
    rows.sql.execute(f"ALTER TABLE db.t DROP {ROW_POSITION}")

    assert [rows.answer(), rows.answer()] == [(1100, 200)] * 2
    assert rows.merges == []


def test_bits_are_forgotten_beyond_some_bytes_the_oldest_first() -> None:
    remembered = RememberedBits(bytes_max=1200)
    bits = {"file": LeftOutRows.at(np.array([], np.int64), 64)}
    buckets = [BucketFiles.of("table", b"", bucket, ["file"]) for bucket in range(3)]

    remembered.put(buckets[0], bits)
    remembered.put(buckets[1], bits)
    remembered.get(buckets[0])
    remembered.put(buckets[2], bits)

    assert [remembered.get(each) is not None for each in buckets] == [True, False, True]


def test_files_are_known_by_their_names_in_any_order() -> None:
    assert BucketFiles.of("t", b"", 0, ["a", "b"]) == BucketFiles.of("t", b"", 0, ["b", "a"])
    assert BucketFiles.of("t", b"", 0, ["a", "b"]) != BucketFiles.of("t", b"", 0, ["a"])


def test_relations_of_the_same_files_with_other_numbers_differ(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"n": [1, 2]}), tmp_path / name)
    struct = StructType([StructField("n", LongType())])
    files = [StoredFile(f"file:{tmp_path / name}", (tmp_path / name).stat().st_size) for name in ("a", "b")]
    one, same, other = (
        relation_of(spark, files, struct, "parquet", {}, left_out=LeftOutBits(bytes(16), bases))
        for bases in ([0, 64], [0, 64], [64, 0])
    )

    assert (one.sameSemantics(same), one.sameSemantics(other)) == (True, False)
