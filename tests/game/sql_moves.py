"""Statements of SQL as moves, and Spark as a reader and a writer; in games that are given a Spark session."""

# ruff: noqa: S608  the parts of the statements are drawn here

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from storage_lib import AddColumn, DropColumn, RenameColumn, SetOption
from storage_lib.spark import compact as compact_in_spark
from storage_lib.spark import read, write
from storage_lib.sql.run import changed_rows, run_changes
from tests.game.model import Row
from tests.game.moves import (
    add_column,
    altered,
    append,
    changes_shown,
    distinct_rows,
    drawn_alteration,
    drawn_update,
    updated,
)
from tests.game.player import Game

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage_lib import DynamicTable
    from storage_lib.sql import Session

_TYPES = {"p": "STRING", "k": "BIGINT", "s": "INT", "n": "BIGINT", "x": "INT", "t": "STRING"}
_LIST = ", ".join(_TYPES)


def sql_moves(session: Session) -> tuple[tuple[Callable[[Game], None], int], ...]:
    """Return moves by SQL over the game's warehouse, with their weights."""
    by_session = (insert, insert_overwrite, update, delete, merge, change_behind_an_alter, alter, select)
    by_spark = (append_frame, compact_by_spark, read_frame)
    spark = session._state.spark
    bound = [
        *(partial(move, session=session) for move in by_session),
        *(partial(move, spark=spark) for move in by_spark),
    ]
    return tuple((move, 6) for move in bound)


def _literal(value: Any, name: str) -> str:
    if value is None:
        return f"CAST(NULL AS {_TYPES[name]})"
    return f"'{value}'" if isinstance(value, str) else f"CAST({value} AS {_TYPES[name]})"


def _values(game: Game, rows: list[Row]) -> str:
    texts = (", ".join(_literal(row[game.model.columns[name]], name) for name in _TYPES) for row in rows)
    return ", ".join(f"({text})" for text in texts)


def _plain(game: Game, rows: list[Row]) -> list[Row]:
    """Return rows of which only the columns that never change are set."""
    ids = {game.model.columns[name] for name in _TYPES}
    return [{column: value if column in ids else None for column, value in row.items()} for row in rows]


def _run(game: Game, session: Session, what: str, text: str, change: Callable[[], None], **how: Any) -> None:
    def act(table: DynamicTable, identity: dict[str, Any]) -> Any:
        session.execute(text, **identity)
        return game.newest().inspect.find_commit(identity["commit_user"], identity["commit_identifier"])

    game.commit(f"{what} {text}", act, change, handle=game.newest(), may_be_interrupted=False, **how)


def insert(game: Game, session: Session) -> None:
    rows = _plain(game, distinct_rows(game, game.newest()))
    tracked = game.rng.random() < 0.8
    hint = "" if tracked else "/*+ OPTIONS('change-tracking' = 'false') */ "
    _run(
        game,
        session,
        "sql_insert",
        f"INSERT INTO t {hint}({_LIST}) VALUES {_values(game, rows)}",
        partial(game.model.apply_all, [("+I", row) for row in rows]),
        tracked=tracked,
    )


def insert_overwrite(game: Game, session: Session) -> None:
    rows = _plain(game, distinct_rows(game, game.newest()))
    p = game.model.columns["p"]

    def change() -> None:
        replaced = {row[p] for row in rows} if game.drawn.is_partitioned else None
        gone = [row for row in game.model.rows() if replaced is None or row[p] in replaced]
        if game.drawn.key and replaced is None:
            game.model.versions.clear()
            gone = []
        game.model.replace(gone, rows)

    _run(
        game,
        session,
        "sql_overwrite",
        f"INSERT OVERWRITE t ({_LIST}) VALUES {_values(game, rows)}",
        change,
        tracked=not game.drawn.is_append_only,
    )


def update(game: Game, session: Session) -> None:
    low, values = drawn_update(game)
    listed = ", ".join(f"{name} = {_literal(value, name)}" for name, value in values.items())
    text = f"UPDATE t SET {listed} WHERE k BETWEEN {low} AND {low + 3}"
    _run(game, session, "sql_update", text, partial(updated, game, low, values))


def delete(game: Game, session: Session) -> None:
    low = game.rng.randrange(-9, 9)
    k, n = game.model.columns["k"], game.model.columns["n"]

    def change() -> None:
        for row in game.model.rows():
            if row[n] is not None and row[n] > low and row[k] % 2 == 0:
                game.model.apply("-D", row)

    _run(game, session, "sql_delete", f"DELETE FROM t WHERE n > {low} AND k % 2 = 0", change)


