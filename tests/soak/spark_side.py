"""Controls the soak's Spark driver: starts, kills and freezes it, and lets it finish its batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from storage_lib.catalog.catalog import Catalog
from tests.soak.soak_model import SILENT, SPARK_QUERY_ID, SoakModel
from tests.support.orders_table import COLUMNS
from tests.support.spark_processes import REPOSITORY, clean_environment
from tests.support.waiting import wait_until

COPY_TABLE = "shop.copy"
_FINISH_SECONDS = 180


class SparkSide:
    """Runs one driver at a time, in its own process group. Its copy of the table has no key, so every row counts."""

    def __init__(self, catalog: Catalog, notes: Path, servers: str, seed: int) -> None:
        self._copy = catalog.create_table(COPY_TABLE, COLUMNS, options={"log.system": "none"})
        self._job = {"warehouse": catalog.warehouse, "servers": servers, "seed": seed, "notes": str(notes)}
        self._notes = notes
        self._driver: subprocess.Popen[bytes] | None = None
        # A query's id is in its checkpoint; it is fixed here because the first driver may crash before it reports one.
        checkpoint = notes / "checkpoint-in"
        checkpoint.mkdir()
        (checkpoint / "metadata").write_text(json.dumps({"id": SPARK_QUERY_ID}))

    def start(self, *, finishes: bool = False) -> None:
        """Start a driver that resumes from the checkpoints."""
        with (self._notes / "spark.out").open("ab") as output:
            self._driver = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.spark_driver", json.dumps({**self._job, "finishes": finishes})],
                cwd=REPOSITORY,
                env=clean_environment(),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_until_it_follows_the_log(self) -> None:
        """Wait for the first copied batch: snapshots are expired here even if a stream still needs its first one."""
        wait_until((self._notes / "checkpoint-out" / "commits" / "1").exists, seconds=_FINISH_SECONDS)

    def kill(self) -> None:
        """Kill the driver and all its child processes."""
        if self._driver is not None:
            os.killpg(self._driver.pid, signal.SIGKILL)
            self._driver.wait()
            self._driver = None

    def freeze(self, seconds: float) -> None:
        """Freeze the driver and its child processes for ``seconds``."""
        if self._driver is not None:
            os.killpg(self._driver.pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.killpg(self._driver.pid, signal.SIGCONT)

    def finish(self) -> None:
        """Let a last driver complete the planned batches and copy all remaining rows."""
        self.start(finishes=True)
        assert self._driver is not None
        code = self._driver.wait(_FINISH_SECONDS)
        self._driver = None
        assert code == 0, f"spark: {(self._notes / 'spark.out').read_text()[-3000:]}"

    def assert_copied(self, model: SoakModel) -> None:
        """Check that the copy equals the table, except for untracked changes; each row exists once."""
        expected = Counter((dt, id_, price) for (dt, id_), price in model.content.items() if dt != SILENT)
        rows = self._copy.to_arrow().to_pylist()
        # Of the untracked partition the copy contains only the rows of its first snapshot.
        found = Counter((row["dt"], row["id"], row["price"]) for row in rows if row["dt"] != SILENT)
        assert found == expected, f"copied twice or by mistake: {found - expected}, not copied: {expected - found}"
