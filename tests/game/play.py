"""Plays games, and counts which features met.

``python -m tests.game.play FIRST GAMES MOVES`` plays more of them than the tests do.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from storage_lib.file_store.snapshot.snapshot import Snapshot
from tests.game.answers import drop_answer, materialize, refresh
from tests.game.engine_moves import analyze, commit_compaction, consume, plan_compaction, write_in_tasks
from tests.game.interruptions import Interruption
from tests.game.moves import MOVES, add_column, append, expire
from tests.game.pairs_met import PairsMet
from tests.game.player import Act, DifferenceError, Game
from tests.game.readers import check
from tests.game.recreation import recreate

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.sql import Session

Moves: TypeAlias = tuple[tuple[Callable[[Game], None], float], ...]
EXPIRED_SHARE = 0.3
"""Share of interruptions in which the snapshot that the process is about to create is made by others, and expires."""
REFRESHED_SHARE, REFRESHED_SHARE_OF_ALTERED = 0.05, 0.5
"""Shares of moves after which a materialized table is refreshed, as a reader of its sources."""
ALTERATIONS = ("alter", "sql_alter", "recreate")
UNEVEN_FROM = 1_000_000
"""Games from this seed on prefer some moves and lack others: what many moves of one kind do to each other is rare in
games that have all of them, and so is a move that another one always prevents."""
FACTORS = (0, 0.2, 1, 1, 5)
"""By one of these, the weight of each move is multiplied in such a game."""
ENGINE_MOVES: Moves = (
    (materialize, 1),
    (refresh, 6),
    (drop_answer, 1),
    (recreate, 1),
    (write_in_tasks, 2),
    (plan_compaction, 2),
    (commit_compaction, 3),
    (analyze, 1),
    (consume, 1),
)


def play(
    seed: int,
    moves: int,
    directory: Path,
    sql: Callable[[Catalog], AbstractContextManager[Session]] | None = None,
    more: Moves = (),
) -> Game:
    """Play one game; raises ``DifferenceError`` where a reader does not agree with the model.

    The same seed and number of moves play the same game again. ``directory`` is empty. With ``sql``, statements of its
    session are moves, too; ``more`` moves need a table on the disk.
    """
    game = Game(seed, directory, needs_disk=sql is not None or bool(more))
    with nullcontext() if sql is None else sql(game.catalog) as session:
        _play(game, moves, more if session is None else (*more, *_sql_moves(session)))
    return game


def _sql_moves(session: Session) -> Moves:
    from tests.game.sql_moves import sql_moves

    return sql_moves(session)


def _play(game: Game, moves: int, more: Moves) -> None:
    ordinary = _weighted((*MOVES, *ENGINE_MOVES), game.seed)
    drawn, others = (*ordinary, *_weighted(more, game.seed)), partial(_others, game, ordinary)

    def interrupt(act: Act, identity: dict[str, Any], change: Callable[[], None] | None) -> Snapshot | None:
        if change is None:
            Interruption(game, others, act, identity).run_upkeep()
            return None
        replaces = game.told[-1].split()[1] in ("overwrite", "drop_partition")
        fails_only = replaces or not game.drawn.key or game.drawn.is_log_first
        game.reads_first = game.told[-1].split()[1] in ("update", "delete", "merge")
        made = Interruption(game, others, act, identity, change, fails_only=fails_only).run()
        game.reads_first = False
        return made

    game.interrupt = interrupt
    try:
        if game.rng.random() < 0.5:
            add_column(game)
        for _ in range(game.rng.randint(0, 2)):
            materialize(game)
        for _ in range(moves):
            _move(game, drawn)
    except DifferenceError:
        raise
    except BaseException as error:
        error.add_note("\n".join(game.told))
        raise


def _weighted(moves: Moves, seed: int) -> Moves:
    """Return the moves with the weights that they have in the game of a seed."""
    if seed < UNEVEN_FROM:
        return moves
    chance = Random(f"weights of {len(moves)} moves in {seed}")  # noqa: S311  reproducible
    factors = [chance.choice(FACTORS) for _ in moves]
    # Rows can always be appended, so that no game ends without a move.
    return tuple(
        (move, weight * (factor or (move is append))) for (move, weight), factor in zip(moves, factors, strict=True)
    )


def _others(game: Game, moves: Moves) -> None:
    """Let others make some moves while a process is interrupted."""
    for _ in range(game.rng.randint(1, 4)):
        _move(game, moves)
    if game.rng.random() < EXPIRED_SHARE:
        for move in (append, append, expire):
            _made(game, move)


def _move(game: Game, moves: Moves) -> None:
    """Make a move; one that has nothing to do is drawn again, because there is nothing to check after it."""
    what, weights = zip(*moves, strict=True)
    while not _made(game, game.rng.choices(what, weights)[0]):
        pass


def _made(game: Game, move: Callable[[Game], None]) -> bool:
    """Make a move and ask the readers; False if it had nothing to do."""
    told = len(game.told)
    move(game)
    if len(game.told) == told:
        return False
    # The answer of a query may change without a snapshot of its source.
    share = REFRESHED_SHARE_OF_ALTERED if game.last in ALTERATIONS else REFRESHED_SHARE
    game.pairs.turns += 1
    check(game)
    if game.rng.random() < share:
        refresh(game)
    return True


def failure_of(seed: int, moves: int, pairs: PairsMet) -> str | None:
    """Play one game and count its ``pairs``; return what went wrong, or None."""
    try:
        with TemporaryDirectory() as directory:
            pairs.add(play(seed, moves, Path(directory)).pairs)
    except DifferenceError as difference:
        return f"DIFFERENCE in seed {seed}: {difference}"
    except Exception:  # noqa: BLE001  the next games are played
        return f"ERROR in seed {seed}\n{traceback.format_exc()}"
    return None


def first_failure(seeds: Iterable[int], moves: int) -> str | None:
    """Play games until one fails; return what went wrong in it, or None."""
    return next((failure for seed in seeds if (failure := failure_of(seed, moves, PairsMet())) is not None), None)


def main(first: int, games: int, moves: int) -> None:
    pairs = PairsMet()
    for seed in range(first, first + games):
        failure = failure_of(seed, moves, pairs)
        if failure is not None:
            print(f"{failure}\n", flush=True)
    for line in pairs.report():
        print(line)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
