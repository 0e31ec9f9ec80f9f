"""A materialized table over the demo's flights: delays by airline, airport and hour, with the hour's weather.

A refresher, a process of its own, keeps it fresh while the flights change; an observer looks at its age all the time.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from demo_settings import DemoError
from flights.nyc_flights import airlines, weather
from local_process import LocalProcess
from storage_lib import DynamicTable, NotFoundError
from storage_lib.materialized.service.staleness import staleness

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage_lib import Catalog

__all__ = ["DELAYS", "RENAMED", "STATEMENT", "DelayTable", "delays_of"]

DELAYS = "demo.delays"
KEY = ["airline", "origin", "time_hour"]
STATEMENT = """
    CREATE MATERIALIZED TABLE demo.delays (PRIMARY KEY (airline, origin, time_hour) NOT ENFORCED)
    WITH ('bucket' = '1', 'log.system' = 'none')
    FRESHNESS = INTERVAL '4' SECOND
    AS SELECT a.name AS airline, f.origin, f.time_hour, count(*) AS flights, count(f.arr_delay) AS arrived,
              sum(f.arr_delay) AS minutes_late, max(w.wind_speed) AS wind_speed
       FROM demo.flights f
       JOIN demo.airlines a ON a.carrier = f.carrier
       LEFT JOIN demo.weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
       GROUP BY a.name, f.origin, f.time_hour
"""
RENAMED = {"carrier": "US", "name": "US Airways"}
"""An airline's row after the update of ``demo.airlines`` while the flights are streamed."""
_LOOK_SECONDS = 0.25
_STOP_SECONDS = 30
_START_SECONDS = 180


class DelayTable:
    """Creates the table and its sources, and runs and observes its refresher."""

    def __init__(self, home: Path, catalog: Catalog) -> None:
        self._catalog = catalog
        self._identity = str(home / "refresher")
        self._process = LocalProcess(home, self._identity, name="refresher", outlives_us=True)
        self._log = home / "spark.log"
        self._ages: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._observer = threading.Thread(target=self._observe, name="age-of-delays", daemon=True)

    def create(self) -> None:
        """Create airlines, weather and the materialized table, whose first refresh reads all flights of now."""
        for name, rows, key in (
            ("demo.airlines", airlines(), ["carrier"]),
            ("demo.weather", weather(), ["origin", "time_hour"]),
        ):
            table = self._catalog.create_table(name, rows.schema, primary_key=key, options={"log.system": "none"})
            table.append(rows)
        program = str(Path(sys.executable).with_name("dynamic-table"))
        created = subprocess.run(
            [
                program,
                *self._connection(),
                "sql",
                "--master",
                "local[2]",
                "--spark-log",
                str(self._log),
                "-e",
                STATEMENT,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if created.returncode != 0:
            message = f"CREATE MATERIALIZED TABLE {DELAYS} failed:\n{created.stdout}{created.stderr}"
            raise DemoError(message)

    def rename_airline(self) -> None:
        """Update a row of ``demo.airlines``, which changes the rows of all hours of that airline."""
        self._catalog.load_table("demo.airlines").upsert([RENAMED])

    def warm_up(self, progress: Callable[[], object]) -> float:
        """Rename an airline and back, and wait for the refreshes. Returns the seconds until the first one."""
        airlines_table = self._catalog.load_table("demo.airlines")
        (name,) = (row["name"] for row in airlines().to_pylist() if row["carrier"] == RENAMED["carrier"])
        airlines_table.upsert([RENAMED])
        seconds = self.wait_until_fresh(progress)
        airlines_table.upsert([{"carrier": RENAMED["carrier"], "name": name}])
        self.wait_until_fresh(progress)
        return seconds

    def start(self) -> None:
        """Start the refresher and the observer of the table's age."""
        self._process.launch(
            *(sys.executable, "-m", "storage_lib.spark.refresher", *self._connection()),
            *("--table", DELAYS, "--poll-seconds", "0.25", "--master", "local[2]"),
            *("--conf", f"spark.app.name={self._identity}", "--conf", "spark.sql.shuffle.partitions=2"),
        )
        self._observer.start()

    def stop(self) -> None:
        """Stop the observer and the refresher, also one that an earlier demo started."""
        self._over.set()
        if self._observer.is_alive():
            self._observer.join()
        self._process.end(signal.SIGTERM, _STOP_SECONDS)

    @property
    def table(self) -> DynamicTable:
        """The materialized table as it is now."""
        return self._catalog.load_table(DELAYS)

    def age_seconds(self) -> float:
        """Return for how long the oldest commit of a source that the table does not contain exists; 0 if none."""
        table = self.table
        if table.definition is None:
            message = f"{DELAYS} has no query"
            raise DemoError(message)
        since = staleness(table, table.definition).since_millis
        return 0.0 if since is None else max(0.0, time.time() - since / 1000)

    def wait_until_fresh(self, progress: Callable[[], object]) -> float:
        """Wait until the table contains all commits of its sources; return the seconds that took."""
        started = time.monotonic()
        while self.age_seconds() > 0:
            if time.monotonic() - started > _START_SECONDS or self._process.pid is None:
                message = f"{DELAYS} is not fresh. The end of {self._process.log_file}:\n{self._process.last_words()}"
                raise DemoError(message)
            progress()
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - started

    def waits_for(self) -> str:
        """Return what a refresh waits for, from the refresher's output."""
        words = self._process.last_words()
        doing = (
            "refreshes" if '"table"' in words else "starts Spark" if "WARN" in words else "computes the first answer"
        )
        return f"it lags {self.age_seconds():.0f} s behind; the refresher {doing}"

    def ages(self, since: float) -> dict[str, float]:
        """Return quantiles of the ages seen from a moment of ``time.monotonic()`` on, in seconds."""
        seen = pl.Series([age for at, age in list(self._ages) if at >= since], dtype=pl.Float64)
        return {f"p{q}": float(seen.quantile(q / 100) or 0.0) for q in (50, 99)}

    def _connection(self) -> list[str]:
        """Return the arguments by which a program opens the catalog."""
        options = [word for key, value in self._catalog.options.items() for word in ("--option", f"{key}={value}")]
        return ["--warehouse", self._catalog.warehouse, *options]

    def _observe(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            try:
                self._ages.append((time.monotonic(), self.age_seconds()))
            except NotFoundError:
                # A snapshot expired while it was read; the next look reads a newer one.
                continue


def delays_of(flights: pl.DataFrame) -> pl.DataFrame:
    """Return the answer of the query over these flights after the update, computed from CSV files without SQL."""
    is_renamed = pl.col("carrier") == RENAMED["carrier"]
    renamed = pl.when(is_renamed).then(pl.lit(RENAMED["name"])).otherwise(pl.col("name")).alias("airline")
    names = pl.DataFrame(airlines()).select("carrier", renamed)
    winds = pl.DataFrame(weather()).select("origin", "time_hour", "wind_speed")
    named = (
        flights.drop("wind_speed", strict=False)
        .join(names, on="carrier")
        .join(winds, on=["origin", "time_hour"], how="left")
    )
    return named.group_by(KEY).agg(
        pl.len().cast(pl.Int64).alias("flights"),
        pl.col("arr_delay").count().cast(pl.Int64).alias("arrived"),
        # The sum of no value is NULL in SQL.
        pl.when(pl.col("arr_delay").count() > 0).then(pl.col("arr_delay").cast(pl.Int64).sum()).alias("minutes_late"),
        pl.col("wind_speed").max(),
    )
