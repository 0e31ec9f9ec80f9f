"""Plays games one after the other, each with the next seed, and prints what each did."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

__all__ = ["Game", "play_each", "wanted_games"]

STORY_MAX = 6_000


class Game(Protocol):
    """A game, with the number of its moves by kind, and what else it has to say in the end."""

    seen: Counter[str]

    def play(self, moves: int) -> None:
        """Play a number of moves."""

    def outcome(self) -> Mapping[str, object]:
        """Return what it has compared, and why tables have stopped."""


def wanted_games(description: str | None, modes: Sequence[str]) -> argparse.Namespace:
    """Read the command line: how many moves, games and minutes, of which modes, from which seed on."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("moves", type=int)
    parser.add_argument("modes", nargs="*", default=[*modes])
    parser.add_argument("--first", type=int, default=0, help="seed of the first game")
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no game after so many")
    parser.add_argument("--gentle", action="store_true", help="kill no server, compact nothing")
    parser.add_argument("--go-on", action="store_true", help="play on after a difference")
    parser.add_argument("--statements", type=float, default=1, help="so many times as many statements between pauses")
    parser.add_argument("--warm", action="store_true", help="fork syncs from a process that has imported")
    return parser.parse_args()


def play_each(wanted: argparse.Namespace, game_of: Callable[[int], Game]) -> int:
    """Play the games; return the number of those that failed. The first failure ends all, unless they go on."""
    started, failures = time.monotonic(), 0
    total: Counter[str] = Counter()
    for seed in range(wanted.first, wanted.first + wanted.games):
        begun = time.monotonic()
        if begun - started > wanted.minutes * 60:
            break
        game = game_of(seed)
        try:
            game.play(wanted.moves)
        except Exception as error:
            if not wanted.go_on:
                raise
            failures += 1
            story = "\n".join(getattr(error, "__notes__", ()))[-STORY_MAX:]
            print(f"  FAILED: {type(error).__name__}: {str(error)[:3000]}\n{story}", flush=True)
        total += game.seen
        print(f"  {seed}: {time.monotonic() - begun:.0f} s", dict(game.seen), dict(game.outcome()), flush=True)
    print(f"{total.total()} moves", dict(total), f"{failures} failures")
    return failures
