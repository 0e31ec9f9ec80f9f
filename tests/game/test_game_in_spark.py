"""Random games in which SQL statements and data frames of Spark are moves and readers, too."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.sql import Session
from tests.game.play import play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]
GAMES, MOVES = 5, 15


@pytest.mark.parametrize("first", range(0, 40, GAMES))
def test_spark_agrees_with_the_model_after_every_move(first: int, tmp_path: Path, spark: SparkSession) -> None:
    for seed in range(first, first + GAMES):
        play(seed, MOVES, tmp_path / str(seed), partial(Session, spark, database="game"))
