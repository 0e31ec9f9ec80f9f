"""Damaged files in a table's lease directory: whatever they contain, the table can be written to."""

from __future__ import annotations

import random

from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.fuzz.damage import damaged
from tests.support.every_file import every_file
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.orders_table import COLUMNS, NAME, content, rows

_NAMES = (
    "lease-",
    "lease-x",
    "lease--1",
    "lease-1.5",
    "lease-٣",
    "released-",
    "beat-x",
    "waiting-",
    "waiting-somebody",
)
_SOUND = (
    b'{"holder": "somebody", "commit_user": "u", "purpose": "append"}',
    b'{"holder": {"a": 1e999}, "commit_user": null, "purpose": []}',
    b"a-name",
)


def damage_lease_files(chance: random.Random) -> None:
    """Damage lease, beat, release and ticket files, existing and stray ones; then write to the table."""
    files = MemoryFileIO()
    table = _catalog(files, "made").create_table(
        NAME, COLUMNS, primary_key=["dt", "id"], partition_by=["dt"], options={"log.system": "none", "bucket": "1"}
    )
    for number in range(chance.randrange(1, 4)):
        table.append(rows(f"+I a {number} 1"))
    newest = table.context.leases.newest() or 0
    directory = f"{table.location}/lease"
    if chance.random() < 0.5:
        lease = table.context.leases.acquire(holder="somebody", commit_user="u", purpose="append")
        newest = lease.number
    there = [path for path in every_file(files, table.location) if path.startswith(f"{directory}/")]
    strange = [f"{directory}/{name}" for name in _NAMES]
    next_ones = [f"{directory}/{prefix}{newest + 1}" for prefix in ("lease-", "beat-", "released-")]
    paths = sorted({*there, *strange, *next_ones})
    for path in chance.sample(paths, chance.randrange(1, 5)):
        sound = files.read_bytes(path) if files.exists(path) else chance.choice(_SOUND)
        files.replace(path, damaged(sound, chance))

    used = _catalog(files, "used").load_table(NAME)
    used.append(rows("+I z 1 1"))
    assert "z 1 1" in content(used)
    assert used.context.leases.holder() is None


def _catalog(files: MemoryFileIO, names: str) -> WarehouseCatalog:
    return WarehouseCatalog("memory", environment=fake_environment(files, clock=FakeClock(), names=names))
