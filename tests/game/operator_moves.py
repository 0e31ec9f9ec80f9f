"""Airflow's operators as moves: one that is tried again after a lost answer reports the first commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.game.player import Game
from tests.support.task_context import DictStore, task_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage_lib import DynamicTable
    from tests.game.play import Moves


def operator_moves() -> Moves:
    """Return the moves with their weights."""
    return ((compact, 6), (roll_back, 6), (drop_partition, 6), (expire, 3), (tag, 3))


def _run(game: Game, operator: type, arguments: dict[str, Any], change: Callable[[], None], **how: Any) -> None:
    name = operator.__name__

    def act(_: DynamicTable, __: dict[str, Any]) -> Any:
        store = DictStore()
        task = operator(task_id="task", table="game.t", **arguments)
        result = task.execute(task_context(task, store=store))
        if game.rng.random() < 0.4:
            again = task.execute(task_context(task, store=store))
            if again["version"] != result["version"]:
                game.fail(f"{name} {arguments} was tried again", again, result)
        return None if result["version"] is None else game.newest().inspect.snapshot(result["version"])

    game.commit(
        f"{name} {arguments}",
        act,
        change,
        handle=game.newest(),
        may_be_interrupted=False,
        is_repeatable=False,
        **how,
    )


def compact(game: Game) -> None:
    from dynamic_table.operators.compact_table import CompactTableOperator

    _run(game, CompactTableOperator, {"full": game.rng.random() < 0.5}, lambda: None)


def roll_back(game: Game) -> None:
    from dynamic_table.operators.rollback_table import RollbackTableOperator

    retained, tracked = game.retained(), game.rng.random() < 0.6
    if retained:
        to = game.rng.choice(retained)
        _run(
            game,
            RollbackTableOperator,
            {"snapshot_id": to, "change_tracking": tracked},
            partial(game.model.restore, game.past[to]),
            tracked=tracked,
            rolls_back_to=to,
        )


def drop_partition(game: Game) -> None:
    from dynamic_table.operators.drop_partitions import DropPartitionsOperator

    partitions = sorted({row[game.model.columns["p"]] for row in game.model.rows()})
    if partitions and game.drawn.is_partitioned:
        partition, tracked = game.rng.choice(partitions), game.rng.random() < 0.6
        _run(
            game,
            DropPartitionsOperator,
            {"approved": [{"p": partition}], "change_tracking": tracked},
            partial(game.model.drop_partition, partition),
            tracked=tracked,
        )


def expire(game: Game) -> None:
    from dynamic_table.operators.expire_snapshots import ExpireSnapshotsOperator

    task = ExpireSnapshotsOperator(task_id="task", table="game.t", retain_last=game.rng.randint(1, 3))
    game.told.append("ExpireSnapshotsOperator")
    task.execute(task_context(task))
    game.met("ExpireSnapshotsOperator")
    game.keep_past()


def tag(game: Game) -> None:
    from dynamic_table.operators.create_tag import CreateTagOperator

    retained = game.retained()
    if retained:
        name, snapshot_id = f"tag-{game.number()}", game.rng.choice(retained)
        game.told.append(f"CreateTagOperator {name} of {snapshot_id}")
        task = CreateTagOperator(task_id="task", table="game.t", tag=name, snapshot_id=snapshot_id)
        task.execute(task_context(task))
        game.tags[name], game.tagged[name] = game.past[snapshot_id].copy(), snapshot_id
        game.met("CreateTagOperator")
