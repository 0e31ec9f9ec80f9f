"""The tour of docs/sql.md, copied into one file, runs with ``dynamic-table sql -f`` and a broker as shown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from local_kafka import LocalKafka
from storage_lib.errors import StorageError
from tests.support.fenced_blocks import sections
from tests.support.sql_cases import REWRITE, Step, masked, outcome, steps_of, written_steps

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.integration, pytest.mark.timeout(900)]
PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
(TOUR,) = (section for section in sections(PAGE) if section.title == "Tour")
BLOCKS = [block.text for block in TOUR.blocks if block.language == "sql"]
COMMAND = Path(sys.executable).parent / "dynamic-table"


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[LocalKafka]:
    """Start a broker of its own: the tour's topics have the names of its tables, which other pages use as well."""
    with LocalKafka(tmp_path / "kafka") as broker:
        yield broker


def test_the_tour_gives_what_it_says(tmp_path: Path, kafka: LocalKafka, request: pytest.FixtureRequest) -> None:
    (tmp_path / "tour.sql").write_text("\n".join(BLOCKS))
    broker = f"log.kafka.bootstrap.servers={kafka.bootstrap_servers}"

    ran = subprocess.run(
        [COMMAND, "-w", "warehouse", "-o", broker, "--json", "sql", "-f", "tour.sql"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )

    assert ran.returncode == 0, ran.stderr
    answers = iter(json.loads(ran.stdout))
    shown = [steps_of(block) for block in BLOCKS]
    found = [[Step(step.statement, answer_lines(step.statement, next(answers))) for step in steps] for steps in shown]
    assert next(answers, None) is None
    if request.config.getoption(REWRITE):
        page = PAGE.read_text()
        for block, steps in zip(BLOCKS, found, strict=True):
            page = page.replace(block, written_steps(steps))
        PAGE.write_text(page)
        return
    assert found == [list(steps) for steps in shown]


def answer_lines(statement: str, answer: Any) -> tuple[str, ...]:
    """Format one document of the command's JSON as the lines that the page shows."""
    is_ordered = "ORDER BY" in statement or not statement.startswith("SELECT")

    def result() -> tuple[str, pa.Table | None]:
        return ("", pa.Table.from_pylist(answer)) if isinstance(answer, list) else (answer["message"], None)

    return masked(outcome(result, ordered=is_ordered, errors=(StorageError,)), "warehouse/")
