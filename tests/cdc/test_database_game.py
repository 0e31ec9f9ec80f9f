"""A random game of a whole database that ``dynamic-table sync`` follows, with ALTER, SIGKILL and ``verify``.

``python -m tests.cdc.play_database_games`` plays more of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cdc.database_game import DatabaseGame, GameRules
from tests.cdc.expected_rows import Following
from tests.cdc.play_database_games import MODES, drawn_game_rules

if TYPE_CHECKING:
    from tests.cdc.debezium_stack import DebeziumStack


def test_each_table_of_a_database_follows_it_or_says_why_not(debezium: DebeziumStack, tmp_path: Path) -> None:
    game = DatabaseGame(
        4, GameRules(following=Following(on_reject="quarantine"), starts_processes=False), debezium, tmp_path
    )

    game.play(22)

    assert game.checked["followed"]
    assert game.checked["equal"]
    assert game.seen["killed"]


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("seed", range(200, 216))
def test_so_it_does_in_every_mode_while_servers_are_killed(
    own_servers: DebeziumStack, tmp_path: Path, seed: int
) -> None:
    game = DatabaseGame(seed, drawn_game_rules(seed, [*MODES], is_gentle=False), own_servers, tmp_path)

    game.play(60)

    assert game.checked
