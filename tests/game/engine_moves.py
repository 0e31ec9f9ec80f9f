"""Moves of engines: writes in several tasks, compactions that are committed later, statistics, and consumers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.game.moves import changes_shown, distinct_rows
from tests.game.player import REFUSALS, Game

if TYPE_CHECKING:
    from storage_lib import DynamicTable


def write_in_tasks(game: Game) -> None:
    """Write rows of distinct keys in several tasks, in any order."""
    handle = game.handle()
    rows = distinct_rows(game, handle)
    parts = [rows[index::3] for index in range(3)]
    given = [game.arrow(handle, part) for part in parts]

    def act(table: DynamicTable, identity: dict[str, Any]) -> Any:
        builder = table.new_write()
        earlier = builder.committed(identity["commit_user"], identity["commit_identifier"])
        if earlier is not None:
            return earlier
        context = builder.begin(commit_user=identity["commit_user"])
        messages = []
        for index, each in enumerate(given):
            with builder.open_task(context, task_index=index) as task:
                task.write(each)
                messages.append(task.prepare_commit())
        return builder.commit(context, messages, identity["commit_identifier"])

    game.commit(
        f"write_in_tasks {changes_shown([('+I', row) for row in rows])}",
        act,
        partial(game.model.apply_all, [("+I", row) for row in rows]),
        handle=handle,
    )


def plan_compaction(game: Game) -> None:
    """Compact buckets without committing it; other moves come between."""
    handle, full = game.handle(), game.rng.random() < 0.5
    game.told.append(f"plan_compaction full={full}")
    tasks = handle.maintenance.plan_compaction(full=full)
    made = [handle.maintenance.run_compaction(task) for task in tasks]
    game.planned.append((handle, [each for each in made if each is not None]))
    game.met("plan_compaction")


def commit_compaction(game: Game) -> None:
    """Commit a compaction that was planned earlier, or give it up."""
    if not game.planned:
        return
    handle, messages = game.planned.pop(game.rng.randrange(len(game.planned)))
    gives_up = game.rng.random() < 0.2
    game.told.append(f"commit_compaction of {len(messages)} buckets{', given up' if gives_up else ''}")
    if gives_up:
        handle.maintenance.abort_compaction(messages)
        game.met("abort_compaction")
        return
    try:
        handle.maintenance.commit_compaction(messages, **game.identity())
    except REFUSALS as refusal:
        game.told[-1] += f" (refused: {str(refusal)[:60]})"
        game.pairs.move_refused(game.drawn, "commit_compaction", str(refusal)[:150])
        return
    game.met("commit_compaction")
    game.note()


def analyze(game: Game) -> None:
    game.commit("analyze", lambda table, identity: table.maintenance.analyze(**identity), lambda: None)


def consume(game: Game) -> None:
    """Keep the snapshots from some moment on for a reader, or let them go."""
    handle = game.newest()
    if game.consumers and game.rng.random() < 0.5:
        name = game.rng.choice(sorted(game.consumers))
        game.told.append(f"consumer {name} ends")
        handle.consumers.delete(name)
        del game.consumers[name]
        game.met("consumer ends")
        return
    name, latest = f"reader-{game.number()}", handle.inspect.latest_snapshot_id()
    if latest is not None:
        game.told.append(f"consumer {name} from {latest}")
        handle.consumers.create(name, latest)
        game.consumers[name] = latest
        game.met("consumer begins")
