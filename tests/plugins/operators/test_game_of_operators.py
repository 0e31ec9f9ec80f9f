"""Random games in which Airflow's operators are moves, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.game.operator_moves import operator_moves
from tests.game.play import play
from tests.support.deep_tests import thinned

MOVES = 20


@pytest.mark.parametrize("seed", thinned(range(16)))
def test_the_table_has_the_models_rows_after_every_task(seed: int, warehouse: Path) -> None:
    play(seed, MOVES, warehouse.parent, more=operator_moves())
