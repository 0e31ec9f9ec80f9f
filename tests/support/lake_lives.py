"""Tables of Delta Lake and Iceberg that are changed at random, each by the library of its own project."""

from __future__ import annotations

import random
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import Field, PrimitiveType

from tests.support.delta_vectors import mask_rows

__all__ = ["DELTA_FEATURES", "DeltaLife", "IcebergLife", "LakeLife"]

DELTA_FEATURES: tuple[dict[str, str], ...] = (
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.enableChangeDataFeed": "true"},
)
SCHEMA = pa.schema({"id": pa.int64(), "cat": pa.string(), "amount": pa.int64(), "price": pa.decimal128(10, 2)})


class LakeLife(ABC):
    """A table ``shop.orders`` below ``warehouse``; ``done`` names the changes so far."""

    kind: str

    def __init__(self, warehouse: Path, chance: random.Random) -> None:
        self.warehouse = warehouse
        self.chance = chance
        self.next_id = 0
        self.done: list[str] = []
        self.columns = list(SCHEMA)

    @property
    @abstractmethod
    def changes(self) -> list[Any]:
        """The changes that may come next, one of which is drawn."""

    @abstractmethod
    def rows(self) -> pa.Table:
        """Read the newest rows by the format's own library."""

    def step(self) -> str:
        """Change the table; return what was done."""
        change = self.chance.choice(self.changes)
        change()
        self.done.append(change.__name__)
        return self.done[-1]

    def drawn(self, count: int | None = None) -> pa.Table:
        """Draw new rows."""
        rows = [self._row(self.next_id + place) for place in range(count or self.chance.randint(1, 6))]
        self.next_id += len(rows)
        return pa.Table.from_pylist(rows, schema=pa.schema(self.columns))

    def _row(self, number: int) -> dict[str, Any]:
        row: dict[str, Any] = {each.name: self.chance.choice((None, "x", "y")) for each in self.columns[4:]}
        amount = self.chance.choice((None, *range(-3, 9)))
        cents = pa.scalar(f"{self.chance.randrange(1000)}.{self.chance.randrange(10)}0").cast(pa.decimal128(10, 2))
        return row | {
            "id": number,
            "cat": self.chance.choice(("a", "b", "c", None)),
            "amount": amount,
            "price": self.chance.choice((None, cents.as_py())),
        }

    def condition(self) -> str:
        """Draw a condition that some rows meet."""
        cat = self.chance.choice(("a", "b"))
        return self.chance.choice((f"id < {self.chance.randint(0, self.next_id)}", f"cat = '{cat}'", "amount = 3"))


