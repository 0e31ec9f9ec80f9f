"""Processes that write to a table with dynamic buckets concurrently, and crash anywhere, lose and repeat nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from storage_lib import WarehouseCatalog
from tests.support import dynamic_bucket_process
from tests.support.dynamic_bucket_lives import check_index
from tests.support.dynamic_bucket_process import NAME, rows_after

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[2]
WRITERS, COMMITS = 3, 6
CALLS_MAX = 60


def _start(warehouse: Path, writer: int, *killed_at: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-m", dynamic_bucket_process.__name__, str(warehouse)]
    numbers = map(str, (writer, WRITERS, COMMITS, *killed_at))
    return subprocess.Popen(
        [*command, *numbers], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.parametrize("crosses_partitions", [False, True], ids=["keys of one partition", "keys that move"])
def test_each_writers_rows_are_there_once_in_their_buckets(tmp_path: Path, *, crosses_partitions: bool) -> None:
    rng = Random(int(crosses_partitions))  # noqa: S311  chance, not secrets
    table = WarehouseCatalog(str(tmp_path), {"log.system": "none"}).create_table(
        NAME,
        {"id": "BIGINT", "p": "STRING", "n": "BIGINT"},
        primary_key=["id"] if crosses_partitions else ["id", "p"],
        partition_by=["p"],
        options={"bucket": "-1", "dynamic-bucket.target-row-num": "3", "lease.timeout": "2 s"},
    )

    for deaths in (True, False):
        processes = [
            _start(tmp_path, writer, *([rng.randrange(CALLS_MAX)] if deaths else [])) for writer in range(WRITERS)
        ]
        for process in processes:
            said, _ = process.communicate(timeout=400)
            assert process.returncode in ((-signal.SIGKILL, 0) if deaths else (0,)), said
        assert not deaths or any(process.returncode for process in processes)

    table = table.refresh()
    for _ in range(2):
        shown = sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())
        assert shown == rows_after(WRITERS, COMMITS, crosses_partitions=crosses_partitions)
        check_index(table)
        table.compact(full=True)
