"""Plays games for hours, and keeps what it finds in a directory: failures, and which pairs of features met.

    POLARS_MAX_THREADS=1 taskset -c 0 nice -n 15 python -m tests.game.long_run DIRECTORY FIRST_SEED [MOVES]
        plays until it is ended; a second process takes another core
    python -m tests.game.long_run DIRECTORY
        prints the report

The tables are so small that threads, Polars's and those that a process with several cores reads by, cost more than they
save, a fifth of the time of a game.

``failures.txt`` has the seed and the moves of each failed game; ``python -m tests.game.play SEED 1 MOVES`` repeats one.
"""

from __future__ import annotations

import gc
import sys
from itertools import count
from pathlib import Path

from tests.game.pairs_met import PairsMet, united
from tests.game.play import failure_of

MOVES = 20
GAMES_AT_ONCE = 20
"""Games after which the counts are stored."""


def run(directory: Path, first: int, moves: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    # Most objects live as long as the modules or die at once, so frequent collections find nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    for start in count(first, GAMES_AT_ONCE):
        pairs, failed = PairsMet(), list[str]()
        for seed in range(start, start + GAMES_AT_ONCE):
            failure = failure_of(seed, moves, pairs)
            if failure is not None:
                failed.append(failure)
        (directory / f"pairs-{start}-{moves}.json").write_text(pairs.to_json())
        if failed:
            with (directory / "failures.txt").open("a") as file:
                file.write("\n\n".join([*failed, ""]))


def report(directory: Path) -> None:
    for line in united(PairsMet.from_json(each.read_text()) for each in directory.glob("pairs-*.json")).report():
        print(line)


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    if numbers:
        run(Path(where), int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else MOVES)
    else:
        report(Path(where))
