"""PostgreSQL, Kafka and Debezium on this machine, for the tutorial on change data capture. Loopback only.

    python docker/local/capture_servers.py [--postgres-port 5432] [--kafka-port 9092] [--connect-port 8083]

Runs until Ctrl-C, and deletes its data then. The programs come from `make servers`. Standard library only.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from local_connect import LocalConnect, LocalConnectError
from local_kafka import LocalKafka, LocalKafkaError
from local_postgres import LocalPostgres, LocalPostgresError

LOGICAL = {"wal_level": "logical"}
"""Setting of a PostgreSQL that Debezium can follow."""


def main() -> int:
    """Run the servers until a signal comes; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres-port", type=int, default=5432)
    parser.add_argument("--kafka-port", type=int, default=9092)
    parser.add_argument("--connect-port", type=int, default=8083)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="capture-") as folder:
        try:
            _run(Path(folder), arguments)
        except KeyboardInterrupt:
            print("stopped")
        except (LocalPostgresError, LocalKafkaError, LocalConnectError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _run(home: Path, arguments: argparse.Namespace) -> None:
    print("PostgreSQL, Kafka and Debezium start", flush=True)
    with (
        LocalPostgres(home / "postgres", settings=LOGICAL, port=arguments.postgres_port) as postgres,
        LocalKafka(home / "kafka", port=arguments.kafka_port) as kafka,
        LocalConnect(home / "connect", kafka.bootstrap_servers, port=arguments.connect_port) as connect,
    ):
        print(f"PostgreSQL  {postgres.uri}")
        print(f"Kafka       {kafka.bootstrap_servers}")
        print(f"Debezium    {connect.url}")
        print("Ctrl-C stops them and deletes their data", flush=True)
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
