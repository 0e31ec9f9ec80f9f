"""Random histories of dynamic-bucket tables, written by this library and Paimon's Java core, with a plain model."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.file_store.manifest.hash_index import HASH
from storage_lib.file_store.manifest.index_manifest import decode_index_manifest
from storage_lib.schema.placing.bucketing import key_hashes, partition_codes
from storage_lib.schema.types.row_kind import RowKind
from tests.support.paimon_core import PaimonCore

PARTITIONS = ("a", "b", "c")
KEYS = 60
Row = tuple[int, str, int | None, str | None]
COLUMNS = {"id": "BIGINT", "p": "STRING", "n": "BIGINT", "s": "STRING"}


@dataclass
class Model:
    """Expected content of the table, by key."""

    engine: str
    crosses: bool
    rows: dict[Any, Row] = field(default_factory=dict)

    def key(self, row: Row) -> Any:
        return row[0] if self.crosses else (row[0], row[1])

    def write(self, row: Row, kind: RowKind) -> None:
        key = self.key(row)
        was = self.rows.get(key)
        if kind is RowKind.DELETE:
            self.rows.pop(key, None)
        elif was is None or self.engine == "deduplicate":
            self.rows[key] = row
        elif self.engine == "partial-update":
            n = was[2] if row[2] is None else row[2]
            self.rows[key] = (row[0], was[1], n, was[3] if row[3] is None else row[3])
        elif self.engine == "aggregation":
            n = was[2] if row[2] is None else row[2] if was[2] is None else row[2] + was[2]
            self.rows[key] = (row[0], was[1], n, row[3] if row[3] is not None else was[3])

    def drop(self, partition: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[1] != partition}


class Life:
    """History of one table. If ``java`` is None, only this library writes."""

    def __init__(self, seed: int, warehouse: Path, java: PaimonCore | None) -> None:
        self.chance = random.Random(seed)  # noqa: S311  seeded
        chance = self.chance
        self.java = java
        self.warehouse = warehouse
        self.crosses = chance.random() < 0.5
        engines = ["deduplicate", "deduplicate", "partial-update", "aggregation"]
        if java is None:
            # Other engines do not see appends to such a table until they are compacted.
            engines.append("first-row")
        self.engine = chance.choice(engines)
        options = {
            "bucket": "-1",
            "merge-engine": self.engine,
            "dynamic-bucket.target-row-num": str(chance.choice([1, 3, 5, 10])),
            "num-sorted-run.compaction-trigger": str(chance.choice([2, 3, 5])),
        }
        if self.engine == "aggregation":
            options |= {"fields.n.aggregate-function": "sum"}
        # Paimon keeps a removed key in its partition until the writer is opened again.
        self.removes = java is None and self.engine in ("partial-update", "aggregation") and chance.random() < 0.5
        if self.removes:
            options[f"{self.engine}.remove-record-on-delete"] = "true"
        if chance.random() < 0.3:
            options["dynamic-bucket.initial-buckets"] = "3"
        if chance.random() < 0.3 and not self.crosses:
            options["dynamic-bucket.max-buckets"] = "4"
        # Other engines do not see uncompacted rows of such a table.
        if chance.random() < 0.3 and self.engine == "deduplicate" and java is None:
            options["deletion-vectors.enabled"] = "true"
        self.name = f"db.t{seed}"
        key = ["id"] if self.crosses else ["id", "p"]
        catalog = WarehouseCatalog(str(warehouse), {"log.system": "none"})
        self.table = catalog.create_table(self.name, COLUMNS, primary_key=key, partition_by=["p"], options=options)
        self.model = Model(self.engine, self.crosses)
        self.past: dict[int, dict[Any, Row]] = {}
        self.told: list[str] = [f"{options} crosses={self.crosses}"]

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            self.check()
            check_index(self.table)
        self.check_with_java()

    def step(self) -> None:
        chance = self.chance
        step = chance.random()
        if step < 0.62:
            self.append()
        elif step < 0.72:
            self.compact()
        elif step < 0.80:
            self.drop()
        elif step < 0.90:
            self.overwrite()
        elif step < 0.95 and self.past:
            at = chance.choice(sorted(self.past))
            self.told.append(f"rollback to {at}")
            self.table.rollback_to(snapshot_id=at, change_tracking=False)
            self.model.rows = dict(self.past[at])
        else:
            self.told.append("expire, orphans")
            self.table.maintenance.expire_snapshots(retain_last=3)
            self.past = dict(sorted(self.past.items())[-1:])
            kept = set(self.table.inspect.snapshots()["snapshot_id"].to_pylist())
            self.past = {each: rows for each, rows in self.past.items() if each in kept}
        latest = self.table.context.file_store.snapshots.latest_id()
        if latest is not None:
            self.past[latest] = dict(self.model.rows)

    def rows(self, count: int) -> tuple[list[Row], list[RowKind]]:
        chance = self.chance
        rows: list[Row] = []
        kinds: list[RowKind] = []
        for _ in range(count):
            n = chance.choice([None, chance.randrange(100)])
            s = chance.choice([None, str(chance.randrange(100))])
            rows.append((chance.randrange(KEYS), chance.choice(PARTITIONS), n, s))
            deletes = (self.engine == "deduplicate" or self.removes) and chance.random() < 0.15
            kinds.append(RowKind.DELETE if deletes else RowKind.INSERT)
        return rows, kinds

    def append(self) -> None:
        chance = self.chance
        rows, kinds = self.rows(chance.choice([1, 5, 20, 40]))
        if self.java is not None and chance.random() < 0.5:
            self.told.append(f"java writes {rows} {[k.symbol for k in kinds]}")
            self.java.write(self.warehouse, self.name, rows, self.table.schema, kinds)
        else:
            self.told.append(f"writes {rows} {[k.symbol for k in kinds]}")
            parts = sorted({0, len(rows), *(chance.randrange(len(rows)) for _ in range(2))})
            batches = [_table(rows[a:b], kinds[a:b]) for a, b in pairwise(parts)]
            self.table.append(pa.concat_tables(batches))
        for row, kind in zip(rows, kinds, strict=True):
            self.model.write(row, kind)

    def compact(self) -> None:
        if self.java is not None and self.chance.random() < 0.5:
            self.told.append("java compacts")
            self.java.compact(self.warehouse, self.name)
        else:
            self.told.append("compacts")
            self.table.compact()

    def drop(self) -> None:
        partition = self.chance.choice(PARTITIONS)
        if not any(row[1] == partition for row in self.model.rows.values()):
            return
        if self.java is not None and self.chance.random() < 0.5:
            self.told.append(f"java drops {partition}")
            self.java.drop_partition(self.warehouse, self.name, {"p": partition})
        else:
            self.told.append(f"drops {partition}")
            tracked = self.engine == "deduplicate" and self.chance.random() < 0.5
            self.table.maintenance.drop_partitions([{"p": partition}], change_tracking=tracked)
        self.model.drop(partition)

    def overwrite(self) -> None:
        """Overwrite the whole table, or one partition if each key is in a single partition."""
        chance = self.chance
        rows, _ = self.rows(chance.choice([0, 5, 30]))
        distinct = list({self.model.key(row): row for row in rows}.values())
        if self.crosses:
            self.told.append(f"overwrites all by {distinct}")
            self.table.overwrite(_table(distinct, []), partition={}, change_tracking=chance.random() < 0.5)
            self.model.rows = {self.model.key(row): row for row in distinct}
            return
        partition = chance.choice(PARTITIONS)
        distinct = list({row[0]: (row[0], partition, *row[2:]) for row in rows}.values())
        if self.java is not None and chance.random() < 0.4 and distinct:
            self.told.append(f"java overwrites {partition} by {distinct}")
            self.java.write(self.warehouse, self.name, distinct, self.table.schema, overwrite={"p": partition})
        else:
            self.told.append(f"overwrites {partition} by {distinct}")
            tracked = chance.random() < 0.5
            self.table.overwrite(_table(distinct, []), partition={"p": partition}, change_tracking=tracked)
        self.model.drop(partition)
        self.model.rows |= {self.model.key(row): row for row in distinct}

    def check(self) -> None:
        shown = sorted(map(repr, (tuple(row.values()) for row in self.table.to_arrow().to_pylist())))
        assert shown == sorted(map(repr, self.model.rows.values())), "\n".join(self.told[:1] + self.told[-4:])

    def check_with_java(self) -> None:
        if self.java is None:
            return
        shown = sorted(map(repr, self.java.read(self.warehouse, self.name, self.table.schema)))
        assert shown == sorted(map(repr, self.model.rows.values())), "\n".join(self.told)


def check_index(table: DynamicTable) -> None:
    """Check that each hash is in one bucket of its partition, and each key's hash in the bucket that holds the key."""
    snapshot = table.context.file_store.snapshots.latest()
    if snapshot is None or table.schema.crosses_partitions:
        return
    live = table.context.file_store.scan.live_files(snapshot)
    indexed: set[tuple[bytes, int]] = set()
    if snapshot.index_manifest is not None:
        path = Path(table.location.removeprefix("file://")) / "manifest" / snapshot.index_manifest
        records = decode_index_manifest(path.read_bytes(), str(path)).records
        indexed = {(each["_PARTITION"], each["_BUCKET"]) for each in records if each["_INDEX_TYPE"] == HASH}
    for partition in live.partitions:
        assert {(partition, bucket) for bucket in live.buckets_of(partition)} <= indexed
        of_buckets = table.context.file_store.hash_indexes.of_partition(snapshot, partition).of_buckets
        every = np.concatenate([np.empty(0, np.int32), *of_buckets.values()])
        assert len(np.unique(every)) == len(every)
    for split in table.new_read().plan().splits():
        of_buckets = table.context.file_store.hash_indexes.of_partition(snapshot, split.partition).of_buckets
        for batch in table.new_read().read_split(split):
            assert partition_codes(batch, table.schema)[0] == [split.partition]
            assert np.isin(key_hashes(batch, table.schema), of_buckets[split.bucket]).all()


def _table(rows: list[Row], kinds: list[RowKind]) -> pa.Table:
    columns = {name: [row[index] for row in rows] for index, name in enumerate(COLUMNS)}
    types = {"id": pa.int64(), "p": pa.string(), "n": pa.int64(), "s": pa.string()}
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    if kinds:
        arrays["_row_kind"] = pa.array([kind.symbol for kind in kinds])
    elif rows:
        arrays["_row_kind"] = pa.array(["+I"] * len(rows))
    return pa.table(arrays)
