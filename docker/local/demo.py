"""Demo of a dynamic table's life cycle on real data, run by Airflow: ``make demo``.

    python docker/local/demo.py          # DAYS=31 DEMO_EXIT=0 AIRFLOW_PORT=8080 KAFKA_PORT=19092
    python docker/local/demo.py down

Starts Kafka and Airflow (loopback only, below .local/demo), provisions ``demo.flights``, replays the flights that left
New York in January 2013 into a topic, and lets Airflow do the rest. Ends with measured figures and with one query
answered by four independent readers, compared with the CSV files; any difference is a non-zero exit code.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "dags"))

import polars as pl  # noqa: E402  after the path

from airflow_rest import AirflowError, AirflowRest  # noqa: E402
from delay_table import DELAYS, DelayTable, delays_of  # noqa: E402
from demo_answers import (  # noqa: E402
    answer_of_duckdb,
    answer_of_iceberg,
    answer_of_paimon,
    answer_of_spark,
    answer_of_truth,
    differences,
)
from demo_report import DemoReport  # noqa: E402
from demo_settings import FIRST_DAY, DemoError, Settings, only_demo  # noqa: E402
from dynamic_table.sinks.sink_job import SinkJob  # noqa: E402
from flight_changes import Replay, changes, final_rows  # noqa: E402
from flights.nyc_flights import flights, flights_of_day  # noqa: E402
from java_runtime import JavaMissingError  # noqa: E402
from local_airflow import LocalAirflow  # noqa: E402
from local_kafka import LocalKafka, LocalKafkaError  # noqa: E402
from quick_spark import quick_spark  # noqa: E402
from sink_start import SinkStart  # noqa: E402
from storage_lib import Catalog, DynamicTable, StorageError, open_catalog  # noqa: E402
from table_follower import TableFollower  # noqa: E402

HOME = CHECKOUT / ".local" / "demo"
TABLE = "demo.flights"
TOPIC = "flights.changes"
REPROCESSED = (date(2013, 1, 3), date(2013, 1, 9))
DROPPED = FIRST_DAY
LIVE_ROWS_PER_SECOND = 400
SINK_STOP_SECONDS = 30
PROGRESS_SECONDS = 10
LIVE_ROWS = 10 * LIVE_ROWS_PER_SECOND
WARM_UP_ROWS = 10 * LIVE_ROWS_PER_SECOND
# Each step ends after seconds on a free machine; a machine that other programs share may need many times that.
SECONDS_MAX = 1800


@dataclass(kw_only=True)
class Demo:
    """One run; each step prints what it does and its result."""

    settings: Settings
    started: float = field(default_factory=time.monotonic)
    report: DemoReport = field(default_factory=DemoReport)
    progress_shown: float = field(default_factory=time.monotonic)

    def run(self) -> int:
        """Run every step; return 0 if all answers agree, else 1."""
        kafka, airflow = _stack(self.settings)
        rest = self._start(kafka, airflow)
        catalog = open_catalog(str(HOME / "warehouse"), {"log.kafka.bootstrap.servers": kafka.bootstrap_servers})
        table = self._provision(rest, catalog)
        delays = DelayTable(HOME, catalog)
        events = changes(flights(), FIRST_DAY, self.settings.last_day, table.schema)
        first_live = events.height - WARM_UP_ROWS - 2 * LIVE_ROWS
        backlog, warm_up, live = (
            events.head(first_live),
            events.slice(first_live, WARM_UP_ROWS),
            events.tail(2 * LIVE_ROWS),
        )
        replay = Replay(kafka.bootstrap_servers, TOPIC, table.schema)
        follower = TableFollower(table).start()
        try:
            sink_run = self._launch_sink(rest, replay, backlog, follower)
            self._maintain_delays(delays)
            # A stream that has just started is slow until its JVM has compiled what it runs.
            self._measure_age(replay, warm_up, follower, "warming up")
            self._measure_age(replay, live.head(LIVE_ROWS), follower, "steady", delays)
            self._say("updating the name of an airline in demo.airlines")
            delays.rename_airline()
            self._compact_while_it_runs(rest, table, replay, live.tail(LIVE_ROWS), follower, delays)
            self._reprocess(rest, table)
            self._drop(rest, table)
            self._validate(rest)
            self._stop_sink(rest, sink_run)
            self._say(f"waiting until {DELAYS} contains all of that")
            seconds = delays.wait_until_fresh(lambda: self._progress(f"  it lags {delays.age_seconds():.0f} s behind"))
            self._say(f"  it does after {seconds:.1f} s")
        finally:
            delays.stop()
            follower.stop()
            replay.close()
        return self._compare(table, delays.table)

    def _start(self, kafka: LocalKafka, airflow: LocalAirflow) -> AirflowRest:
        self._say("starting Kafka and Airflow on 127.0.0.1")
        shutil.rmtree(HOME, ignore_errors=True)
        # The hourly run of maintain may start before the first table exists, and fails without a warehouse.
        (HOME / "warehouse").mkdir(parents=True)
        kafka.start()
        self._say(f"  Kafka at {kafka.bootstrap_servers}")
        rest = airflow.start()
        self._say(f"  Airflow at {rest.base_url}: user {rest.user}, password {rest.password}")
        for dag in ("provision", "stream", "maintain", "drop_old_partitions", "validate"):
            rest.wait_for_dag(dag, timeout=SECONDS_MAX)
        return rest

    def _provision(self, rest: AirflowRest, catalog: Catalog) -> DynamicTable:
        self._say(f"DAG provision: create {TABLE}, its directory and its Kafka topic")
        rest.run("provision", timeout=SECONDS_MAX)
        # Once unpaused, its schedule creates a run at once, which needs the table.
        rest.wait_for_dag("reprocess", timeout=SECONDS_MAX)
        table = catalog.load_table(TABLE)
        self.report.line("key", ", ".join(table.schema.primary_keys))
        return table

    def _launch_sink(self, rest: AirflowRest, replay: Replay, backlog: pl.DataFrame, follower: TableFollower) -> str:
        self._say("DAG stream: launch the sink, a separate Spark process that the task monitors")
        run_id = rest.trigger("stream", conf={"table": TABLE, "source_name": TOPIC, "trigger_seconds": 0})
        triggered = time.monotonic()
        # Spark starts meanwhile.
        self._say(f"replaying {backlog.height:,} changes of {self.settings.days} days into topic {TOPIC}")
        for _ in replay.send(backlog):
            pass
        started = SinkStart(HOME / "jobs", lambda: rest.run_state("stream", run_id))

        def progress(count: int) -> None:
            started.check()
            if count:
                self._progress(f"  {count:,} of {backlog.height:,} changes readable")
            else:
                self._progress(f"  no change is readable yet: {started.waits_for()}")

        follower.wait_for(1, timeout_seconds=SECONDS_MAX, progress=progress)
        self._say(f"  the first changes are readable {time.monotonic() - triggered:.0f} s after the trigger")
        follower.wait_for(backlog.height, timeout_seconds=SECONDS_MAX, progress=progress)
        self._say(f"  all {backlog.height:,} are {time.monotonic() - triggered:.0f} s after the trigger")
        return run_id

    def _maintain_delays(self, delays: DelayTable) -> None:
        self._say(f"CREATE MATERIALIZED TABLE {DELAYS}: delays by airline, airport and hour, with the weather")
        delays.create()
        delays.start()
        self._say("  starting its refresher, a process that keeps it fresh")
        seconds = delays.warm_up(lambda: self._progress(f"  {delays.waits_for()}"))
        self._say(f"  its first refresh was complete {seconds:.0f} s after its start")

    def _measure_age(
        self,
        replay: Replay,
        live: pl.DataFrame,
        follower: TableFollower,
        label: str,
        delays: DelayTable | None = None,
    ) -> None:
        self._say(f"sending {live.height:,} more changes at {LIVE_ROWS_PER_SECOND} a second ({label})")
        before, started = follower.count, time.monotonic()
        sent_at: list[float] = []
        for count, at in replay.send(live, per_second=LIVE_ROWS_PER_SECOND):
            sent_at += [at] * (count - len(sent_at))
        follower.wait_for(before + live.height, timeout_seconds=SECONDS_MAX)
        ages = _ages(live, sent_at, follower.changes(since=before))
        quantiles = {f"p{q}": float(ages.quantile(q / 100) or 0.0) for q in (50, 99)}
        self.report.ages[label] = quantiles
        if delays is not None:
            self.report.ages_of_delays[label] = delays.ages(since=started)
        self._say("  age when readable: " + ", ".join(f"{name} {age:.2f} s" for name, age in quantiles.items()))

    def _compact_while_it_runs(
        self,
        rest: AirflowRest,
        table: DynamicTable,
        replay: Replay,
        live: pl.DataFrame,
        follower: TableFollower,
        delays: DelayTable,
    ) -> None:
        self.report.levels["before compaction"] = _levels(table)
        self._say("DAG maintain: compact the table while the sink writes into it")
        run_id = rest.trigger("maintain", conf={"full": True, "retain_last": 1000})
        self._measure_age(replay, live, follower, "while compaction runs", delays)
        rest.check_success("maintain", run_id, rest.wait("maintain", run_id, timeout=SECONDS_MAX))
        self.report.levels["after compaction"] = _levels(table)

    def _reprocess(self, rest: AirflowRest, table: DynamicTable) -> None:
        first, last = REPROCESSED
        self._say(
            f"backfill of DAG reprocess: recompute {first} to {last} from the CSV and the weather, without the log"
        )
        offsets = None if table.log is None else table.log.latest_offsets()
        backfill = rest.backfill("reprocess", first=first.isoformat(), last=last.isoformat())
        states = rest.wait_for_backfill("reprocess", backfill, timeout=SECONDS_MAX)
        if set(states.values()) != {"success"}:
            message = f"the backfill did not succeed: {states}"
            raise DemoError(message)
        if table.log is not None and table.log.latest_offsets() != offsets:
            message = "the log grew during a backfill with change tracking off"
            raise DemoError(message)

    def _drop(self, rest: AirflowRest, table: DynamicTable) -> None:
        self._say(f"DAG drop_old_partitions: drop {DROPPED}")
        before = table.inspect.partitions().num_rows
        rest.run("drop_old_partitions", conf={"before": (DROPPED + timedelta(days=1)).isoformat()}, timeout=SECONDS_MAX)
        self._say(f"  {before} partitions before, {table.inspect.partitions().num_rows} after")

    def _validate(self, rest: AirflowRest) -> None:
        self._say("DAG validate: Great Expectations on the newest snapshot")
        rest.run("validate", timeout=SECONDS_MAX)

    def _stop_sink(self, rest: AirflowRest, run_id: str) -> None:
        self._say("stopping the sink by marking its task as success, as a user would in the UI")
        rest.mark("stream", run_id, "stream_sink", "success")
        rest.wait("stream", run_id, timeout=SECONDS_MAX)

    def _compare(self, table: DynamicTable, delays: DynamicTable) -> int:
        self._say("running the same query by four readers")
        truth = _truth(self.settings.last_day)
        self.report.answers["the CSV files"] = answer_of_truth(truth)
        self.report.answers["our Arrow read in DuckDB"] = answer_of_duckdb(table)
        self.report.answers["pypaimon-rust on the files"] = answer_of_paimon(table)
        self.report.answers["PyIceberg on the view"] = answer_of_iceberg(table)
        with _errors_into(HOME / "spark.log"):
            self.report.answers["Spark SQL"], how = answer_of_spark(table)
        self.report.differing_rows[TABLE] = differences(table, truth)
        expected = delays_of(truth)
        self.report.differing_rows[DELAYS] = differences(delays, expected)
        self.report.line("rows", f"{truth.height:,}, and {expected.height:,} of {DELAYS}")
        self.report.line("snapshots", str(table.inspect.latest_snapshot_id()))
        if table.log is not None:
            self.report.line("log offsets", table.log.latest_offsets().to_json())
        self.report.line("Spark's read", how)
        self.report.line("time", f"{time.monotonic() - self.started:.0f} s")
        print(self.report.text(), flush=True)
        return 0 if self.report.agrees else 1

    def _say(self, text: str) -> None:
        print(f"\r[{time.monotonic() - self.started:4.0f} s] {text}", flush=True)

    def _progress(self, text: str) -> None:
        """Show progress: in place on a terminal, else as a line every few seconds."""
        now = time.monotonic()
        if sys.stdout.isatty():
            print(f"\r[{now - self.started:4.0f} s] {text}", end="", flush=True)
        elif now - self.progress_shown >= PROGRESS_SECONDS:
            self.progress_shown = now
            self._say(text)


@contextmanager
def _errors_into(log: Path) -> Iterator[None]:
    """Redirect stderr of this process and its JVM into a file: Spark writes many lines while it starts."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def _stack(settings: Settings) -> tuple[LocalKafka, LocalAirflow]:
    kafka = LocalKafka(HOME / "kafka", port=settings.kafka_port, outlives_us=True)
    extra: dict[str, Any] = {
        "warehouse": str(HOME / "warehouse"),
        "bootstrap_servers": f"127.0.0.1:{settings.kafka_port}",
        "jobs_directory": str(HOME / "jobs"),
    }
    return kafka, LocalAirflow(home=HOME / "airflow", port=settings.airflow_port, connection_extra=extra)


