"""Random lives of a database that a sync follows: after each run every table has the rows of its source."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from storage_lib import Catalog, MemoryCatalog
from storage_lib.sync.sync_database import SyncResult, sync_topics
from storage_lib.sync.synced_table import SyncSettings
from storage_lib.sync.topic_rules import TopicRules
from tests.support.deep_tests import thinned
from tests.support.fake_environment import fake_environment
from tests.support.raw_topic import RawTopic
from tests.support.raw_topics import RawTopics
from tests.table.sources.captured_database import CapturedDatabase, Settings

RULES = TopicRules(topics=("shop.public.*",), into="shop", exclude=("*.secrets",))


@pytest.mark.parametrize("seed", thinned(range(60), 6))
def test_after_each_run_every_table_has_the_rows_of_its_source(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  chance, not secrets
    settings = replace(Settings.drawn(chance, has_key=True), has_schema=True)
    sources: dict[str, CapturedDatabase] = {}
    topics = RawTopics()
    catalog = MemoryCatalog(environment=fake_environment())

    for _ in range(4):
        for _ in range(chance.randint(1, 3)):
            add_source(f"t{len(sources)}", sources, topics, settings, chance)
        for source in sources.values():
            for _ in range(chance.randint(0, 12)):
                source.statement()
        # One that does not answer stops no other, and is read by the next run.
        topics.down = {f"shop.public.{name}" for name in sources if chance.random() < 0.2}

        result = run(catalog, topics, settings, chance)

        stopped = {each.table for each in result.tables if each.errors}
        assert stopped == {f"shop.{name.rpartition('.')[2]}" for name in topics.down}
        for name, source in sources.items():
            if f"shop.public.{name}" not in topics.down and source.written:
                assert rows_of(catalog, name) == expected(source), (name, settings)
    assert "shop.secrets" not in catalog.list_tables()


def add_source(
    name: str, sources: dict[str, CapturedDatabase], topics: RawTopics, settings: Settings, chance: random.Random
) -> None:
    topic = RawTopic(batch_size=chance.choice([1, 3, 1000]))
    topics.topics[f"shop.public.{name}"] = topic
    topics.topics.setdefault("shop.public.secrets", RawTopic())
    sources[name] = CapturedDatabase(settings, chance, topic)
    sources[name].insert()


def run(catalog: Catalog, topics: RawTopics, settings: Settings, chance: random.Random) -> SyncResult:
    before_image = "auto" if not settings.is_full or settings.connector == "mysql" else "whole"
    options = {
        "kafka.bootstrap.servers": "nowhere:9092",
        "log.format": settings.format,
        "source.on-truncate": "apply",
        "source.before-image": before_image,
    }
    how = SyncSettings(
        options=options,
        table_options={"log.system": "none"},
        rows_per_turn=chance.choice([1, 5, 1000]),
        skip_expired=False,
        change_tracking=None,
    )
    return sync_topics(catalog, topics, RULES, how, workers=chance.choice([1, 3]))


def rows_of(catalog: Catalog, name: str) -> list[tuple[Any, ...]]:
    rows = catalog.load_table(f"shop.{name}").to_arrow()
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


def expected(source: CapturedDatabase) -> list[tuple[Any, ...]]:
    return sorted(source.expected(), key=repr)
