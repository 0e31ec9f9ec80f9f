"""A random game with a real MariaDB and a real Debezium that ``sync`` follows.

``python -m tests.cdc.play_mariadb_games`` plays more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from local_mariadb import LocalMariadb, find_mariadb
from tests.cdc.mariadb_game import MariadbGame
from tests.cdc.play_mariadb_games import MODES
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from tests.cdc.debezium_stack import DebeziumStack


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMariadb]:
    """A server of the module's own; use a database of your own."""
    if find_mariadb() is None:
        pytest.skip("there is no MariaDB here: run `make servers`, which says how to get it")
    with LocalMariadb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.mark.parametrize("seed", thinned(range(10), 1))
def test_each_table_has_the_rows_of_the_database_after_each_pause(
    mariadb: LocalMariadb, debezium: DebeziumStack, tmp_path: Path, seed: int
) -> None:
    game = MariadbGame(seed, MODES[seed % len(MODES)], mariadb, debezium.kafka, debezium.connect, tmp_path)

    game.play(15)

    assert game.checked
