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
    """One driver at a time, a process group of its own. Its copy of the table has no key: every row counts."""

    def __init__(self, catalog: Catalog, notes: Path, servers: str, seed: int) -> None:
        self._copy = catalog.create_table(COPY_TABLE, COLUMNS, options={"log.system": "none"})
        self._job = {"warehouse": catalog.warehouse, "servers": servers, "seed": seed, "notes": str(notes)}
        self._notes = notes
        self._driver: subprocess.Popen[bytes] | None = None
        # A query's id is in its checkpoint; here it is known before the first driver lives long enough to say it.
        checkpoint = notes / "checkpoint-in"
        checkpoint.mkdir()
        (checkpoint / "metadata").write_text(json.dumps({"id": SPARK_QUERY_ID}))

    def start(self, *, finishes: bool = False) -> None:
        """A driver that resumes from the checkpoints."""
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
        """Snapshots are expired here without asking whether a stream is still at its first one."""
        wait_until((self._notes / "checkpoint-out" / "commits" / "1").exists, seconds=_FINISH_SECONDS)

    def kill(self) -> None:
        """The driver with all that belongs to it."""
        if self._driver is not None:
            os.killpg(self._driver.pid, signal.SIGKILL)
            self._driver.wait()
            self._driver = None

    def freeze(self, seconds: float) -> None:
        """All of it, for so long."""
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
        """The copy is the table, but for what streams are not told; each row is there once."""
        expected = Counter((dt, id_, price) for (dt, id_), price in model.content.items() if dt != SILENT)
        rows = self._copy.to_arrow().to_pylist()
        # Of what streams are not told it has what was in the snapshot that it began with.
        found = Counter((row["dt"], row["id"], row["price"]) for row in rows if row["dt"] != SILENT)
        assert found == expected, f"copied twice or by mistake: {found - expected}, not copied: {expected - found}"
