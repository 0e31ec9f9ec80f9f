"""Plays many games of changes.

PYTHONPATH=docker/local python -m tests.cdc.play_change_games MOVES [MODE ...] [--first SEED] [--games N]

Starts servers of its own, and kills them, too. Prints what each game did; ends at the first difference.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.cdc.change_game import ChangeGame, Rules
from tests.cdc.debezium_modes import MODES
from tests.cdc.own_stack import own_stack


def main() -> None:
    """Play the games that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("moves", type=int)
    parser.add_argument("modes", nargs="*", default=list(MODES))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--gentle", action="store_true", help="kill nothing, compact nothing")
    parser.add_argument("--go-on", action="store_true", help="play on after a difference")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="change-games-") as scratch, own_stack(Path(scratch) / "servers") as stack:
        for seed in range(given.first, given.first + given.games):
            rules = drawn_rules(seed, given.modes, is_gentle=given.gentle)
            started = time.monotonic()
            game = ChangeGame(seed, rules, stack, Path(scratch) / f"g{seed}")
            print(seed, rules, flush=True)
            try:
                game.play(given.moves)
            except Exception as error:
                if not given.go_on:
                    raise
                failures += 1
                print(f"  FAILED: {type(error).__name__}: {str(error)[:1500]}", flush=True)
            total += game.seen
            print(f"  {time.monotonic() - started:.0f} s", dict(game.seen), game.stopped, flush=True)
    print(dict(total), f"{failures} failures")
    sys.exit(1 if failures else 0)


def drawn_rules(seed: int, modes: list[str], *, is_gentle: bool) -> Rules:
    """Draw a game's rules from its seed."""
    chance = random.Random(f"rules {seed}")  # noqa: S311 - reproducible
    mode = chance.choice(modes)
    if is_gentle:
        return Rules(mode=mode)
    return Rules(
        mode=mode,
        is_compacted=chance.random() < 0.3,
        kills_debezium=chance.random() < 0.3,
        kills_broker=chance.random() < 0.3,
        tables=chance.choice((1, 2, 4)),
    )


if __name__ == "__main__":
    main()