def _truth(last_day: date) -> pl.DataFrame:
    """Return the table's expected final content, computed from the CSV files alone."""
    first, last = REPROCESSED
    reprocessed = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    recomputed = pl.concat([pl.DataFrame(flights_of_day({"flight_date": day.isoformat()})) for day in reprocessed])
    replayed = final_rows(flights(), FIRST_DAY, last_day).filter(~pl.col("flight_date").is_in([*reprocessed, DROPPED]))
    return pl.concat([replayed, recomputed], how="diagonal")


def _ages(sent: pl.DataFrame, sent_at: list[float], received: pl.DataFrame) -> pl.Series:
    """Return the seconds from sending each change to the source topic until it is readable in the table's log."""
    key = ["flight_date", "time_hour", "carrier", "flight"]
    nth = pl.int_range(pl.len()).over(key).alias("nth")
    left = sent.with_columns(pl.Series("sent_at", sent_at), nth).select(*key, "nth", "sent_at")
    right = received.with_columns(nth).select(*key, "nth", "readable_at")
    joined = left.join(right, on=[*key, "nth"], how="inner")
    if joined.height != sent.height:
        message = f"{sent.height} changes were sent, but {joined.height} of them came out of the table's log"
        raise DemoError(message)
    return (joined["readable_at"] - joined["sent_at"]).rename("age")


