"""Paimon's own Java core, reading and writing our tables: one JVM for all tests of a session.

The program is docker/local/paimon_core; its jar comes from `make servers`, and it is recompiled when it has changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Self, TypeAlias

from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.row_kind import RowKind
from tests.support.java_servant import CHECKOUT, LOCAL, rows_from_wire, rows_to_wire, start, to_wire
from tests.support.java_servant import SOURCES as PROGRAMS

SOURCES = PROGRAMS / "paimon_core"
HOME = LOCAL / "paimon_core"
# If keys move between partitions, Paimon stores them in RocksDB, which Spark's jars contain.
SPARK_JARS = Path(str(distribution("pyspark").locate_file("pyspark/jars")))

__all__ = ["CHECKOUT", "HOME", "SOURCES", "PaimonCore"]

Values = Sequence[Sequence[Any]]
Warehouse: TypeAlias = Path | Mapping[str, str]
"""Directory, or the options of another catalog, such as a REST catalog."""


class PaimonCore:
    """Client of Paimon's Java core. Commands may raise ``RefusedError``. Skips the test if the jar is not available."""

    def __init__(self) -> None:
        self._servant = start(
            "PaimonCore", HOME, SOURCES, heap="512m", more_jars=sorted(SPARK_JARS.glob("rocksdbjni-*.jar"))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servant.close()

    def create(self, warehouse: Warehouse, identifier: str, schema: TableSchema) -> None:
        """Create a table with the schema's fields, keys and options, without rows."""
        wanted = json.loads(schema.to_json())
        self._ask("create", warehouse, identifier, schema=wanted)

    def write(
        self,
        warehouse: Warehouse,
        identifier: str,
        rows: Values,
        schema: TableSchema,
        kinds: Sequence[RowKind] | None = None,
        *,
        overwrite: Mapping[str, str] | None = None,
    ) -> None:
        """Commit rows given as tuples in schema order; ``overwrite`` names a partition to replace."""
        types = [field.type for field in schema.fields]
        wire = rows_to_wire(rows, types)
        codes = [int(kind) for kind in kinds or [RowKind.INSERT] * len(rows)]
        more = {} if overwrite is None else {"overwrite": dict(overwrite)}
        self._ask("write", warehouse, identifier, rows=wire, kinds=codes, **more)

    def read(
        self,
        warehouse: Warehouse,
        identifier: str,
        schema: TableSchema,
        *,
        options: Mapping[str, str] | None = None,
        equal: tuple[str, Any] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Return rows as tuples as from ``pa.Table.to_pylist``, with nanoseconds truncated.

        ``options`` apply to this read only (``scan.snapshot-id``); ``equal`` is a column and a value to filter by.
        """
        types = [field.type for field in schema.fields]
        more: dict[str, Any] = {"options": dict(options or {})}
        if equal is not None:
            of = next(field.type for field in schema.fields if field.name == equal[0])
            more["equal"] = [equal[0], to_wire(equal[1], of)]
        answer = self._ask("read", warehouse, identifier, **more)
        return rows_from_wire(answer["rows"], types)

    def stream(
        self, warehouse: Warehouse, identifier: str, schema: TableSchema, *, options: Mapping[str, str] | None = None
    ) -> list[tuple[RowKind, tuple[Any, ...]]]:
        """Return the rows of a streaming read from snapshot 1 to the newest, with their kinds, in order."""
        types = [field.type for field in schema.fields]
        answer = self._ask("stream", warehouse, identifier, options=dict(options or {}))
        rows = rows_from_wire(answer["rows"], types)
        return [(RowKind(kind), row) for kind, row in zip(answer["kinds"], rows, strict=True)]

    def compact(self, warehouse: Warehouse, identifier: str) -> None:
        """Run a full compaction of all buckets."""
        self._ask("compact", warehouse, identifier)

    def drop_partition(self, warehouse: Warehouse, identifier: str, partition: Mapping[str, str]) -> None:
        """Drop one partition."""
        self._ask("drop partitions", warehouse, identifier, partition=dict(partition))

    def expire(self, warehouse: Warehouse, identifier: str, *, retain_max: int) -> None:
        """Expire the oldest snapshots."""
        self._ask("expire", warehouse, identifier, retain_max=retain_max)

    def tag(self, warehouse: Warehouse, identifier: str, tag: str, snapshot_id: int) -> None:
        """Tag a snapshot."""
        self._ask("tag", warehouse, identifier, tag=tag, snapshot=snapshot_id)

    def alter(self, warehouse: Warehouse, identifier: str, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change the schema; changes are spelled as in Paimon's REST catalog: ``{"action": "addColumn", ...}``."""
        self._ask("alter", warehouse, identifier, changes=list(changes))

    def _ask(self, verb: str, warehouse: Warehouse, identifier: str, **arguments: Any) -> Any:
        place: dict[str, Any] = {"warehouse": str(warehouse)}
        if isinstance(warehouse, Mapping):
            place = {"warehouse": warehouse["warehouse"], "catalog": dict(warehouse)}
        return self._servant.ask({"verb": verb, **place, "table": identifier, **arguments})
