"""Table that records calls: the operators' tests check the arguments passed, not the effects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from storage_lib.file_store.expire import ExpireResult
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.table.inspect.table_health import TableHealth
from storage_lib.table.protocol.table_address import TableAddress


class RecordingTable:
    """Replaces a `DynamicTable` partitioned by ``dt``. ``failures`` are raised first, one per call."""

    def __init__(self) -> None:
        self.name = "db.t"
        self.address = TableAddress(warehouse="/tables", name=self.name)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.failures: list[Exception] = []
        self.nothing_to_do = False
        self._planned: dict[str, Any] = {}
        self.tags = self.branches = SimpleNamespace(expire=lambda: ())
        self.maintenance = self.inspect = self
        self.rows = pa.table({"dt": pa.array(["a", "b"]), "v": [1, 2]})
        self.arrow_schema = self.rows.schema
        self.schema = new_table_schema(
            self.arrow_schema, primary_keys=("dt", "v"), partition_keys=("dt",), options={"bucket": "1"}, time_millis=0
        )

    def plan_compaction(self, **arguments: Any) -> list[Any]:
        self._planned = arguments
        return []

    def compact_planned(self, plan: list[Any], **arguments: Any) -> Any:
        return self._commit("compact", {"plan": plan, **self._planned, **arguments})

    def tier_log(self, **arguments: Any) -> Any:
        return self._commit("tier_log", arguments)

    def drop_partitions(self, partitions: list[dict[str, str]], **arguments: Any) -> Any:
        return self._commit("drop_partitions", {"partitions": partitions, **arguments})

    def overwrite(self, rows: pa.Table, **arguments: Any) -> Any:
        return self._commit("overwrite", {"rows": rows, **arguments})

    def expire_snapshots(self, **arguments: Any) -> Any:
        self._note("expire_snapshots", arguments)
        return ExpireResult(snapshot_count=2, data_file_count=3)

    def latest_snapshot_id(self) -> int | None:
        return None

    def health(self) -> TableHealth:
        return TableHealth(snapshot_id=7, commit_millis=1_000)

    def partition_values(self) -> pa.Table:
        return self.rows.select(["dt"])

    def new_read(self, *, filter: Any = None, snapshot_id: int | None = None) -> Any:  # noqa: A002  the table's own name
        """Return a read in which every requested partition exists."""
        split = SimpleNamespace(files=())
        snapshot = SimpleNamespace(id=snapshot_id or 7)
        return SimpleNamespace(
            plan=lambda: SimpleNamespace(snapshot=snapshot, splits=lambda: (split,) if filter else ())
        )

    def to_arrow(self, **arguments: Any) -> pa.Table:
        self._note("to_arrow", arguments)
        return self.rows

    def _commit(self, verb: str, arguments: dict[str, Any]) -> Any:
        self._note(verb, arguments)
        return None if self.nothing_to_do else SimpleNamespace(id=len(self.calls))

    def _note(self, verb: str, arguments: dict[str, Any]) -> None:
        self.calls.append((verb, arguments))
        if self.failures:
            raise self.failures.pop(0)
