"""Content of the pages: the health of all tables of a connection, read in parallel, and the details of one table.

Opened tables are cached, so that a second request reads little more than the newest snapshot's id of each. No request
waits for the slowest table: a slow read continues in the background, and the next request shows its result. The same
holds for the state of logs. So a slow store or a broker outage does not block the page.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from dynamic_table.pages.column_changes import column_changes
from dynamic_table.pages.outside_states import log_state, source_states
from dynamic_table.pages.shown_error import shown_error
from dynamic_table.pages.slow_look import SlowLook
from dynamic_table.pages.table_graph import definition_view, table_graph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storage_lib import Catalog, DynamicTable
    from storage_lib.table.inspect.description import Description
    from storage_lib.table.inspect.table_health import TableHealth

__all__ = ["CatalogBoard"]

LOOKS_AT_ONCE = 8
LOOK_SECONDS = 0.5
LOG_LOOKS_AT_ONCE = 2
PARTITIONS_SHOWN = 1_000
BUCKETS_SHOWN = 100
SNAPSHOTS_SHOWN = 300
DESCRIBE_SECONDS = 2.0


class CatalogBoard:
    """Health and details of the tables of one catalog; thread-safe."""

    def __init__(
        self,
        catalog: Catalog,
        related: Callable[[str], Mapping[str, Any]] = lambda _: {},
        secrets: Sequence[str] = (),
    ) -> None:
        """Show the tables of ``catalog``; ``related(name)`` returns additional fields of one.

        Errors are shown without the ``secrets``.
        """
        self._catalog = catalog
        self._related = related
        self._secrets = secrets
        self._tables: dict[str, DynamicTable] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._looking: dict[str, Future[dict[str, Any]]] = {}
        self._logs: dict[str, SlowLook[dict[str, Any]]] = {}
        self._topics: dict[str, SlowLook[list[dict[str, Any]]]] = {}
        self._describing: dict[str, Future[Description]] = {}
        self._lock = threading.Lock()
        self._looks = ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="table-look")
        self._log_looks = ThreadPoolExecutor(LOG_LOOKS_AT_ONCE, thread_name_prefix="log-look")

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per table, by name. A table that can't be read has an ``error`` instead of its health.

        Returns after at most half a second; ``is_late`` marks a row that is not read yet or is from an earlier request.
        """
        names = self._catalog.list_tables()
        with self._lock:
            for absent in (self._tables.keys() | self._rows.keys() | self._looking.keys()) - set(names):
                for cache in (self._tables, self._rows, self._looking, self._logs, self._topics):
                    cache.pop(absent, None)
            for name in names:
                if name not in self._looking:
                    self._looking[name] = self._looks.submit(self._row, name)
            looking = {name: self._looking[name] for name in names}
        wait(looking.values(), LOOK_SECONDS)
        with self._lock:
            return [self._shown(name, look) for name, look in looking.items()]

    def _shown(self, name: str, look: Future[dict[str, Any]]) -> dict[str, Any]:
        if not look.done():
            return {**self._rows.get(name, {"name": name}), "is_late": True}
        if self._looking.get(name) is look:
            del self._looking[name]
        self._rows[name] = look.result()
        return self._rows[name]

    def view(self, name: str) -> dict[str, Any]:
        """Return the content of one table's page; raises StorageError if the table can't be read."""
        table = self._table(name)
        snapshots = table.inspect.snapshots()
        files = table.inspect.files()
        per_level = files.group_by(["partition", "bucket", "level"]).aggregate(
            [("file_path", "count"), ("file_size_in_bytes", "sum")]
        )
        buckets = _buckets(per_level.to_pylist())
        partitions = _partitions(table)
        return {
            "name": name,
            "describe": self._described(name, table),
            "health": _json_health(table.inspect.health()),
            "snapshots": _json_rows(snapshots.slice(max(0, snapshots.num_rows - SNAPSHOTS_SHOWN))),
            "buckets": buckets[:BUCKETS_SHOWN],
            "bucket_count": len(buckets),
            "partition_columns": list(table.schema.partition_keys),
            "partitions": partitions[-PARTITIONS_SHOWN:],
            "partition_count": len(partitions),
            "materialized": self._definition(table),
            "sources": self._sources(name, table),
            "column_changes": column_changes(table),
            "tags": [tag.name for tag in table.tags.list()],
            "branches": list(table.branches.list()),
            **self._related(name),
        }

    def graph(self, name: str) -> dict[str, Any]:
        """Return the tables up and down stream of a table; raises StorageError if the table itself can't be read.

        Returns after at most two seconds; tables that are read later appear in the next answer (``is_late``).
        """
        self._table(name)
        opening = {each: self._looks.submit(self._newest, each) for each in self._catalog.list_tables()}
        wait(opening.values(), DESCRIBE_SECONDS)
        found = {each: future.result() for each, future in opening.items() if future.done()}
        tables = {each: table for each, table in found.items() if table is not None}
        graph = table_graph(name, tables, lambda error: shown_error(error, self._secrets))
        return {**graph, "is_late": len(found) < len(opening)}

    def _newest(self, name: str) -> DynamicTable | None:
        """Return a table with its newest options; None if it can't be read, which its own row reports."""
        try:
            return self._table(name).refresh()
        except Exception as error:  # noqa: BLE001  one broken table must not hide the others
            shown_error(error, self._secrets)
            self._forget(name)
            return None

    def _definition(self, table: DynamicTable) -> dict[str, Any] | None:
        from storage_lib.schema.options.secret_text import hidden_in

        view = definition_view(table.refresh())
        return None if view is None else {**view, "query": hidden_in(view["query"], self._secrets)}

    def _described(self, name: str, table: DynamicTable) -> dict[str, str]:
        """Return the result of DESCRIBE, which also queries the log; if that is slow, a later request shows it."""
        from storage_lib.schema.options.secret_text import hidden_in

        with self._lock:
            describing = self._describing.pop(name, None) or self._log_looks.submit(table.describe)
        try:
            return {key: hidden_in(text, self._secrets) for key, text in describing.result(DESCRIBE_SECONDS).items()}
        except TimeoutError:
            with self._lock:
                self._describing[name] = describing
            return {"name": name, "file.path": table.location, "log end": "unknown: Kafka has not answered yet"}

    def _row(self, name: str) -> dict[str, Any]:
        try:
            table = self._table(name)
            health = _json_health(table.inspect.health())
            holder = table.inspect.lease_holder()
            related = self._related(name)
        except Exception as error:  # noqa: BLE001  one broken table must not hide the others
            self._forget(name)
            return {"name": name, "error": shown_error(error, self._secrets)}
        asked = {"log": self._log(name, table), "sources": self._sources(name, table)}
        return {"name": name, **health, "lease_held_by": holder, **asked, **related}

    def _table(self, name: str) -> DynamicTable:
        known = self._tables.get(name)
        if known is not None:
            try:
                known.inspect.check_still_there()
            except Exception:  # noqa: BLE001  dropped or recreated: reopening it below reports the cause
                self._forget(name)
            else:
                return known
        table = self._catalog.load_table(name)
        with self._lock:
            self._tables[name] = table
        return table

    def _forget(self, name: str) -> None:
        with self._lock:
            self._tables.pop(name, None)
            self._logs.pop(name, None)
            self._topics.pop(name, None)

    def _log(self, name: str, table: DynamicTable) -> dict[str, Any]:
        if table.log is None:
            return {"state": "none"}
        with self._lock:
            look = self._logs.setdefault(
                name, SlowLook(lambda: log_state(table, self._secrets), first={"state": "asked"})
            )
        return look.last(self._log_looks)

    def _sources(self, name: str, table: DynamicTable) -> list[dict[str, Any]]:
        from storage_lib.table.sources.source_lag import topics_read

        nothing: list[dict[str, Any]] = []
        if not topics_read(table):
            return nothing
        with self._lock:
            look = self._topics.setdefault(name, SlowLook(lambda: source_states(table, self._secrets), first=nothing))
        return look.last(self._log_looks)


