"""The moves of the game: everything that can be done to a table, each with its effect on the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from storage_lib import AddColumn, DropColumn, InvalidInputError, NotFoundError, RenameColumn, SetOption
from tests.game.drawn_table import PARTITIONS
from tests.game.model import Model, Row
from tests.game.neutral_options import neutral_options
from tests.game.player import KEYS, Act, Game

SAME_KEY_SHARE = 0.4
"""Share of the changes of an append that have the key of another one in it."""


def append(game: Game) -> None:
    handle = game.handle()
    changes = _changes(game, handle)
    kinds, rows = [kind for kind, _ in changes], [row for _, row in changes]
    given = game.arrow(handle, rows, None if game.drawn.is_append_only else kinds)
    tracked = game.rng.random() < 0.9

    game.commit(
        f"append {changes_shown(changes)}{'' if tracked else ' untracked'}",
        lambda table, identity: table.append(given, change_tracking=tracked, **identity),
        partial(game.model.apply_all, changes),
        tracked=tracked,
        handle=handle,
        # Others may remove the rows meanwhile that are removed here.
        may_be_interrupted=(bool(game.drawn.key) and not game.drawn.retracts) or not {"-D", "-U"} & {*kinds},
    )


def upsert(game: Game) -> None:
    handle = game.handle()
    rows = distinct_rows(game, handle)
    given = game.arrow(handle, rows)
    game.commit(
        f"upsert {changes_shown([('+U', row) for row in rows])}",
        lambda table, identity: table.upsert(given, **identity),
        partial(game.model.apply_all, [("+U", row) for row in rows]),
        handle=handle,
    )


def insert(game: Game) -> None:
    handle = game.handle()
    rows = [row for row in distinct_rows(game, handle) if not game.drawn.key or game.model.stored(row) is None]
    if game.drawn.sequence is not None and not game.drawn.combines:
        # A row that a deletion hides has to be refused.
        rows = [row | {game.model.columns["s"]: game.any_sequence()} for row in rows]
    given = game.arrow(handle, rows)

    def change() -> None:
        for row in rows:
            game.model.set_row("+I", row)

    game.commit(
        f"insert {changes_shown([('+I', row) for row in rows])}",
        lambda table, identity: table.insert(given, **identity),
        change,
        handle=handle,
    )


def upsert_partial(game: Game) -> None:
    handle = game.handle()
    if not game.drawn.key:
        return
    rows, names = distinct_rows(game, handle), {*game.drawn.key, "p", "s", "n"}
    given = game.arrow(handle, rows).select([each.name for each in handle.schema.fields if each.name in names])
    columns = {game.model.columns[name] for name in names}

    def change() -> None:
        for row in rows:
            stored = game.model.stored(row) or dict.fromkeys(game.model.columns.values())
            game.model.apply("+U", stored | {column: row[column] for column in columns})

    game.commit(
        f"upsert_partial {changes_shown([('+U', row) for row in rows])}",
        lambda table, identity: table.upsert(given, partial=True, **identity),
        change,
        handle=handle,
    )


def updated(game: Game, low: int, values: Mapping[str, int | None]) -> None:
    """Set columns of the rows with ``k`` from ``low`` to three more."""
    k = game.model.columns["k"]
    for row in game.model.rows():
        if low <= row[k] <= low + 3:
            if not game.drawn.key:
                game.model.apply("-U", row)
            game.model.set_row("+U", row | {game.model.columns[name]: value for name, value in values.items()})


def drawn_update(game: Game) -> tuple[int, dict[str, int | None]]:
    """Draw the first ``k``, and values. A sequence that an older one hides has to be refused."""
    values = {"n": game.rng.choice([None, 5, -7])}
    if game.rng.random() < 0.3:
        values["s"] = game.any_sequence()
    return game.rng.randrange(KEYS), values


def update(game: Game) -> None:
    low, values = drawn_update(game)
    game.commit(
        f"update k in [{low}, {low + 3}] {values}",
        lambda table, identity: table.update(f"k between {low} and {low + 3}", values, **identity),
        partial(updated, game, low, values),
    )


def delete(game: Game) -> None:
    low, k = game.rng.randrange(KEYS), game.model.columns["k"]

    def change() -> None:
        for row in game.model.rows():
            if low <= row[k] <= low + 2:
                game.model.apply("-D", row)

    game.commit(
        f"delete k in [{low}, {low + 2}]",
        lambda table, identity: table.delete(f"k between {low} and {low + 2}", **identity),
        change,
    )


def delete_keys(game: Game) -> None:
    if not game.drawn.key:
        return
    handle = game.handle()
    rows = distinct_rows(game, handle)
    keys = game.arrow(handle, rows).select(list(game.drawn.key))

    def change() -> None:
        for row in rows:
            stored = game.model.stored(row)
            if stored is not None:
                game.model.apply("-D", stored)

    game.commit(
        f"delete_keys {changes_shown([('-D', row) for row in rows])}",
        lambda table, identity: table.delete(keys, **identity),
        change,
        handle=handle,
    )


def merge(game: Game) -> None:
    if not game.drawn.key:
        return
    handle = game.handle()
    rows = distinct_rows(game, handle)
    given = game.arrow(handle, rows)
    how: dict[str, Any] = {
        "matched": game.rng.choice(["update", "delete", "keep"]),
        "not_matched": game.rng.choice(["insert", "ignore"]),
        "not_matched_by_source": game.rng.choice(["keep", "keep", "delete"]),
    }
    known = {each.id for each in handle.schema.fields}

    def change() -> None:
        keys = {game.model.key_of(row) for row in rows}
        before = game.model.rows()
        for row in rows:
            stored = game.model.stored(row)
            if stored is None and how["not_matched"] == "insert":
                game.model.apply("+I", row)
            elif stored is not None and how["matched"] == "update":
                game.model.apply("+U", stored | {column: row[column] for column in row if column in known})
            elif stored is not None and how["matched"] == "delete":
                game.model.apply("-D", stored)
        for stored in before:
            if how["not_matched_by_source"] == "delete" and game.model.key_of(stored) not in keys:
                game.model.apply("-D", stored)

    game.commit(
        f"merge {how} {changes_shown([('+U', row) for row in rows])}",
        lambda table, identity: table.merge(given, **how, **identity),
        change,
        handle=handle,
    )


def overwrite(game: Game) -> None:
    # An untracked overwrite waits for no lease, so that an update that comes after it changes the rows before it.
    handle, tracked = game.handle(), game.rng.random() < 0.6 or game.reads_first
    rows, p = distinct_rows(game, handle), game.model.columns["p"]
    scopes: list[dict[str, object] | None] = [None, {}, {"p": PARTITIONS[0]}]
    scope = game.rng.choice(scopes)
    if not game.drawn.is_partitioned and scope:
        scope = {}
    if scope:
        rows = [row | {p: scope["p"]} for row in rows]
    if game.drawn.key:
        rows = list({game.model.key_of(row): row for row in rows}.values())
    given = game.arrow(handle, rows)

    def change() -> None:
        replaced = None if scope == {} or not game.drawn.is_partitioned else {row[p] for row in rows}
        if scope:
            replaced = {scope["p"]}
        gone = [row for row in game.model.rows() if replaced is None or row[p] in replaced]
        if game.drawn.key and replaced is None:
            game.model.versions.clear()
            gone = []
        game.model.replace(gone, rows)

    game.commit(
        f"overwrite {scope}{'' if tracked else ' untracked'} {changes_shown([('+I', row) for row in rows])}",
        lambda table, identity: table.overwrite(given, partition=scope, change_tracking=tracked, **identity),
        change,
        tracked=tracked,
        handle=handle,
    )


def drop_partition(game: Game) -> None:
    partition, tracked = game.rng.choice(PARTITIONS), game.rng.random() < 0.6 or game.reads_first
    game.commit(
        f"drop_partition {partition}{'' if tracked else ' untracked'}",
        lambda table, identity: table.maintenance.drop_partitions(
            [{"p": partition}], change_tracking=tracked, **identity
        ),
        lambda: game.model.drop_partition(partition),
        tracked=tracked,
    )


def compact(game: Game) -> None:
    full = game.rng.random() < 0.5
    game.commit(f"compact full={full}", lambda table, identity: table.compact(full=full, **identity), lambda: None)


def expire(game: Game) -> None:
    retain = game.rng.randint(1, 3)
    game.told.append(f"expire, retain {retain}")
    _keep_up(game, lambda table, _: table.maintenance.expire_snapshots(retain_last=retain))
    game.met("expire")
    game.keep_past()


def remove_orphans(game: Game) -> None:
    # While another process writes, its files are orphans.
    age = timedelta(0) if game.interrupt and not game.planned else timedelta(days=1)
    game.told.append(f"remove_orphans older than {age}")
    game.handle().maintenance.remove_orphan_files(older_than=age)
    game.met("remove_orphans")


def _keep_up(game: Game, act: Act) -> None:
    if game.interrupt is not None and game.rng.random() < 0.3:
        game.interrupted(act, game.identity(), None)
    else:
        act(game.handle(), {})


def tag(game: Game) -> None:
    retained = game.retained()
    if retained:
        name, snapshot_id = f"tag-{game.number()}", game.rng.choice(retained)
        game.told.append(f"{name} of snapshot {snapshot_id}")
        game.handle().tags.create(name, snapshot_id)
        game.tags[name], game.tagged[name] = game.past[snapshot_id].copy(), snapshot_id
        game.met("tag")


def delete_tag(game: Game) -> None:
    if game.tags:
        name = game.rng.choice(sorted(game.tags))
        game.told.append(f"delete {name}")
        game.handle().tags.delete(name)
        del game.tags[name]
        game.met("delete_tag")


def roll_back(game: Game) -> None:
    tracked, retained = game.rng.random() < 0.6, game.retained()
    if game.tags and game.rng.random() < 0.4:
        name = game.rng.choice(sorted(game.tags))
        target: dict[str, Any] = {"tag": name}
        past, snapshot_id = game.tags[name], game.tagged[name]
    elif retained:
        snapshot_id = game.rng.choice(retained)
        target, past = {"snapshot_id": snapshot_id}, game.past[snapshot_id]
    else:
        return

    game.commit(
        f"roll_back {target}{'' if tracked else ' untracked'}",
        lambda table, identity: table.rollback_to(**target, change_tracking=tracked, **identity),
        lambda: game.model.restore(past),
        tracked=tracked,
        rolls_back_to=snapshot_id,
    )


def publish_a_branch(game: Game) -> None:
    """Create a branch, write to it and fast-forward the table to it."""
    handle, name, tracked = game.newest(), f"branch-{game.number()}", game.rng.random() < 0.6
    if not game.retained():
        return
    changes = _changes(game, handle)
    given = game.arrow(handle, [row for _, row in changes], None if game.drawn.is_append_only else _kinds(changes))

    def act(table: Any, identity: dict[str, Any]) -> Any:
        if name not in table.branches.list():
            table.branches.create(name)
        table.branches.open(name).append(given, commit_user="author", commit_identifier=1)
        return table.branches.fast_forward(name, change_tracking=tracked, **identity)

    game.commit(
        f"publish_a_branch {changes_shown(changes)}{'' if tracked else ' untracked'}",
        act,
        partial(game.model.apply_all, changes),
        tracked=tracked,
        handle=handle,
        may_be_interrupted=False,
        is_repeatable=False,  # the branch is deleted
    )
    with suppress(NotFoundError):
        game.newest().branches.delete(name)


def drawn_alteration(game: Game) -> tuple[list[Any], dict[str, str]]:
    """Draw changes of the schema, and the options that they set."""
    added = sorted(name for name in game.model.columns if name.startswith("w"))
    what = game.rng.choice(["add", "add", "drop", "rename", "swap", "add again", "format", "option", "option"])
    if what in ("swap", "add again") and game.interrupt is None:
        what = "add"  # the rows of a process that is suspended have names, which would be those of other columns
    if what == "option":
        choices = neutral_options(is_keyed=bool(game.drawn.key))
        name = game.rng.choice(sorted(choices))
        value = game.rng.choice(choices[name])
        return [SetOption(name, value)], {name: value}
    if what == "format":
        value = game.rng.choice(["parquet", "orc", "avro"])
        return [SetOption("file.format", value)], {"file.format": value}
    if what == "add" or not added:
        return [AddColumn(f"w{game.number()}", "INT")], {}
    name = game.rng.choice(added)
    if what == "swap" and len(added) > 1:
        one, other = game.rng.sample(added, 2)
        between = f"w{game.number()}"
        return [RenameColumn(one, between), RenameColumn(other, one), RenameColumn(between, other)], {}
    if what == "rename":
        return [RenameColumn(name, f"w{game.number()}")], {}
    return [DropColumn(name)] if what == "drop" else [DropColumn(name), AddColumn(name, "INT")], {}


def altered(game: Game, what: str, act: Act, options: dict[str, str]) -> None:
    """Alter the table by ``act``, and let the model, the followers and the statistics follow."""

    def follow() -> None:
        before = set(game.model.columns.values())
        columns = {each.name: each.id for each in game.observed().schema.fields}
        for model in [game.model, *game.past.values(), *game.tags.values()]:
            model.columns = dict(columns)
        dropped, added = before - set(columns.values()), set(columns.values()) - before
        _forget(game.model, dropped, added)
        for follower in [*game.followers, *game.waiting]:
            follower.alter(dropped, added)

    if game.commit(what, act, follow, may_be_interrupted=False):
        game.drawn.options.update(options)
        game.pairs.has_table(game.drawn)


def alter(game: Game) -> None:
    """Add, drop or rename a column, or change an option."""
    changes, options = drawn_alteration(game)
    altered(game, f"alter {changes}", lambda table, _: table.alter(*changes), options)


def add_column(game: Game) -> None:
    column = AddColumn(f"w{game.number()}", "INT")
    altered(game, f"alter {[column]}", lambda table, _: table.alter(column), {})


def change_behind_an_alter(game: Game) -> None:
    """Add a column, write rows that have it, and change rows by a process that may have opened the table before."""
    before, life = game.handles, game.life
    add_column(game)
    game.handles = [game.newest()]
    append(game)
    if game.life == life:  # while it was interrupted, others may have recreated the table
        game.handles = before
    game.rng.choice((update, merge, upsert_partial, append, upsert, insert, delete, compact))(game)


def rewrite(game: Game) -> None:
    """Change the number of buckets, which writes each row again."""
    bucket = game.rng.choice(["1", "2", "3"])

    def act(table: Any, _: dict[str, Any]) -> Any:
        rewritten = table.rewrite(options={"bucket": bucket})
        game.reopened(rewritten)
        return rewritten

    game.commit(f"rewrite bucket={bucket}", act, game.forget_streams, handle=game.newest(), may_be_interrupted=False)


def repeat(game: Game) -> None:
    """Repeat an earlier commit under its identity, as a task that did not hear of its success does."""
    if not game.committed:
        return
    done = game.rng.choice(game.committed)
    game.told.append(f"repeat {done.identity['commit_identifier']}")
    try:
        made: Any = done.act(game.rng.choice([game.newest(), game.handle()]), done.identity)
    except InvalidInputError as error:
        game.fail("a repeated commit is refused", error, done.snapshot_id)
    if made is None or made.id != done.snapshot_id:
        game.fail("a repeated commit is another one", made and made.id, done.snapshot_id)
    game.met("repeat")
    game.note()


def make_again(game: Game) -> None:
    """Repeat a commit that was rolled back, which commits again."""
    schema_id = game.observed().schema.id
    # Where a sequence decides, a row may meet a deletion that a compaction has forgotten. The others depend on what
    # the table holds in ways that their drawn rows do not foresee.
    able = [
        each
        for each in game.taken_back
        if each.schema_id == schema_id
        and _has_columns(game.model.columns, each.columns)
        and each.what.split()[0] in ("append", "upsert", "update", "delete", "delete_keys", "merge", "overwrite")
        and game.drawn.key
        and game.drawn.sequence is None
        and not game.drawn.retracts
    ]
    if not able:
        return
    done = game.rng.choice(able)
    handle = game.handle()
    if not _has_columns({each.name: each.id for each in handle.schema.fields}, done.columns):
        handle = game.newest()
    made = game.commit(
        f"{done.what} (made again)",
        done.act,
        done.change,
        tracked=done.is_tracked,
        handle=handle,
        identity=done.identity,
    )
    if made:
        game.taken_back = [each for each in game.taken_back if each.identity != done.identity]
        game.met("make_again")


def _has_columns(now: Mapping[str, int], then: Mapping[str, int]) -> bool:
    """Return whether names, of which two may have been swapped, still mean the same columns."""
    return all(now.get(name, column) == column for name, column in then.items())


def pass_time(game: Game) -> None:
    seconds = game.rng.choice([1, 40, 1000])
    game.told.append(f"{seconds} s pass")
    game.clock.pass_time(seconds)


MOVES: tuple[tuple[Callable[[Game], None], int], ...] = (
    (append, 10),
    (upsert, 2),
    (insert, 2),
    (upsert_partial, 2),
    (update, 2),
    (delete, 2),
    (delete_keys, 1),
    (merge, 2),
    (overwrite, 2),
    (drop_partition, 1),
    (compact, 5),
    (expire, 2),
    (remove_orphans, 1),
    (tag, 1),
    (delete_tag, 1),
    (roll_back, 2),
    (publish_a_branch, 1),
    (alter, 2),
    (change_behind_an_alter, 1),
    (rewrite, 1),
    (repeat, 2),
    (make_again, 5),
    (pass_time, 1),
)


def _changes(game: Game, handle: Any) -> list[tuple[str, Row]]:
    """Draw changes that the table accepts, in order."""
    scratch, changes = game.model.copy(), list[tuple[str, Row]]()
    for _ in range(game.rng.randint(1, 6)):
        kind, key = _next_change(game, scratch, changes)
        row = _sequenced(game, scratch, game.new_row(handle, **key))
        if kind == "-D":
            stored = scratch.stored(row) if game.drawn.key else next(iter(scratch.rows()), None)
            takes = game.drawn.removes or game.drawn.retracts or not game.drawn.key
            if stored is None or game.drawn.is_append_only or not takes:
                continue
            if game.drawn.retracts:
                kind = game.rng.choice(["-D", "-U"])
            else:
                row = stored
        elif not game.drawn.key:
            kind = "+I"
        scratch.apply(kind, row)
        changes.append((kind, row))
    return changes or [("+I", _sequenced(game, game.model, game.new_row(handle)))]


def _next_change(game: Game, scratch: Model, changes: list[tuple[str, Row]]) -> tuple[str, dict[str, Any]]:
    """Draw the kind of a change and its key: often that of an earlier change, as in batches of connectors.

    A row is removed that is there, if there is one.
    """
    kind, row = game.rng.choice(["+I", "+I", "+U", "-D"]), None
    if changes and game.rng.random() < SAME_KEY_SHARE:
        earlier, row = game.rng.choice(changes)
        kind = game.rng.choice([kind, "-D" if earlier == "-U" else earlier])
    elif kind == "-D" and game.drawn.key and (stored := scratch.rows()):
        row = game.rng.choice(stored)
    return kind, {} if row is None else {name: row[game.model.columns[name]] for name in ("p", "k")}


def distinct_rows(game: Game, handle: Any) -> list[Row]:
    rows = [_sequenced(game, game.model, game.new_row(handle)) for _ in range(game.rng.randint(1, 4))]
    return list({game.model.key_of(row): row for row in rows}.values()) if game.drawn.key else rows


def _sequenced(game: Game, model: Model, row: Row) -> Row:
    """Give a row a newer sequence than a deletion of its key has, which a compaction may have forgotten."""
    if game.drawn.sequence is None:
        return row
    deleted = any(kind in ("-D", "-U") for kind, _ in model.versions.get(model.key_of(row), ()))
    if model.stored(row) is not None and not (game.drawn.combines and deleted):
        return row
    return row | {model.columns["s"]: game.newer_sequence()}


def _forget(model: Model, dropped: set[int], added: set[int]) -> None:
    def altered(row: Row) -> Row:
        return {column: value for column, value in row.items() if column not in dropped} | dict.fromkeys(added)

    model.versions = {key: [(kind, altered(row)) for kind, row in all_] for key, all_ in model.versions.items()}
    bag = model.bag.copy()
    model.bag.clear()
    for row, count in bag.items():
        model.bag[tuple(sorted(altered(dict(row)).items()))] += count


def _kinds(changes: list[tuple[str, Row]]) -> list[str]:
    return [kind for kind, _ in changes]


def changes_shown(changes: list[tuple[str, Row]]) -> str:
    return str([(kind, *row.values()) for kind, row in changes])
