"""Five minutes of the soak (`make soak` runs for an hour, with Spark and crashes of the broker)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.integration, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).resolve().parents[2]
SOAK = ("-m", "tests.soak.soak", "--minutes", "5", "--seed", "11", "--no-spark", "--no-broker-deaths")


def test_files_topic_and_model_agree_whatever_is_killed(tmp_path: Path) -> None:
    # This always takes five minutes, so the other tests of the folder run first.
    command = ["nice", "-n", "10", sys.executable, *SOAK, "--directory", str(tmp_path / "soak")]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stdout + said.stderr
    assert "none differed" in said.stdout
