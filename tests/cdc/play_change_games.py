"""Plays many games of changes.

PYTHONPATH=docker/local python -m tests.cdc.play_change_games MOVES [MODE ...] [--first SEED] [--games N] [--minutes M]

Starts servers of its own, and kills them, too. Prints what each game did; ends at the first difference.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from tests.cdc.change_game import ChangeGame, Rules
from tests.cdc.debezium_modes import MODES
from tests.cdc.own_stack import own_stack
from tests.cdc.played_games import play_each, wanted_games


def main() -> None:
    """Play the games that the command line asks for."""
    wanted = wanted_games(__doc__, list(MODES))
    with tempfile.TemporaryDirectory(prefix="change-games-") as scratch, own_stack(Path(scratch) / "servers") as stack:

        def game_of(seed: int) -> ChangeGame:
            rules = drawn_rules(seed, wanted.modes, is_gentle=wanted.gentle)
            print(seed, rules, flush=True)
            return ChangeGame(seed, rules, stack, Path(scratch) / f"g{seed}")

        failures = play_each(wanted, game_of)
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
