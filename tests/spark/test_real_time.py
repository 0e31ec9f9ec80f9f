"""Streams in Spark's real-time mode write the log of an eventual table, and tiering writes the files."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from storage_lib.spark.versions.spark_feature import SparkFeature
from tests.support.deep_tests import thinned
from tests.support.shared_server import unique_name
from tests.support.spark_features import needs_spark
from tests.support.spark_jars import SPARK_KAFKA
from tests.support.spark_processes import warm_environment

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not SPARK_KAFKA.exists(), reason="Spark's Kafka connector is missing; run `make servers`"),
    needs_spark(SparkFeature.REAL_TIME),
]

DRIVER = Path(__file__).parents[1] / "support" / "real_time_driver.py"
SOURCE_PARTITIONS = 2
SECONDS = 300
KILLS = (1, 3)
COLUMNS = "id BIGINT, v STRING, n INT"


class Driver:
    """A process with a session, in which streams run one after the other."""

    def __init__(self, conf: dict[str, str], log_file: Path) -> None:
        self._log_file = log_file
        self._answer: str | None = None
        with log_file.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(DRIVER), json.dumps({**conf, "spark.sql.session.timeZone": "America/New_York"})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=warm_environment(),
                text=True,
                start_new_session=True,
            )

    def start(self, job: Job) -> None:
        self._answer = None
        self._tell(json.dumps(job.request))

    @contextmanager
    def running(self, job: Job) -> Iterator[None]:
        """Run the stream; at the end, stop it."""
        self.start(job)
        try:
            yield
        finally:
            self._tell("")
            error = self.answer()
        assert error == "", error

    def answer(self) -> str:
        """Wait until the stream has ended; return its error, or an empty text."""
        assert self.process.stdout is not None
        if self._answer is None:
            line = self.process.stdout.readline()
            assert line, f"the driver has ended: {self.output()}"
            self._answer = line.strip()
        return self._answer

    def is_streaming(self) -> bool:
        assert self.process.stdout is not None
        return self.process.poll() is None and not select.select([self.process.stdout], [], [], 0)[0]

    def kill(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
        self.process.stdin.close()
        self.process.stdout.close()

    def output(self) -> str:
        return self._log_file.read_text()[-3000:]

    def streaming_threads(self) -> str:
        """Return what the threads of Spark's streams are doing; the JVM prints it into the answers."""
        assert self.process.stdout is not None
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            if "java" in Path(f"/proc/{pid}/comm").read_text():
                os.kill(int(pid), signal.SIGQUIT)
        printed = ""
        while select.select([self.process.stdout], [], [], 5)[0]:
            printed += os.read(self.process.stdout.fileno(), 1 << 16).decode(errors="replace")
        names = ("stream execution", "Executor task", "kafka-producer")
        threads = [each for each in printed.split("\n\n") if any(name in each.split("\n")[0] for name in names)]
        return "\n\n".join(threads)[:20_000]

    def _tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


class Job:
    """One stream: the topic that it reads, and its table and checkpoint, which outlive its processes."""

    def __init__(
        self, table: DynamicTable, servers: str, directory: Path, *, partitions: int = SOURCE_PARTITIONS, **job: Any
    ) -> None:
        self.table = table
        self.servers = servers
        topic = f"{unique_name(directory)}-source"
        self.request = {
            "warehouse": str(directory / "warehouse"),
            "catalog_options": {"log.kafka.bootstrap.servers": servers},
            "table": table.name,
            "checkpoint": str(directory / "checkpoint"),
            "servers": servers,
            "topic": topic,
            "columns": COLUMNS,
            "seconds": 5,
            **job,
        }
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": servers})

    def send(self, *rows: dict[str, Any]) -> None:
        """Put rows into the source, all rows of an id into one partition."""
        for row in rows:
            self._producer.produce(self._topic, json.dumps(row), partition=row["id"] % SOURCE_PARTITIONS)
        assert self._producer.flush(60) == 0


