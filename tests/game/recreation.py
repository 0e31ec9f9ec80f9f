"""The table is dropped and created again while processes have the old one open: none of them may touch the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib import StorageError
from tests.game.drawn_table import COLUMNS
from tests.game.followers import ContradictionError, Follower

if TYPE_CHECKING:
    from storage_lib import DynamicTable
    from tests.game.player import Game


def recreate(game: Game) -> None:
    """Drop the table and create it under its name, with the options that it has now."""
    if game.keeps_table or game.rng.random() < 0.5:
        return
    game.told.append("recreate")
    followers, old = [*game.followers, *game.waiting], game.handle()
    game.catalog.drop_table("game.t")
    drawn = game.drawn
    table = game.catalog.create_table(
        "game.t",
        COLUMNS,
        primary_key=list(drawn.key),
        partition_by=["p"] if drawn.is_partitioned else [],
        options=drawn.options,
    )
    game.begin_again(table)
    game.met("recreate")
    _write_by(game, old)
    for follower in followers:
        _read_by(game, follower)


def _write_by(game: Game, old: DynamicTable) -> None:
    """Write by a process that has the old table open."""
    given = game.arrow(old, [game.new_row(old)])
    try:
        old.append(given, **game.identity())
    except StorageError as refusal:
        if refusal.committed:
            game.fail("a write into a dropped table was made", refusal, None)
    else:
        game.fail("a write into a dropped table is not refused", old, None)


def _read_by(game: Game, follower: Follower) -> None:
    """Continue to read at a position of the old table."""
    try:
        follower.read_on(game.newest(), crashes=False)
    except (StorageError, ContradictionError):
        return
    if list(follower.rows()):
        game.fail(f"stream of a dropped table, normalize={follower.normalize}", [*follower.rows()], [])
