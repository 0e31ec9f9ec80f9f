"""Process that writes rows with their creation time into a Kafka topic, at a constant rate, until its input is closed.

``python -m benchmarks.streams.kafka_generator SERVERS TOPIC PARTITIONS ROWS_PER_SECOND``
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import Producer

from benchmarks.streams.generator import BIRTH, KEYS

__all__ = ["main"]

_TICK_SECONDS = 0.001
_LATE_SECONDS_MAX = 1.0


def main(servers: str, topic: str, partitions: int, rows_per_second: int) -> None:
    """Write until standard input ends. Rows that are late by more than a second, after a stall, are left out."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "queue.buffering.max.messages": 1_000_000})
    is_over = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    started, count = time.monotonic(), 0
    while not is_over.wait(_TICK_SECONDS):
        due = int((time.monotonic() - started) * rows_per_second)
        count = max(count, due - int(_LATE_SECONDS_MAX * rows_per_second))
        for number in range(count, due):
            micros = time.time_ns() // 1_000
            key = (micros * 2_654_435_761) % KEYS
            row = f'{{"id":{key},"{BIRTH}":{micros},"payload":"payload-{key % 9973}"}}'
            producer.produce(topic, row, partition=number % partitions)
        count = due
        producer.poll(0)
    producer.flush(30)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
