"""Random games: every reader agrees with a plain model of the table, whatever is done to it, or a refusal says why.

Options are drawn all at once, and moves from all verbs, so that each feature meets each other one. ``python -m
tests.game.play`` plays more games, and counts the pairs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.game.play import play
from tests.support.deep_tests import thinned

GAMES, MOVES = 8, 14


@pytest.mark.parametrize("first", thinned(range(0, 96, GAMES), keep=2))
def test_every_reader_agrees_with_the_model_after_every_move(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + GAMES):
        play(seed, MOVES, tmp_path / str(seed))
