"""The readers of the game: each must agree with the model, through handles of every age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from storage_lib import DynamicTable, InvalidInputError, SnapshotExpiredError
from tests.game.followers import ContradictionError, Follower
from tests.game.model import Model, Row
from tests.game.outside_reader import OutsideReader, expected
from tests.game.player import REFUSALS, Game
from tests.game.raw_logs import RawMemoryLog

STABLE = ("p", "k", "s", "n", "x", "t")
"""Columns that are never renamed."""
SYSTEM_TABLES = (
    *("audit_log", "branches", "buckets", "consumers", "files", "manifests", "options", "partitions", "rejected"),
    *("schemas", "snapshots", "statistics", "tags"),
)


def check(game: Game) -> None:
    """Compare the answers of some readers with the model. All rows are read after each move, the rest by turns."""
    handle = game.handle()
    _compare(game, "to_arrow", handle, handle.to_arrow(), game.model.rows())
    game.rng.choice([_filtered, _looked_up, _past, _changed, _inspected])(game)
    if game.interrupt is not None:  # an interrupted writer may have left changes to the next one
        _outside(game)
    for follower in list(game.followers):
        if game.rng.random() < 0.6:
            _followed(game, follower)
    if len(game.followers) < 3 and game.rng.random() < 0.2:
        _follow(game)


def _compare(game: Game, what: str, handle: DynamicTable, found: pa.Table, expected: Iterable[Row]) -> None:
    ids = {each.name: each.id for each in handle.schema.fields if each.id in game.model.columns.values()}
    names = [name for name in found.column_names if name in ids]
    rows = _texts([[row[name] for name in names] for row in found.to_pylist()])
    wanted = _texts([[row.get(ids[name]) for name in names] for row in expected])
    if rows != wanted:
        game.fail(what, rows, wanted)


def _texts(rows: Iterable[list[Any]]) -> list[str]:
    return sorted(map(repr, rows))


def _filtered(game: Game) -> None:
    handle = game.handle()
    low = game.rng.randrange(-9, 9)
    place = game.model.columns
    conditions: dict[str, Callable[[Row], bool]] = {
        f"n > {low}": lambda row: row[place["n"]] is not None and row[place["n"]] > low,
        f"x <= {low}": lambda row: row[place["x"]] is not None and row[place["x"]] <= low,
        "t is null": lambda row: row[place["t"]] is None,
        "t = 't3' or k = 2": lambda row: row[place["t"]] == "t3" or row[place["k"]] == 2,
        f"p = 'a' and k >= {low}": lambda row: row[place["p"]] == "a" and row[place["k"]] >= low,
    }
    text, holds = game.rng.choice(list(conditions.items()))
    expected = [row for row in game.model.rows() if holds(row)]
    _compare(game, f"filter {text}", handle, handle.to_arrow(filter=text), expected)
    counted = handle.count(filter=text)
    if counted != len(expected):
        game.fail(f"count of {text}", counted, len(expected))


def _looked_up(game: Game) -> None:
    if not game.drawn.key:
        return
    handle = game.handle()
    keys = {game.model.key_of(game.new_row(handle)) for _ in range(4)}
    expected = [row for row in game.model.rows() if game.model.key_of(row) in keys]
    asked = [dict(zip(game.drawn.key, key, strict=True)) for key in sorted(keys)]
    _compare(game, f"lookup {asked}", handle, handle.lookup(asked), expected)


def _past(game: Game) -> None:
    retained = game.retained()
    if retained:
        snapshot_id = game.rng.choice(retained)
        found = game.handle().to_arrow(snapshot_id=snapshot_id)
        _compare_past(game, f"snapshot {snapshot_id}", found, game.past[snapshot_id])
    if game.tags:
        name = game.rng.choice(sorted(game.tags))
        _compare_past(game, name, game.handle().to_arrow(tag=name), game.tags[name])


def _changed(game: Game) -> None:
    """Apply the changes between two snapshots to the rows of the first."""
    retained = game.retained()
    if len(retained) < 2:
        return
    start, end = sorted(game.rng.sample(retained, 2))
    mode = game.rng.choice(["net", "every"])
    what = f"changes after {start} up to {end}, {mode}"
    try:
        changes = game.newest().changes(start_snapshot_id=start, end_snapshot_id=end, mode=mode).read_all()
    except REFUSALS as refusal:
        game.pairs.move_refused(game.drawn, f"changes, {mode}", str(refusal)[:150])
        return
    before, after = _stable(game.past[start]), _stable(game.past[end])
    rows: Counter[tuple[Any, ...]] = Counter(before)
    by_key = {_key(game, row): row for row in before}
    for change in changes.to_pylist():
        row, adds = tuple(change[name] for name in STABLE), change.get(game.drawn.row_kind, "+I") in ("+I", "+U")
        rows[row] += 1 if adds else -1
        by_key.pop(_key(game, row), None)
        if adds:
            by_key[_key(game, row)] = row
    found = sorted(map(repr, by_key.values() if game.drawn.key else rows.elements()))
    if found != sorted(map(repr, after)):
        game.fail(what, found, sorted(map(repr, after)))
    if mode == "net" and game.drawn.key:
        keys = Counter(
            _key(game, tuple(change[name] for name in STABLE))
            for change in changes.to_pylist()
            if change[game.drawn.row_kind] != "-U"
        )
        moves = game.drawn.is_partitioned or game.drawn.options["bucket"] == "-1"
        if set(keys.values()) - {1} and not moves:
            game.fail(f"{what}: several changes of a key", keys, None)
    game.met(f"changes, {mode}")


def _stable(model: Model) -> list[tuple[Any, ...]]:
    return [tuple(row[model.columns[name]] for name in STABLE) for row in model.rows()]


def _key(game: Game, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row[STABLE.index(name)] for name in game.drawn.key)


def _inspected(game: Game) -> None:
    """Ask for everything that is known of the table, which must not fail."""
    handle = game.handle()
    handle.inspect.health()
    handle.describe()
    handle.inspect.commits()
    handle.inspect.files()
    name = game.rng.choice(SYSTEM_TABLES)
    try:
        handle.inspect.system_table(name)
    except InvalidInputError as refusal:
        # The changes across a rewrite cannot be read.
        game.pairs.move_refused(game.drawn, f"inspect {name}", str(refusal)[:150])
    found = {row["p"] for row in handle.inspect.partition_values().to_pylist()} if game.drawn.is_partitioned else set()
    missing = {row[game.model.columns["p"]] for row in game.model.rows()} - found
    if game.drawn.is_partitioned and missing:
        game.fail("partition_values", found, missing)
    counted = handle.count()
    if counted != len(game.model.rows()):
        game.fail("count", counted, len(game.model.rows()))
    game.met("inspect")


def _compare_past(game: Game, what: str, found: pa.Table, past: Model) -> None:
    """Compare the columns that never change their names: those of a snapshot have the names of its schema."""
    rows = _texts([[row[name] for name in STABLE] for row in found.to_pylist()])
    wanted = _texts([list(row) for row in _stable(past)])
    if rows != wanted:
        game.fail(what, rows, wanted)


def _outside(game: Game) -> None:
    if not game.drawn.has_log:
        return
    if game.outside is None:
        table = game.newest()
        assert table.log is not None
        log = RawMemoryLog(table.log.description()["log.kafka.topic"])
        mode = table.options.effective_changelog_mode(has_primary_key=bool(game.drawn.key))
        game.outside = OutsideReader(log, game.drawn.key, is_complete=mode == "all")
        game.outside.begin(game.model)
        return
    try:
        game.outside.read_on()
    except ContradictionError as contradiction:
        game.fail("the log contradicts itself", contradiction, None)
    if game.outside.found() != expected(game.model):
        game.fail("the log", game.outside.found(), expected(game.model))
    game.met("outside reader")


def _follow(game: Game) -> None:
    """Begin to read the table as a stream."""
    handle = game.handle()
    normalize = game.rng.choice([None, "none", "lookup", "state"])
    keeps_state = normalize == "state" and bool(game.drawn.key)
    if keeps_state and handle.log is None:
        normalize, keeps_state = "lookup", False
    is_complete = handle.new_read().stream_is_complete and not game.drawn.is_log_first
    follower = Follower(
        key=tuple(game.model.columns[name] for name in game.drawn.key),
        normalize=normalize,
        is_exact=normalize in ("lookup", "state") or is_complete,
        state_directory=f"{game.directory}/state-{game.number()}" if keeps_state else None,
        row_kind=game.drawn.row_kind,
    )
    game.followers.append(follower)
    game.told.append(f"follow, normalize={normalize}")
    _followed(game, follower)


def _followed(game: Game, follower: Follower) -> None:
    """Read what is new, in a new process."""
    what = f"stream, normalize={follower.normalize}{', without untracked commits' if follower.is_behind else ''}"
    try:
        follower.read_on(game.newest(), crashes=game.rng.random() < 0.3)
    except SnapshotExpiredError as error:
        if follower.state_directory is not None and follower.position is not None:
            game.fail(f"{what}: needs only the snapshot at which it began", error, None)
        game.followers.remove(follower)
        return
    except ContradictionError as contradiction:
        game.fail(f"{what} contradicts itself", contradiction, None)
    if not follower.is_behind:
        found, wanted = _plain(game, follower.rows()), _plain(game, game.model.rows())
        if found != wanted:
            game.fail(what, found, wanted)
    game.met(f"stream, normalize={follower.normalize}{', behind' if follower.is_behind else ''}")


def _plain(game: Game, rows: Iterable[Row]) -> list[str]:
    ids = sorted(game.model.columns.values())
    return sorted(repr([(column, row.get(column)) for column in ids]) for row in rows)
