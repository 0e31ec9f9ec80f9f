"""A random game with a real database and a real Debezium: after each pause the table equals ``SELECT *``.

``python -m tests.cdc.play_change_games`` plays more of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cdc.change_game import ChangeGame, Rules
from tests.cdc.debezium_modes import MODES
from tests.cdc.play_change_games import drawn_rules

if TYPE_CHECKING:
    from tests.cdc.debezium_stack import DebeziumStack

MOVES = 50


@pytest.mark.parametrize(("seed", "mode"), [(1, "json"), (2, "flattened-json-schema")])
def test_a_table_equals_the_database_after_each_pause(
    debezium: DebeziumStack, tmp_path: Path, seed: int, mode: str
) -> None:
    game = ChangeGame(seed, Rules(mode=mode, restarts_debezium=False), debezium, tmp_path)

    game.play(MOVES)

    assert game.seen["check"]
    assert not game.stopped


@pytest.mark.deep
@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("seed", range(100, 116))
def test_so_it_does_in_every_mode_while_servers_are_killed_and_topics_compacted(
    own_servers: DebeziumStack, tmp_path: Path, seed: int
) -> None:
    game = ChangeGame(seed, drawn_rules(seed, list(MODES), is_gentle=False), own_servers, tmp_path)

    game.play(MOVES)

    assert game.seen
