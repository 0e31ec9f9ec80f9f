"""Creates small tables of every kind in tests/golden/kinds: ``python -m tests.support.golden_kinds v1``.

Existing tables are never changed: they represent tables that users have. A new kind is added to the newest release.
The expected rows of each table, now and at its tag, are in ``rows``.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pyarrow as pa

from storage_lib import DynamicTable, WarehouseCatalog
from storage_lib.io.local.local_file_io import LocalFileIO
from tests.interop.engines import arrow_of, rows_of
from tests.interop.one_life import DAYS, comparable
from tests.interop.table_cases import TABLES, TableCase
from tests.support.fake_environment import fake_environment

KINDS = Path(__file__).parents[1] / "golden" / "kinds"
TAG = "kept"
WIDE = 20
"""Tables with more columns than this are written only once: their files are large."""


def names_of(release: str) -> list[str]:
    """Return the names of a release's tables."""
    return sorted(path.name for path in (KINDS / release / "golden.db").iterdir())


def golden_kind(release: str, name: str) -> DynamicTable:
    """Return a table as stored in the repository."""
    return _catalog(release).load_table(f"golden.{name}")


def shown(table: DynamicTable, tag: str | None = None) -> list[str]:
    """Return a table's rows in comparable form."""
    return comparable(rows_of(table.to_arrow(tag=tag), table.schema))


def expected(release: str, name: str) -> dict[str, list[str]]:
    """Return the expected rows, at the tag and now."""
    return dict(json.loads((KINDS / release / "rows" / f"{name}.json").read_text()))


def slug(name: str) -> str:
    """Convert the name of a case to a table name."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def make(release: str) -> None:
    """Create the tables that do not exist yet."""
    for name, case in TABLES.items():
        rows_file = KINDS / release / "rows" / f"{slug(name)}.json"
        if not rows_file.exists():
            table = _filled(_catalog(release, names=f"{release}-{slug(name)}"), slug(name), case)
            rows = {TAG: shown(table, TAG), "now": shown(table)}
            rows_file.parent.mkdir(exist_ok=True)
            rows_file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def _catalog(release: str, names: str = "again") -> WarehouseCatalog:
    environment = fake_environment(LocalFileIO(durable=False), names=names)
    return WarehouseCatalog(str(KINDS / release), {"log.system": "none"}, environment=environment)


def _filled(catalog: WarehouseCatalog, name: str, case: TableCase) -> DynamicTable:
    """Write, tag, write and compact a table; repeat the last two where that modifies old files in place."""
    options = {**({"bucket": "1"} if case.has_key else {}), **case.options}
    if options.get("deletion-vectors.enabled"):
        # Make a compaction due at two fresh runs, so that the older levels are marked but not rewritten.
        options["num-sorted-run.compaction-trigger"] = "2"
        options["compaction.max-size-amplification-percent"] = "100000"
        options["compaction.size-ratio"] = "-100"
    table = catalog.create_table(
        f"golden.{name}",
        case.types,
        primary_key=case.primary_key,
        partition_by=case.partition_by,
        options={**options, "write-only": "true"},
    )
    table.append(_rows(table, case, range(4), 0))
    table.tags.create(TAG)
    if len(case.columns) > WIDE:
        return table
    table.append(_rows(table, case, (0, 1, 4), 1))
    table.compact()
    if case.options.get("deletion-vectors.enabled"):
        table.append(_rows(table, case, (1, 5), 2))
        table.append(_rows(table, case, (2, 6), 3))
        table.compact(full=False)
    return table


def _rows(table: DynamicTable, case: TableCase, numbers: range | tuple[int, ...], turn: int) -> pa.Table:
    return arrow_of([case.row(DAYS[0], number, turn) for number in numbers], table.schema)


if __name__ == "__main__":
    make(sys.argv[1])
