"""The soak until each fault has struck each process once, and for five minutes.

`make soak` runs for an hour, with Spark and crashes of the broker.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.soak.soak_faults import FREEZE, KILL, KILL_EVERYBODY, EachFaultOnce

REPOSITORY = Path(__file__).resolve().parents[2]
SOAK = ("-m", "tests.soak.soak", "--seed", "11", "--no-spark", "--no-broker-deaths")


@pytest.mark.kafka
@pytest.mark.integration
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "length", [("--each-fault-once",), pytest.param(("--minutes", "5"), marks=pytest.mark.deep)], ids=" ".join
)
def test_files_topic_and_model_agree_whatever_is_killed(length: tuple[str, ...], tmp_path: Path) -> None:
    command = ["nice", "-n", "10", sys.executable, *SOAK, *length, "--directory", str(tmp_path / "soak")]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout + said.stderr
    assert "none differed" in said.stdout


def test_each_fault_strikes_once_after_a_commit_and_no_process_that_is_frozen() -> None:
    faults = EachFaultOnce(random.Random(1), ("a", "b"), spares_broker=True)  # noqa: S311  chance, not secrets
    of_a, others = {(KILL, "a"), (FREEZE, "a")}, {(KILL, "b"), (FREEZE, "b"), (KILL_EVERYBODY, "")}

    assert faults.draw((), 0) is None
    assert {faults.draw({"a"}, commits) for commits in (1, 1, 2, 3, 4)} == {None, *others}
    assert not faults.have_all_struck()
    assert {faults.draw((), commits) for commits in (5, 6)} == of_a
    assert faults.have_all_struck()
