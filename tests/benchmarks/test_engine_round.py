"""A round stops at wrong answers and ended workers, and says which system failed and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.spark_engine.engine_data import EngineData, Expected
from benchmarks.spark_engine.engine_round import PLAIN, EngineRound, WrongAnswerError
from benchmarks.spark_engine.measurements import Measurements
from benchmarks.spark_engine.queries import LOOK_UP, QUERIES
from benchmarks.spark_engine.session_process import Settings, WorkerFailedError, session_process

RIGHT = [[7]]


class AnsweringSession:
    """Answers every query with the same rows, from the given number of queries on with others."""

    def __init__(self, right_answers: int) -> None:
        self.spark, self.started_seconds, self.start_peak_bytes = "4.3.0", 0.5, 1
        self._right_answers = right_answers
        self.orders: list[str] = []

    def do(self, **order: Any) -> dict[str, Any]:
        self.orders.append(order["do"])
        wrong = self.orders.count("query") > self._right_answers
        rows = [[8]] if wrong else RIGHT
        return {"seconds": 0.1, "python_bytes": 0, "peak_bytes": 1, "rows": rows if order["do"] == "query" else []}


def a_round(tmp_path: Path, sessions: dict[str, AnsweringSession]) -> EngineRound:
    made = EngineRound(
        systems=[],
        data=EngineData(directory=tmp_path, rows=1, upserts=2, upsert_rows=1),
        expected=Expected(answers=dict.fromkeys(QUERIES, RIGHT), looked_up=[(1, RIGHT)]),
        measurements=Measurements(rows=1, machine="test"),
        scratch=tmp_path,
        settings=Settings(),
        repeats=1,
    )
    made._sessions.update(sessions)  # type: ignore[arg-type]
    return made


def test_each_work_runs_in_all_sessions_and_plain_files_get_the_final_rows_instead_of_upserts(tmp_path: Path) -> None:
    queries = 2 * (len(QUERIES) + 1)
    sessions = {"delta": AnsweringSession(queries), PLAIN: AnsweringSession(queries)}
    a_round(tmp_path, sessions).run()
    loads = ["create", "load", "create", "load"]
    half = ["query"] * (queries // 2)
    assert sessions["delta"].orders == [*loads, "upsert", "upsert", *half, "compact", *half]
    assert sessions[PLAIN].orders == [*loads, "upsert", *half, *half]


def test_a_wrong_answer_ends_the_run_and_names_system_work_and_answers(tmp_path: Path) -> None:
    sessions = {"delta": AnsweringSession(99), "iceberg": AnsweringSession(len(QUERIES))}
    with pytest.raises(WrongAnswerError, match=r"iceberg: look-up, uncompacted answered \[\[8\]\], not \[\[7\]\]"):
        a_round(tmp_path, sessions).run()


def test_a_look_up_names_its_key() -> None:
    assert LOOK_UP.format(key=5).format(table="t") == "SELECT id, name, amount FROM t WHERE id = 5"


@pytest.mark.spark
@pytest.mark.integration
def test_a_session_that_does_not_start_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    settings = Settings(memory="much")
    with (
        pytest.raises(WorkerFailedError, match=r"(?s)plain parquet: the start of the session failed.*much"),
        session_process(PLAIN, tmp_path, settings),
    ):
        pass
