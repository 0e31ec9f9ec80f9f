"""Plays many games of a whole database.

PYTHONPATH=docker/local python -m tests.cdc.play_database_games MOVES [MODE ...] [--first SEED] [--games N]

Starts servers of its own, and kills them, too. Prints what each game did; ends at the first difference.
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.cdc.database_game import DatabaseGame, GameRules
from tests.cdc.expected_rows import Following
from tests.cdc.own_stack import own_stack
from tests.cdc.played_games import play_each, wanted_games

MODES = ("json-schema", "avro", "flattened-json-schema", "flattened-avro", "json-schema-as-text", "avro-as-text")
"""Those whose records carry schemas."""


def main() -> None:
    """Play the games that the command line asks for."""
    wanted = wanted_games(__doc__, MODES)
    with (
        tempfile.TemporaryDirectory(prefix="database-games-") as scratch,
        own_stack(Path(scratch) / "servers") as stack,
    ):

        def game_of(seed: int) -> DatabaseGame:
            rules = drawn_game_rules(seed, wanted.modes, is_gentle=wanted.gentle)
            rules = replace(rules, statements=wanted.statements, is_warm=wanted.warm)
            print(seed, rules, flush=True)
            return DatabaseGame(seed, rules, stack, Path(scratch) / f"g{seed}")

        failures = play_each(wanted, game_of)
    sys.exit(1 if failures else 0)


def drawn_game_rules(seed: int, modes: list[str], *, is_gentle: bool) -> GameRules:
    """Draw a game's rules from its seed."""
    chance = random.Random(f"rules {seed}")  # noqa: S311 - reproducible
    following = Following(
        schema_change=chance.choice(("evolve", "evolve", "evolve", "fail", "ignore")),
        on_reject=chance.choice(("fail", "quarantine", "quarantine", "skip")),
        on_truncate=chance.choice(("apply", "apply", "fail", "ignore")),
        is_logged=chance.random() < 0.2,
    )
    return GameRules(
        mode=chance.choice(modes),
        following=following,
        renames=chance.random() < 0.3,
        excludes=chance.random() < 0.3,
        workers=chance.choice((1, 2, 4)),
        restarts_debezium=not is_gentle and chance.random() < 0.3,
        kills_debezium=not is_gentle and chance.random() < 0.2,
        kills_broker=not is_gentle and chance.random() < 0.3,
    )


if __name__ == "__main__":
    main()
