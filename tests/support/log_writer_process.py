"""Log writer in a separate process: writes into one transaction, prints its handle, then waits to be killed.

python -m tests.support.log_writer_process SERVERS TOPIC TABLE_UUID SLOT ROW_COUNT
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import asdict

from storage_lib.io.environment import SystemClock
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from tests.support.log_changes import changes, log_schema


def main() -> None:
    servers, topic, table_uuid, slot, row_count = sys.argv[1:]
    settings = KafkaLogSettings(topic=topic, table_uuid=table_uuid, client_options={"bootstrap.servers": servers})
    schema = log_schema()
    transaction = KafkaLogStore(schema, settings, SystemClock()).begin(int(slot))
    transaction.write(0, *changes(schema, ",".join(f"+I {number} row" for number in range(int(row_count)))))
    (written,) = transaction.flush()
    print(json.dumps([asdict(transaction.handle), asdict(written)]), flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
