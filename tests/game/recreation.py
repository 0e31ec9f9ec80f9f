"""The table is dropped and created again while processes have the old one open: none of them may touch the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from storage_lib import AddColumn, StorageError
from tests.game.drawn_table import COLUMNS
from tests.game.followers import ContradictionError, Follower
from tests.game.moves import append

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
    if game.rng.random() < 0.5:
        # So that the process that has the old table open sees other snapshots.
        append(game)
    _change_by(game, old)
    for follower in followers:
        _read_by(game, follower)


def _change_by(game: Game, old: DynamicTable) -> None:
    """Change something in a process that has the old table open."""
    given = game.arrow(old, [game.new_row(old)])
    some = given.select([name for name in given.column_names if name in {*game.drawn.key, "p", "s", "n"}])
    identity = game.identity()
    verbs: dict[str, Callable[[], object]] = {
        "append": lambda: old.append(given, **identity),
        "partial upsert": lambda: old.upsert(some, partial=True, **identity),
        "update": lambda: old.update("k >= 0", {"n": 1}, **identity),
        "delete": lambda: old.delete("k >= 0", **identity),
        "overwrite": lambda: old.overwrite(given, **identity),
        "rollback": lambda: old.rollback_to(snapshot_id=1),
        "alter": lambda: old.alter(AddColumn("w", "INT")),
        "full compaction": lambda: old.compact(full=True),
        "tag": lambda: old.tags.create("of-the-old-table"),
    }
    verb = game.rng.choice(list(verbs))
    before = _state(game)
    try:
        verbs[verb]()
    except StorageError as refusal:
        if refusal.committed:
            game.fail(f"{verb}: a change of a dropped table was made", refusal, None)
    if _state(game) != before:
        game.fail(f"{verb}: a change of a dropped table was made in the new one", _state(game), before)


def _state(game: Game) -> tuple[object, ...]:
    table = game.newest()
    return table.inspect.latest_snapshot_id(), table.schema.id, [each.name for each in table.tags.list()]


def _read_by(game: Game, follower: Follower) -> None:
    """Continue to read at a position of the old table."""
    try:
        follower.read_on(game.newest(), crashes=False)
    except (StorageError, ContradictionError):
        return
    if list(follower.rows()):
        game.fail(f"stream of a dropped table, normalize={follower.normalize}", [*follower.rows()], [])
