"""Plays many games of a MariaDB.

PYTHONPATH=docker/local python -m tests.cdc.play_mariadb_games MOVES [--first SEED] [--games N]

Starts servers of its own. Prints what each game did; ends at the first difference.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_mariadb import LocalMariadb
from tests.cdc.mariadb_game import MariadbGame

MODES = ("json-schema", "json-schema-as-text", "flattened-json-schema")


def main() -> None:
    """Play the games that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("moves", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--games", type=int, default=10)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="mariadb-games-") as scratch,
        LocalMariadb(Path(scratch) / "mariadb") as mariadb,
        LocalKafka(Path(scratch) / "kafka") as kafka,
        LocalConnect(Path(scratch) / "connect", kafka.bootstrap_servers) as connect,
    ):
        for seed in range(given.first, given.first + given.games):
            mode = MODES[seed % len(MODES)]
            started = time.monotonic()
            game = MariadbGame(seed, mode, mariadb, kafka, connect, Path(scratch) / f"g{seed}")
            print(seed, mode, flush=True)
            game.play(given.moves)
            print(f"  {time.monotonic() - started:.0f} s", dict(game.seen), game.checked, flush=True)


if __name__ == "__main__":
    main()