def merge(game: Game, session: Session) -> None:
    if not game.drawn.key:
        return
    rows = _plain(game, distinct_rows(game, game.newest()))
    matched = game.rng.choice(["UPDATE SET n = s.n, x = s.x", "DELETE"])
    columns = game.model.columns

    def change() -> None:
        for row in rows:
            stored = game.model.stored(row)
            if stored is None:
                game.model.apply("+I", row)
            elif matched == "DELETE":
                game.model.apply("-D", stored)
            else:
                game.model.apply("+U", stored | {columns[name]: row[columns[name]] for name in ("n", "x")})

    on = " AND ".join(f"t.{name} = s.{name}" for name in game.drawn.key)
    _run(
        game,
        session,
        "sql_merge",
        f"MERGE INTO t USING (SELECT * FROM VALUES {_values(game, rows)} AS v({_LIST})) AS s ON {on} "
        f"WHEN MATCHED THEN {matched} "
        f"WHEN NOT MATCHED THEN INSERT ({_LIST}) VALUES ({', '.join(f's.{name}' for name in _TYPES)})",
        change,
    )


def change_behind_an_alter(game: Game, session: Session) -> None:
    """Change rows by a statement; meanwhile a column is added, and rows are written that have it.

    This comes before the statement reads rows, or before it writes them.
    """
    module, name = game.rng.choice(((run_changes, "commit_changed_rows"), (changed_rows, "write")))
    real, waiting = getattr(module, name), [add_column, append]

    def called(*arguments: Any, **named: Any) -> Any:
        interrupt, game.interrupt = game.interrupt, None
        while waiting:
            waiting.pop(0)(game)
            game.handles = [game.newest()]
        game.interrupt = interrupt
        return real(*arguments, **named)

    with patch.object(module, name, called):
        game.rng.choice((update, delete, merge))(game, session)


def alter(game: Game, session: Session) -> None:
    changes, options = drawn_alteration(game)
    texts = []
    for change in changes:
        match change:
            case AddColumn():
                texts.append(f"ALTER TABLE t ADD COLUMN {change.name} INT")
            case DropColumn():
                texts.append(f"ALTER TABLE t DROP COLUMN {change.name}")
            case RenameColumn():
                texts.append(f"ALTER TABLE t RENAME COLUMN {change.name} TO {change.new_name}")
            case SetOption():
                texts.append(f"ALTER TABLE t SET ('{change.key}' = '{change.value}')")

    def act(table: DynamicTable, _: dict[str, Any]) -> DynamicTable:
        for text in texts:
            session.execute(text)
        return game.newest()

    altered(game, f"sql_alter {texts}", act, options)


def select(game: Game, session: Session) -> None:
    """Read by SQL."""
    low = game.rng.randrange(-9, 9)
    names = list(game.model.columns)
    listed = ", ".join(names)
    found = session.execute(f"SELECT {listed} FROM t WHERE n > {low} OR t IS NULL").to_arrow()
    columns = game.model.columns
    wanted = [
        [row[columns[name]] for name in names]
        for row in game.model.rows()
        if (row[columns["n"]] is not None and row[columns["n"]] > low) or row[columns["t"]] is None
    ]
    _compare(game, f"SELECT WHERE n > {low} OR t IS NULL", [list(row.values()) for row in found.to_pylist()], wanted)


def read_frame(game: Game, spark: Any) -> None:
    """Read by a data frame, of some snapshot."""
    retained = game.retained()
    if not retained:
        return
    snapshot_id = game.rng.choice(retained)
    frame = read(spark, game.handle(), snapshot_id=snapshot_id).select(*_TYPES).where("x <= 3 OR x IS NULL")
    columns = game.model.columns
    wanted = [
        [row[columns[name]] for name in _TYPES]
        for row in game.past[snapshot_id].rows()
        if row[columns["x"]] is None or row[columns["x"]] <= 3
    ]
    _compare(game, f"data frame of snapshot {snapshot_id}", [list(row) for row in frame.collect()], wanted)


def append_frame(game: Game, spark: Any) -> None:
    rows = distinct_rows(game, game.newest())
    given = game.arrow(game.newest(), rows)

    game.commit(
        f"append_frame {changes_shown([('+I', row) for row in rows])}",
        lambda table, identity: write(spark.createDataFrame(given), table, **identity),
        partial(game.model.apply_all, [("+I", row) for row in rows]),
        handle=game.newest(),
        may_be_interrupted=False,
    )


def compact_by_spark(game: Game, spark: Any) -> None:
    game.commit(
        "compact_by_spark",
        lambda table, identity: compact_in_spark(spark, table, **identity),
        lambda: None,
        may_be_interrupted=False,
    )


def _compare(game: Game, what: str, found: list[list[Any]], wanted: list[list[Any]]) -> None:
    if sorted(map(repr, found)) != sorted(map(repr, wanted)):
        game.fail(what, sorted(map(repr, found)), sorted(map(repr, wanted)))
    game.met(what.partition(" ")[0].lower() + " by spark")
