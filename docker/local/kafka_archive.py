"""Runs a small broker through typical operations, to archive the Java classes that it loads: `make servers`.

A broker that finds the archive starts in half the time; see `local_kafka.py`. The first argument is the archive's path.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from local_kafka import LocalKafka
from storage_lib import open_catalog

SECONDS_TO_WRITE_IT = 300


def main(archive: str) -> None:
    """Write and read a table with a log, then stop the broker cleanly, upon which its JVM writes the archive."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    with tempfile.TemporaryDirectory() as scratch:
        broker = LocalKafka(Path(scratch, "kafka"), jvm_options=(f"-XX:ArchiveClassesAtExit={archive}",))
        broker.start()
        options = {"log.kafka.bootstrap.servers": broker.bootstrap_servers}
        catalog = open_catalog(f"{scratch}/warehouse", options)
        table = catalog.create_table("archive.first", columns, primary_key=("id",), options={"log.system": "kafka"})
        stream = table.stream(startup="full")
        table.append(pa.table({"id": [1], "v": ["a"]}, schema=columns))
        while stream.poll() is not None:
            pass
        catalog.drop_table("archive.first")
        broker.stop(timeout=SECONDS_TO_WRITE_IT)


if __name__ == "__main__":
    main(sys.argv[1])