class LogFollower:
    """Reads the table's topic from its beginning, across the processes of a stream."""

    def __init__(self, table: DynamicTable, servers: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "follower", "isolation.level": "read_committed"}
        )
        topic = table.schema.options["log.kafka.topic"]
        self._consumer.assign([TopicPartition(topic, bucket, 0) for bucket in table.schema.bucket_numbers])
        self.seen: list[tuple[int, dict[str, Any]]] = []

    def until(self, condition: Callable[[], bool], driver: Driver) -> None:
        """Read until ``condition`` holds; fail if the stream ends before."""
        polls = 0
        while not condition():
            message = self._consumer.poll(1)
            polls += message is None
            assert driver.is_streaming(), f"the stream has ended: {driver.answer()}"
            assert polls < SECONDS, f"no rows after {len(self.seen)}: {driver.output()}\n{driver.streaming_threads()}"
            value = None if message is None or message.error() else message.value()
            if message is not None and value is not None:
                self.seen.append((message.partition() or 0, json.loads(value)))

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture(scope="module")
def driver(spark_conf: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(spark_conf, tmp_path_factory.mktemp("real-time") / "driver.log")
    yield driver
    driver.kill()


@pytest.fixture
def make_job(make_table: Callable[..., DynamicTable], bootstrap_servers: str, tmp_path: Path) -> Callable[..., Job]:
    def make(table_of: dict[str, Any], **job: Any) -> Job:
        table = make_table(log=True, log__consistency="eventual", lease__timeout="5 s", **table_of)
        return Job(table, bootstrap_servers, tmp_path, **job)

    return make


def followed(job: Job) -> LogFollower:
    return LogFollower(job.table, job.servers)


def test_rows_are_in_the_log_at_once_and_in_the_files_when_the_stream_stops(
    make_job: Callable[..., Job], driver: Driver
) -> None:
    columns = {
        "id": "BIGINT",
        "price": "DECIMAL(20, 2)",
        "born": "TIMESTAMP(3)",
        "seen": "TIMESTAMP_LTZ(6)",
        "day": "DATE",
        "raw": "BYTES",
        "tags": "ARRAY<STRING>",
        "n": "INT",
    }
    select = [
        "id",
        "price",
        "CAST(born AS TIMESTAMP_NTZ) AS born",
        "CAST(seen AS TIMESTAMP) AS seen",
        "CAST(born AS DATE) AS day",
        "unbase64(raw) AS raw",
        "tags",
        "CAST(id AS SMALLINT) AS n",
        "kind AS _row_kind",
    ]
    ddl = "id BIGINT, price DECIMAL(20, 2), born STRING, seen STRING, raw STRING, tags ARRAY<STRING>, kind STRING"
    job = make_job({"columns": columns, "bucket": 3}, columns=ddl, select=select)
    full = {"price": -12.5, "born": "2024-03-10 02:30:00.5", "seen": "2024-11-03T06:30:00.000001Z", "raw": "AP8="}
    job.send(*({"id": key, "kind": "+I", "tags": ["ä", None], **full} for key in range(20)))

    follower = followed(job)
    with driver.running(job):
        follower.until(lambda: len(follower.seen) == 20, driver)
        job.send(*({"id": key, "kind": "+U"} for key in range(0, 20, 2)))
        job.send(*({"id": key, "kind": "-D"} for key in range(0, 20, 4)))
        follower.until(lambda: len(follower.seen) == 35, driver)
    follower.close()

    rows = job.table.to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == [key for key in range(20) if key % 4]
    assert rows[0] == {
        "id": 1,
        "price": Decimal("-12.50"),
        "born": datetime(2024, 3, 10, 2, 30, 0, 500_000, tzinfo=UTC).replace(tzinfo=None),
        "seen": datetime(2024, 11, 3, 6, 30, 0, 1, tzinfo=UTC),
        "day": date(2024, 3, 10),
        "raw": b"\x00\xff",
        "tags": ["ä", None],
        "n": 1,
    }
    assert rows[1] == {**dict.fromkeys(columns), "id": 2, "n": 2}
    # A reader of one bucket finds every key there that this library puts there.
    assert {row["id"] for row in job.table.lookup([{"id": key} for key in range(20)]).to_pylist()} == {
        key for key in range(20) if key % 4
    }


@needs_spark(SparkFeature.REAL_TIME_SHUFFLES)
def test_changed_results_of_an_aggregation_with_a_joined_table_replace_each_other(
    make_job: Callable[..., Job], make_table: Callable[..., DynamicTable], driver: Driver
) -> None:
    names = make_table("names", columns={"key": "BIGINT", "name": "STRING"}, primary_key=("key",))
    names.append(pa.table({"key": [0, 1], "name": ["even", "odd"]}))
    job = make_job({"bucket": 2}, dimension=names.name)
    job.send(*({"id": key, "v": "x", "n": key} for key in range(20)))

    follower = followed(job)
    with driver.running(job):
        follower.until(lambda: {10} == last_counts(follower), driver)
        job.send(*({"id": key, "v": "x", "n": key} for key in range(20, 30)))
        follower.until(lambda: {15} == last_counts(follower), driver)
    follower.close()

    rows = job.table.to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 0, "v": "even", "n": 15}, {"id": 1, "v": "odd", "n": 15}]


def last_counts(follower: LogFollower) -> set[int]:
    last = {change["after"]["id"]: change["after"]["n"] for _, change in follower.seen}
    return set(last.values()) if len(last) == 2 else set()


