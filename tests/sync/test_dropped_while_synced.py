"""A table that is dropped, or dropped and created again, while a sync reads into it stops no other, and comes back."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from storage_lib import MemoryCatalog
from storage_lib.errors import RetryableError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.deep_tests import thinned
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.raw_topics import RawTopics
from tests.support.sleepy_storage import SleepyStorage
from tests.sync.test_sync_lives import add_source, expected, rows_of, run
from tests.table.sources.captured_database import CapturedDatabase, Settings

IO_MAX = 150
"""A run over two tables with new records has about so many I/Os."""


@pytest.mark.parametrize("seed", thinned(range(200), 10))
def test_a_dropped_table_comes_back_with_the_rows_of_its_source(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    settings = replace(Settings.drawn(chance, has_key=True), has_schema=True)
    sources: dict[str, CapturedDatabase] = {}
    topics, clock = RawTopics(), FakeClock()
    files = MemoryFileIO(now_millis=clock.now_millis)
    catalog = MemoryCatalog(environment=fake_environment(files, clock=clock, names="first"))
    for _ in range(2):
        add_source(f"t{len(sources)}", sources, topics, settings, chance)
    if chance.random() < 0.7:
        run(catalog, topics, settings, chance)
    for source in sources.values():
        for _ in range(chance.randint(1, 12)):
            source.statement()
    is_recreated = chance.random() < 0.5

    def drop() -> None:
        if catalog.table_exists("shop.t0"):
            catalog.drop_table("shop.t0")
            if is_recreated:
                run(catalog, topics, settings, chance)

    sleepy = SleepyStorage(files, chance.randint(1, IO_MAX), drop)
    suspended = MemoryCatalog(environment=fake_environment(sleepy, clock=clock, names="suspended"))
    interrupted = run(suspended, topics, settings, chance)

    # Another run may also have written to the other table meanwhile, and taken over its lease.
    others = [error for each in interrupted.tables if each.table != "shop.t0" for error in each.errors.values()]
    assert all(is_recreated and isinstance(error, RetryableError) for error in others), others
    result = run(catalog, topics, settings, chance)
    assert result.errors == ()
    for name, source in sources.items():
        assert rows_of(catalog, name) == expected(source), (name, settings, is_recreated, interrupted.errors)