class DeltaLife(LakeLife):
    """See ``LakeLife``."""

    kind = "delta"

    def __init__(self, warehouse: Path, chance: random.Random, features: dict[str, str]) -> None:
        super().__init__(warehouse, chance)
        self.path = warehouse / "shop" / "orders"
        self.features = features
        self.create()

    def create(self) -> None:
        """Create the table, in place of an earlier one."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.columns = list(SCHEMA)
        parts = self.chance.choice((None, ["cat"]))
        write_deltalake(str(self.path), self.drawn(), partition_by=parts, configuration=self.features)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(str(self.path))

    @property
    def changes(self) -> list[Any]:
        """See ``LakeLife``. delta-rs lacks some changes of tables with features."""
        common = [self.append, self.append, self.delete, self.update, self.merge, self.overwrite, self.restore]
        rare = [self.vacuum, self.create, self.checkpoint]
        kept = [*common, self.chance.choice(rare)]
        if "delta.columnMapping.mode" in self.features:
            return kept
        if "delta.enableDeletionVectors" in self.features:
            return [*kept, self.optimize, self.mask, self.mask, self.mask]
        return [*kept, self.optimize, self.widen]

    def rows(self) -> pa.Table:
        """See ``LakeLife``."""
        return pa.RecordBatchReader.from_stream(self.table.scan()).read_all()

    def append(self) -> None:
        """Add rows, some of which are equal to others in all but their ids."""
        write_deltalake(str(self.path), self.drawn(), mode="append")

    def delete(self) -> None:
        self.table.delete(self.condition())

    def update(self) -> None:
        self.table.update(predicate=self.condition(), updates={"amount": "coalesce(amount, 0) + 1"})

    def merge(self) -> None:
        """Change some rows by their ids, and add others."""
        first = self.next_id
        self.next_id = max(0, first - 3)
        new = self.drawn(5)
        merger = self.table.merge(new, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def overwrite(self) -> None:
        write_deltalake(str(self.path), self.drawn(), mode="overwrite")

    def optimize(self) -> None:
        self.table.optimize.compact()

    def vacuum(self) -> None:
        self.table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def checkpoint(self) -> None:
        self.table.create_checkpoint()

    def restore(self) -> None:
        """Go back to an earlier version, if its files are there."""
        table = self.table
        try:
            table.restore(self.chance.randint(0, table.version()))
        except DeltaError:
            self.append()
        self.columns = [pa.field(each.name, each.type) for each in pa.schema(self.table.schema().to_arrow())]

    def widen(self) -> None:
        name = f"more{self.next_id}_{len(self.columns)}"
        self.columns.append(pa.field(name, pa.string()))
        self.table.alter.add_columns([Field(name, PrimitiveType("string"))])

    def mask(self) -> None:
        """Delete a row of a file by a deletion vector, with those that were deleted before."""
        table = self.table
        vectors = {row["filepath"]: row["selection_vector"] for row in pa.table(table.deletion_vectors()).to_pylist()}
        actions = pa.table(table.get_add_actions()).to_pylist()
        if not actions:
            return
        path = self.chance.choice([each["path"] for each in actions])
        kept = next((mask for uri, mask in vectors.items() if uri.endswith(path)), None)
        rows = pq.read_metadata(self.path / path).num_rows
        mask = [*(kept or []), *[True] * rows][:rows]
        gone = [place for place, is_kept in enumerate(mask) if not is_kept] + [self.chance.randrange(rows)]
        mask_rows(self.path, table.version() + 1, path, sorted({*gone}))


class IcebergLife(LakeLife):
    """See ``LakeLife``; published as a Hadoop catalog would after each commit."""

    kind = "iceberg"

    def __init__(self, warehouse: Path, chance: random.Random, version: str) -> None:
        from pyiceberg.catalog.memory import InMemoryCatalog

        super().__init__(warehouse, chance)
        warehouse.mkdir(parents=True)
        self.catalog = InMemoryCatalog("writer", warehouse=str(warehouse))
        self.catalog.create_namespace("shop")
        self.version = version
        self.published = 0
        self.table = self.catalog.create_table("shop.orders", schema=SCHEMA, properties={"format-version": version})
        self.publish()

    def publish(self) -> None:
        """Show the newest metadata file to readers of directories."""
        newest = Path(self.table.metadata_location)
        self.published += 1
        shutil.copyfile(newest, newest.with_name(f"v{self.published}.metadata.json"))

    @property
    def changes(self) -> list[Any]:
        """See ``LakeLife``."""
        common = [self.append, self.append, self.delete, self.overwrite, self.upsert]
        return [*common, self.chance.choice((self.widen, self.rename, self.rollback, self.expire))]

    def step(self) -> str:
        """See ``LakeLife``."""
        done = super().step()
        self.publish()
        return done

    def rows(self) -> pa.Table:
        """See ``LakeLife``."""
        return self.table.scan().to_arrow()

    def append(self) -> None:
        self.table.append(self.drawn())

    def delete(self) -> None:
        self.table.delete(self.condition())

    def overwrite(self) -> None:
        self.table.overwrite(self.drawn(), overwrite_filter=self.condition())

    def upsert(self) -> None:
        """Change some rows by their ids, and add others."""
        self.next_id = max(0, self.next_id - 3)
        try:
            self.table.upsert(self.drawn(5), join_cols=["id"])
        except ValueError:
            # Some ids occur twice, after a rollback.
            self.append()

    def widen(self) -> None:
        from pyiceberg.types import StringType

        name = f"more{self.next_id}_{len(self.columns)}"
        self.columns.append(pa.field(name, pa.string()))
        with self.table.update_schema() as update:
            update.add_column(name, StringType())

    def rename(self) -> None:
        """Rename a column that no query reads."""
        if len(self.columns) == len(SCHEMA):
            self.widen()
            return
        place = self.chance.randrange(len(SCHEMA), len(self.columns))
        old, new = self.columns[place].name, f"other{self.published}_{place}"
        self.columns[place] = pa.field(new, pa.string())
        with self.table.update_schema() as update:
            update.rename_column(old, new)

    def rollback(self) -> None:
        """Make an ancestor of the current snapshot current again."""
        known = []
        snapshot = self.table.current_snapshot()
        while snapshot is not None:
            known.append(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.table.metadata.snapshot_by_id(parent)
        if len(known) > 1:
            self.table.manage_snapshots().rollback_to_snapshot(self.chance.choice(known[1:])).commit()

    def expire(self) -> None:
        """Forget all snapshots but the current one."""
        current = self.table.current_snapshot()
        others = [
            each.snapshot_id
            for each in self.table.metadata.snapshots
            if current is not None and each.snapshot_id != current.snapshot_id
        ]
        if others:
            self.table.maintenance.expire_snapshots().by_ids(others).commit()