def test_sql_writes_in_real_time_when_the_session_says_so(
    make_job: Callable[..., Job], driver: Driver, tmp_path: Path
) -> None:
    script = f"SET 'execution.checkpointing.dir' = '{tmp_path}/checkpoints';"
    script += """
        SET 'execution.runtime-mode' = 'streaming';
        SET 'execution.real-time' = 'true';
        SET 'execution.checkpointing.interval' = '5 s';
        INSERT INTO t SELECT id, upper(v), n + 1 FROM arriving WHERE id <> 2;
    """
    job = make_job({"bucket": 2}, sql=script)
    job.send(*({"id": key, "v": f"v{key}", "n": key} for key in range(5)))

    follower = followed(job)
    with driver.running(job):
        follower.until(lambda: len(follower.seen) == 4, driver)
    follower.close()

    rows = job.table.to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": key, "v": f"V{key}", "n": key + 1} for key in (0, 1, 3, 4)]


def test_a_row_that_does_not_fit_ends_the_stream_with_its_reason(make_job: Callable[..., Job], driver: Driver) -> None:
    job = make_job({"columns": {"id": "BIGINT", "v": "VARCHAR(3)", "n": "INT"}, "bucket": 1}, fails=True)
    job.send({"id": 1, "v": "abc"})

    driver.start(job)
    follower = followed(job)
    follower.until(lambda: len(follower.seen) == 1, driver)
    follower.close()
    job.send({"id": 3, "v": "long"})

    reason = driver.answer()
    assert "InvalidInputError: table db.t: column 'v' is VARCHAR(3), and a row has a longer value" in reason


def test_a_stream_that_would_leave_partitions_unread_does_not_start(
    make_job: Callable[..., Job], driver: Driver
) -> None:
    driver.start(make_job({"bucket": 1}, partitions=5))

    assert "each partition of its source, 5, but the session has 4" in driver.answer()


@pytest.mark.parametrize("kills", thinned(KILLS))
def test_kills_lose_nothing_and_the_files_hold_the_last_row_of_each_key(
    make_job: Callable[..., Job], spark_conf: dict[str, str], tmp_path: Path, kills: int
) -> None:
    job = make_job({"bucket": 4, "log__tier_interval": "1 s"})
    survives_kills(job, spark_conf, tmp_path / "driver.log", kills=kills, seed=11)


@pytest.mark.drill
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(14))
def test_many_kills_lose_nothing(
    make_job: Callable[..., Job], spark_conf: dict[str, str], tmp_path: Path, seed: int
) -> None:
    job = make_job({"bucket": 4, "log__tier_interval": "1 s"})
    survives_kills(job, spark_conf, tmp_path / "driver.log", kills=15, seed=seed)


def survives_kills(job: Job, conf: dict[str, str], log_file: Path, *, kills: int, seed: int) -> None:
    """Kill the stream again and again, at any point, while rows arrive."""
    chance = random.Random(seed)  # noqa: S311  repeatable
    sent: list[tuple[int, int]] = []
    follower = followed(job)
    # A driver that dies while it writes its first checkpoint leaves such a file.
    commits = Path(job.request["checkpoint"]) / "commits"
    commits.mkdir(parents=True)
    (commits / ".0.6b1f2c0e-6a51-4d0f-9d1c-0c8f0a3c7e55.tmp").write_text("v1\n{")

    def send(count: int) -> None:
        rows = [(chance.randrange(50), len(sent) + place) for place in range(count)]
        sent.extend(rows)
        job.send(*({"id": key, "v": f"change {number}", "n": number} for key, number in rows))

    def arrived() -> set[int]:
        return {change["after"]["n"] for _, change in follower.seen}

    for _ in range(kills):
        driver = Driver(conf, log_file)
        try:
            driver.start(job)
            for _ in range(chance.randrange(1, 8)):
                send(chance.randrange(1, 60))
                wanted = chance.randrange(len(sent) // 2, len(sent) + 1)
                follower.until(lambda wanted=wanted: len(arrived()) >= wanted, driver)  # type: ignore[misc]
        finally:
            driver.kill()
    send(40)
    driver = Driver(conf, log_file)
    try:
        with driver.running(job):
            follower.until(lambda: len(arrived()) == len(sent), driver)
    finally:
        driver.kill()
    follower.close()

    assert arrived() == set(range(len(sent))), "every change is in the log"
    truth = dict(sent)
    assert {row["id"]: row["n"] for row in job.table.to_arrow().to_pylist()} == truth
    buckets: dict[int, set[int]] = {}
    for bucket, change in follower.seen:
        buckets.setdefault(change["after"]["id"], set()).add(bucket)
    assert all(len(each) == 1 for each in buckets.values()), "a key stays in its bucket"
    for key in truth:
        firsts = list(
            dict.fromkeys(change["after"]["n"] for _, change in follower.seen if change["after"]["id"] == key)
        )
        assert firsts == sorted(firsts), "the first copies of a key's changes are in order"
