"""Tables and checkpoints of one version of Spark are continued by a newer one, also after a crash between the two.

The oldest one reads at the end what the newest has written.

The environments are those of ``make setup`` and ``make spark``; without the latter, nothing is tested here.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from stack_setup import SPARKS, VENV, spark_environment
from tests.support.spark_processes import clean_environment
from tests.versions.seen_versions import SPARK

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parents[2] / "support" / "upgraded_stream.py"
ENVIRONMENTS = {
    **{release: spark_environment(version) for version, release in SPARKS.items()},
    SPARK.locked_release(): VENV,
}
INSTALLED = sorted(release for release, place in ENVIRONMENTS.items() if (place / "bin" / "python").exists())


def run(release: str, source: DynamicTable, conf: dict[str, str], first: int, last: int) -> list[Any]:
    """Run the program with a release of Spark; return what it prints."""
    address = source.address
    python = ENVIRONMENTS[release] / "bin" / "python"
    arguments = (address.warehouse, json.dumps(dict(address.options)), json.dumps(conf), str(first), str(last))
    ran = subprocess.run(
        [python, PROGRAM, *arguments],
        env={**clean_environment(), "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: list[Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def forget_last_commit(checkpoint: Path) -> None:
    """Leave the checkpoint as if the driver had been killed before Spark recorded its last micro-batch."""
    last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


def answer(ids: range) -> list[int]:
    """Return count, sum of ids, sum of n, and number of texts: every fifth row is newer, with n 1."""
    others = [each for each in ids if each % 5]
    return [len(ids), sum(ids), sum(each % 7 for each in others) + len(ids) - len(others), len(others) + 1]


@pytest.mark.skipif(len(INSTALLED) < 2, reason="there is one version of Spark here; `make spark` installs another")
@pytest.mark.parametrize("log", [False, True])
def test_a_stream_is_continued_by_each_newer_spark(
    make_table: Callable[..., DynamicTable], spark_conf: dict[str, str], tmp_path: Path, *, log: bool
) -> None:
    source, target = make_table("source", log=log, bucket=2), make_table("target", bucket=2)

    for number, release in enumerate(INSTALLED):
        ids = range(20 * (number + 1))
        found = run(release, source, spark_conf, 20 * number, 20 * (number + 1))
        assert found == [release, answer(ids), answer(ids)]
        forget_last_commit(tmp_path / "checkpoint")

    oldest = run(INSTALLED[0], source, spark_conf, 0, 0)
    assert oldest == [INSTALLED[0], answer(ids), answer(ids)], "it reads what the newest has written"
    commits = target.refresh().inspect.snapshots().to_pylist()
    batches = [(each["commit_user"], each["commit_identifier"]) for each in commits if each["commit_kind"] == "APPEND"]
    assert len(batches) == len(set(batches)), "no micro-batch was committed twice"
