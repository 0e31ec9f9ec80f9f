"""Prints by how much the memory of a process grows at most while a sync fills tables: ``python -m ... TABLES RECORDS``.

In MB, without the topics, which are in the same process here.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

from storage_lib import open_catalog
from storage_lib.errors import RetryableError
from storage_lib.sync.sync_database import sync_topics
from storage_lib.sync.synced_table import SyncSettings
from storage_lib.sync.topic_rules import TopicRules
from tests.support.raw_topic import RawTopic
from tests.support.raw_topics import RawTopics
from tests.sync.test_sync_tables import ROW, record

PAGE_BYTES = resource.getpagesize()


def main() -> None:
    """Fill the tables once."""
    tables, records = map(int, sys.argv[1:])
    told = [record("c", {**ROW, "id": number}) for number in range(records)]
    topics = RawTopics()
    for number in range(tables):
        topic = topics.topics[f"shop.public.t{number}"] = RawTopic(batch_size=1000)
        for key, value in told:
            topic.tell(key, value)
    before = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    settings = SyncSettings(
        options={"kafka.bootstrap.servers": "nowhere:9092", "log.format": "debezium-json-schema"},
        table_options={"log.system": "none", "bucket": "1"},
        rows_per_turn=100_000,
        skip_expired=False,
        change_tracking=None,
    )
    with tempfile.TemporaryDirectory() as warehouse:
        rules, catalog, filled = TopicRules(topics=("shop.public.*",), into="shop"), open_catalog(warehouse, {}), 0
        while filled < tables * records:
            result = sync_topics(catalog, topics, rules, settings, workers=4)
            filled += sum(each.row_count for each in result.tables)
            # On a busy machine a lease may end before its commit.
            lasting = [each for each in result.errors if not isinstance(each, RetryableError)]
            if lasting:
                raise lasting[0]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print((most - before) >> 20)


if __name__ == "__main__":
    main()
