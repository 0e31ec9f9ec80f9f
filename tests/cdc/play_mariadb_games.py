"""Plays many games of a MariaDB.

PYTHONPATH=docker/local python -m tests.cdc.play_mariadb_games MOVES [MODE ...] [--first SEED] [--games N] [--minutes M]

Starts servers of its own. Prints what each game did; ends at the first difference.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_mariadb import LocalMariadb
from tests.cdc.mariadb_game import MariadbGame
from tests.cdc.played_games import play_each, wanted_games

MODES = ("json-schema", "json-schema-as-text", "flattened-json-schema")


def main() -> None:
    """Play the games that the command line asks for."""
    wanted = wanted_games(__doc__, MODES)
    with (
        tempfile.TemporaryDirectory(prefix="mariadb-games-") as scratch,
        LocalMariadb(Path(scratch) / "mariadb") as mariadb,
        LocalKafka(Path(scratch) / "kafka") as kafka,
        LocalConnect(Path(scratch) / "connect", kafka.bootstrap_servers) as connect,
    ):

        def game_of(seed: int) -> MariadbGame:
            mode = wanted.modes[seed % len(wanted.modes)]
            print(seed, mode, flush=True)
            home = Path(scratch) / f"g{seed}"
            how = {"statements": wanted.statements, "is_warm": wanted.warm}
            return MariadbGame(seed, mode, mariadb, kafka, connect, home, **how)

        failures = play_each(wanted, game_of)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
