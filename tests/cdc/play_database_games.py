"""Plays many games of a whole database.

PYTHONPATH=docker/local python -m tests.cdc.play_database_games MOVES [MODE ...] [--first SEED] [--games N]

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

from tests.cdc.database_game import DatabaseGame, GameRules
from tests.cdc.own_stack import own_stack
from tests.cdc.told_rows import Following

MODES = ("json-schema", "avro", "flattened-json-schema", "flattened-avro", "json-schema-as-text", "avro-as-text")
"""Those whose records carry schemas."""


def main() -> None:
    """Play the games that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("moves", type=int)
    parser.add_argument("modes", nargs="*", default=[*MODES])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--gentle", action="store_true", help="kill no server")
    parser.add_argument("--go-on", action="store_true", help="play on after a difference")
    given = parser.parse_args()
    seen: Counter[str] = Counter()
    checked: Counter[str] = Counter()
    failures = 0
    with (
        tempfile.TemporaryDirectory(prefix="database-games-") as scratch,
        own_stack(Path(scratch) / "servers") as stack,
    ):
        for seed in range(given.first, given.first + given.games):
            rules = drawn_game_rules(seed, given.modes, is_gentle=given.gentle)
            started = time.monotonic()
            game = DatabaseGame(seed, rules, stack, Path(scratch) / f"g{seed}")
            print(seed, rules, flush=True)
            try:
                game.play(given.moves)
            except Exception as error:
                if not given.go_on:
                    raise
                failures += 1
                notes = "\n".join(getattr(error, "__notes__", ()))[-6000:]
                print(f"  FAILED: {type(error).__name__}: {str(error)[:3000]}\n{notes}", flush=True)
            seen += game.seen
            checked += game.checked
            print(f"  {time.monotonic() - started:.0f} s", dict(game.seen), dict(game.checked), flush=True)
            for name, reason in game.reasons.items():
                print(f"    {name}: {reason[:300]}", flush=True)
    print(dict(seen), dict(checked), f"{failures} failures")
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