def _levels(table: DynamicTable) -> dict[int, tuple[int, int]]:
    """Return the numbers of files and rows by level."""
    files = table.inspect.files()
    grouped = files.group_by("level").aggregate([("file_path", "count"), ("record_count", "sum")]).sort_by("level")
    return {row["level"]: (row["file_path_count"], row["record_count_sum"]) for row in grouped.to_pylist()}


def _down(settings: Settings) -> None:
    kafka, airflow = _stack(settings)
    airflow.stop()
    DelayTable(HOME, open_catalog(str(HOME / "warehouse"))).stop()
    # Sinks are separate processes, which outlive Airflow on purpose.
    for directory in sorted((HOME / "jobs").glob("*/job-*")):
        job = SinkJob(directory)
        job.request_stop("make down")
        deadline = time.monotonic() + SINK_STOP_SECONDS
        while not job.report().state.is_ended and time.monotonic() < deadline:
            time.sleep(0.2)
        job.kill()
    kafka.stop()


def main(arguments: list[str]) -> int:
    """Run the demo, or stop what it started (``down``)."""
    try:
        settings = Settings.from_environment()
        if arguments == ["down"]:
            _down(settings)
            return 0
        with only_demo(HOME):
            return _demo(settings)
    except (DemoError, AirflowError, LocalKafkaError, JavaMissingError, StorageError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; all started processes are stopped", file=sys.stderr)
        return 130


def _demo(settings: Settings) -> int:
    """Stop an earlier demo, then run; leave processes running only after success."""
    _down(settings)
    settings.refuse_taken_ports()
    # Each Spark of the demo, also one of this process, runs for minutes.
    os.environ.update(quick_spark())
    try:
        code = Demo(settings=settings).run()
    except BaseException:
        _down(settings)
        raise
    if settings.exits:
        _down(settings)
    else:
        rest = _stack(settings)[1].rest
        print(f"Airflow still runs: {rest.base_url}   (make down stops it)")
        print(f"Log in as user {rest.user} with password {rest.password}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
