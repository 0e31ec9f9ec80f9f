"""A whole table with one damaged file: reads return correct rows, or name the damaged file."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

from storage_lib import CorruptFileError, DynamicTable, StorageError
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.fuzz.damage import damaged
from tests.support.every_file import every_file
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.orders_table import COLUMNS, NAME, rows

FORMATS = ("parquet", "orc", "avro")
Content = frozenset[str]


@dataclass(frozen=True)
class Prepared:
    """A table's files, and its rows: current, at its tag, and of its branch."""

    files: dict[str, bytes]
    content: Content
    tagged: Content
    branched: Content


@cache
def prepared(*, vectors: bool, file_format: str) -> Prepared:
    """Create a table with compacted and fresh files, a tag, a branch, a consumer, statistics and leases."""
    files = MemoryFileIO()
    options = {
        "log.system": "none",
        "bucket": "1",
        "file.format": file_format,
        "deletion-vectors.enabled": str(vectors).lower(),
    }
    table = _catalog(files, "made").create_table(
        NAME, COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options=options
    )
    table.append(rows(*(f"+I a {number} {number * 7}" for number in range(300)), "+I b 1 5"))
    table.tags.create("first")
    table.append(rows("+U a 1 11", "-D a 2 14"))
    table.compact()
    table.branches.create("dev")
    table.branches.open("dev").append(rows("+I c 9 9"))
    table.append(rows("+U a 3 33", "-D a 4 28", "+U b 1 6"))
    table.maintenance.analyze()
    table.context.file_store.consumers.put("reader", 1)
    found = {path: files.read_bytes(path) for path in every_file(files, table.location)}
    return Prepared(
        files=found,
        content=_shown(table),
        tagged=_shown(table, tag="first"),
        branched=_shown(table.branches.open("dev")),
    )


def _catalog(files: MemoryFileIO, names: str) -> WarehouseCatalog:
    return WarehouseCatalog("memory", environment=fake_environment(files, clock=FakeClock(), names=names))


def _shown(table: DynamicTable, tag: str | None = None) -> Content:
    found = table.to_arrow(tag=tag)
    return frozenset(" ".join(map(str, row.values())) for row in found.to_pylist())


def damage_one_file(chance: random.Random) -> str:
    """Damage a file of a table, use the table, and return a description of the damage. Raise if a result is wrong."""
    of = prepared(vectors=chance.random() < 0.5, file_format=chance.choice(FORMATS))
    kinds: dict[str, list[str]] = {}
    for path in sorted(of.files):
        kinds.setdefault(_kind(path), []).append(path)
    kind = chance.choice(sorted(kinds))
    path = chance.choice(kinds[kind])
    files = MemoryFileIO()
    for each, data in of.files.items():
        files.write_bytes(each, data)
    files.replace(path, damaged(of.files[path], chance))
    told = f"{kind} {path}"
    _use(files, of, kind, told)
    return told


def _use(files: MemoryFileIO, of: Prepared, kind: str, told: str) -> None:
    try:
        table = _catalog(files, "used").load_table(NAME)
    except StorageError as error:
        _check_error(error, told)
        return
    looks = (
        lambda: _is_true(_shown(table), of.content, kind, told),
        lambda: _is_true(_shown(table, tag="first"), of.tagged, kind, told),
        lambda: _is_true(_shown(table.branches.open("dev")), of.branched, kind, told),
        table.inspect.snapshots,
        table.describe,
        lambda: table.inspect.system_table("statistics"),
        lambda: table.inspect.system_table("files"),
        lambda: [each.name for each in table.tags.list()],
        table.context.file_store.consumers.load_all,
        lambda: _write(table, kind, told),
    )
    for look in looks:
        try:
            look()
        except StorageError as error:
            _check_error(error, told)


def _write(table: DynamicTable, kind: str, told: str) -> None:
    table.append(rows("+I z 1 1"))
    if kind == "lease":
        assert "z 1 1" in _shown(table), f"{told}: not writable"
    table.compact()
    table.maintenance.expire_snapshots(retain_last=1)


def _is_true(found: Content, expected: Content, kind: str, told: str) -> None:
    # JSON has no checksum: a changed schema or snapshot that is still valid is another schema or snapshot.
    assert kind in ("schema", "snapshot", "tag") or found == expected, f"{told}: {sorted(found ^ expected)[:5]} differ"


def _check_error(error: StorageError, told: str) -> None:
    if isinstance(error, CorruptFileError):
        assert "/" in str(error), f"{told}: {error} names no file"


def _kind(path: str) -> str:
    directory, _, name = path.rpartition("/")
    if "/bucket-" in directory:
        return f"data{name[name.rindex('.') :]}"
    if name in ("LATEST", "EARLIEST"):
        return name
    if "/branch/" in directory:
        return "branch"
    for prefix in (
        "manifest-list",
        "index-manifest",
        "manifest",
        "snapshot",
        "schema",
        "tag",
        "stat",
        "index",
    ):
        if name.startswith(prefix):
            return prefix
    return "lease" if directory.endswith("/lease") else directory.rpartition("/")[2]


__all__ = ["FORMATS", "Prepared", "damage_one_file", "prepared"]