def _json_health(health: TableHealth) -> dict[str, Any]:
    # `asdict` makes deep copies, which is slow for hundreds of tables.
    return {field.name: getattr(health, field.name) for field in fields(health)}


def _buckets(levels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each bucket's levels with their files and bytes; buckets with the most sorted runs come first."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for each in levels:
        key = (each["partition"], each["bucket"])
        bucket = found.setdefault(key, {"partition": key[0], "bucket": key[1], "runs": 0, "bytes": 0, "levels": []})
        files, size = each["file_path_count"], each["file_size_in_bytes_sum"]
        bucket["runs"] += files if each["level"] == 0 else 1
        bucket["bytes"] += size
        bucket["levels"].append({"level": each["level"], "files": files, "bytes": size})
    for bucket in found.values():
        bucket["levels"].sort(key=lambda level: level["level"])
    return sorted(
        found.values(), key=lambda bucket: (-bucket["runs"], -bucket["bytes"], bucket["partition"], bucket["bucket"])
    )


def _partitions(table: DynamicTable) -> list[dict[str, Any]]:
    """Return each partition's values by column, with its counts; omits partitions dropped in the meantime."""
    from storage_lib.table.inspect.system_tables import partition_spec

    counted = {row["partition"]: row for row in _json_rows(table.inspect.partitions())}
    found = [(row, partition_spec(row)) for row in table.inspect.partition_values().to_pylist()]
    return [
        {**counted[spec], "values": {name: _json_value(value) for name, value in row.items()}}
        for row, spec in found
        if spec in counted
    ]


def _json_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows with JSON values: timestamps as epoch milliseconds, other types as text."""
    return [{name: _json_value(value) for name, value in row.items()} for row in table.to_pylist()]


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "timestamp"):
        return int(value.timestamp() * 1000)
    return str(value)
