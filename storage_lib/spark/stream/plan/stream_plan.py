"""Decides how a streaming write keeps its table equal to the query's result, from the facts about the query.

    pre-images       if a change may delete or move a row of the table, it needs the pre-image of the source row
    order            if Spark may reorder rows, they carry their position, by which the write sorts them
    fixed tables     if a pre-image is computed again, it must be computed from the same rows of other tables

This is sufficient if the table's key contains the source's key: all changes of one of its rows then come from one
source row, in order. With another key, changes are not applied in order but summed per row (``answer_rows``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from storage_lib.errors import InvalidInputError
from storage_lib.spark.stream.plan.query_facts import QueryFacts
from storage_lib.spark.stream.plan.query_tree import StreamTable

NONE, LOOKUP, STATE = "none", "lookup", "state"


class SinkKind(StrEnum):
    """How a table combines the rows of a key: see ``WriteMode`` and ``MergeEngine``.

    ``AGGREGATES``: each row is added to, or retracted from, the stored row. ``MERGES``: any other engine or order.
    """

    NEWEST_WINS = "newest-wins"
    AGGREGATES = "aggregates"
    MERGES = "merges"
    COUNTS = "counts"
    APPENDS = "appends"


_KEEPS_ONE_ROW = (SinkKind.NEWEST_WINS, SinkKind.AGGREGATES, SinkKind.MERGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTable:
    """The target table. ``takes_rows_before``: its log takes the pre-image of every change from the input.

    ``looks_up``: a write can look up the stored rows, because the files are not behind the log. ``columns``: number of
    each column that the query writes, by name.
    """

    name: str
    kind: SinkKind
    columns: Mapping[str, int]
    primary_keys: tuple[str, ...] = ()
    kind_column: str
    takes_rows_before: bool = False
    looks_up: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """The decision, with reasons as text. ``normalize`` None: the setting of the read applies.

    ``adds_up``: rows of one key come from several source rows and are summed (``answer_rows``). ``carries_position``:
    rows carry their position because they may arrive out of order; ``needs_position``: without it the table would be
    wrong. ``pins``: other tables must be read at fixed snapshots.
    """

    normalize: str | None = None
    normalize_reason: str = ""
    carries_position: bool = False
    needs_position: bool = False
    position_reason: str = ""
    pins: bool = False
    pin_reason: str = ""
    adds_up: bool = False
    adds_up_reason: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decisions of the plan that are shown to the user, as clauses."""
        decisions = []
        if self.normalize_reason:
            decisions.append(f"scan.normalize={self.normalize} ({self.normalize_reason})")
        if self.carries_position:
            decisions.append(f"rows are put back into the source's order ({self.position_reason})")
        if self.pins:
            decisions.append(f"other tables are read at one snapshot for the life of the stream ({self.pin_reason})")
        if self.adds_up:
            decisions.append(f"the rows of a key are added up and held against the stored one ({self.adds_up_reason})")
        return tuple(decisions)

    def __str__(self) -> str:
        """Return the sentences as one line; empty if there are none."""
        return "; ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """Reasons why changes need pre-images, other tables must not change, and values must not be random."""

    rows_before: tuple[str, ...] = ()
    fixed_tables: str = ""
    chance: str = ""
    adds_up: str = ""


def plan_of(facts: QueryFacts, sink: SinkTable, *, carries_kind: bool) -> StreamPlan:
    """Plan a write. ``carries_kind``: the row kind will be appended to the query's columns unless it is among them.

    Raises ``InvalidInputError``, with the remedy, if the table could not be kept equal to the query's result.
    """
    kind = sink.columns.get(sink.kind_column)
    _refuse_unknown_results(facts, sink)
    if not facts.streams or facts.combined:
        return StreamPlan()
    if any(each.is_foreign for each in facts.streams):
        _refuse_lost_deletions(facts, sink)
        return _with_order(facts, sink, StreamPlan(), is_ordered=kind is not None)
    if all(each.kind_column is None for each in facts.streams):
        return _with_order(facts, sink, StreamPlan(), is_ordered=sink.kind is not SinkKind.APPENDS)
    is_own = facts.judges_kinds or bool(facts.opaque) or (kind is not None and kind not in facts.kinds)
    if kind is None and not carries_kind and not is_own:
        raise _loses_kinds(facts, sink)
    is_told = sink.kind is SinkKind.AGGREGATES and any(each.normalize == NONE for each in facts.streams)
    if is_own or is_told or sink.kind is SinkKind.MERGES:
        # The query, the table, or an explicit scan.normalize=none decides what the kinds mean.
        return _with_order(facts, sink, StreamPlan(), is_ordered=True)
    for each in facts.streams:
        if each.moves_keys:
            raise _moves_keys(each, sink)
    need = _need_of(facts, sink)
    if need.chance:
        message = (
            f"table {sink.name}: {need.chance}, and the row before a change is computed again to take it away: it "
            "would come out another one. Leave out what is random or looks at the clock, or use a column of the source"
        )
        raise InvalidInputError(message)
    plan = _normalized(facts, sink, need)
    if need.adds_up:
        return replace(plan, adds_up=True, adds_up_reason=need.adds_up)
    return _with_order(facts, sink, plan, is_ordered=True)


def _need_of(facts: QueryFacts, sink: SinkTable) -> _Need:
    if sink.kind is SinkKind.APPENDS:
        return _need_of_appends(facts, sink)
    if sink.kind is SinkKind.AGGREGATES:
        return _need_of_aggregates(facts, sink)
    return _need_of_counts(facts, sink) if sink.kind is SinkKind.COUNTS else _need_of_key(facts, sink)


def _need_of_appends(facts: QueryFacts, sink: SinkTable) -> _Need:
    """Return the needs of an append-only table, which refuses updates and deletions.

    Pre-images are needed because an update whose new row the query drops must still be refused, and because an upsert
    of a stored key may have the kind of an insertion.
    """
    return _Need(
        rows_before=(
            f"table {sink.name} is append-only, so a row that changes or leaves has to reach it to be refused",
        ),
        fixed_tables="which rows reach the table follows from them" if facts.drops_by_tables else "",
        chance="which rows there are is left to chance" if facts.drops_at_chance else "",
    )


def _need_of_counts(facts: QueryFacts, sink: SinkTable) -> _Need:
    """Return the needs of a table without a key, which counts rows, so that a pre-image must be retracted exactly."""
    return _need_of_whole_rows(
        facts, sink, f"table {sink.name} has no primary key, so a changed row has to be taken away as it was"
    )


def _need_of_aggregates(facts: QueryFacts, sink: SinkTable) -> _Need:
    """Return the needs of an aggregating table: an update without its pre-image would be counted twice."""
    return _need_of_whole_rows(
        facts, sink, f"table {sink.name} aggregates rows, so the row before a change has to be taken out of it"
    )


def _need_of_whole_rows(facts: QueryFacts, sink: SinkTable, reason: str, adds_up: str = "") -> _Need:
    unstable = [name for name, number in sink.columns.items() if number in facts.unstable]
    chance = f"column {unstable[0]!r} is different whenever it is computed" if unstable else ""
    if facts.drops_at_chance:
        chance = "which rows there are is left to chance"
    return _Need(
        rows_before=(reason,),
        fixed_tables="a row is taken away as it was made" if facts.fixed else "",
        chance=chance,
        adds_up=adds_up,
    )


def _need_of_key(facts: QueryFacts, sink: SinkTable) -> _Need:
    stream = facts.stream
    if stream is None or not stream.primary_keys:
        return _need_of_other_key(facts, sink)
    of_key = {name: sink.columns.get(name) for name in sink.primary_keys}
    held = {facts.keys[number] for number in of_key.values() if number is not None and number in facts.keys}
    if not held >= set(stream.primary_keys):
        return _need_of_other_key(facts, sink)
    moved = [name for name, number in of_key.items() if number is not None and number not in facts.of_key]
    at_chance = [name for name in moved if of_key[name] in facts.unstable]
    chance = f"column {at_chance[0]!r} of the key is different whenever it is computed" if at_chance else ""
    if facts.drops_at_chance:
        chance = "which rows there are is left to chance"
    reasons = [f"{name!r} is part of the key and may change" for name in moved]
    reasons += [f"{what} may take in a row at one time and not at another" for what in dict.fromkeys(facts.drops)]
    by_tables = facts.drops_by_tables or any(of_key[name] in facts.of_tables for name in moved)
    if sink.takes_rows_before:
        return _need_of_log(facts, sink, reasons)
    return _Need(
        rows_before=tuple(reasons),
        fixed_tables="which rows are taken away follows from them" if by_tables else "",
        chance=chance,
    )


def _need_of_log(facts: QueryFacts, sink: SinkTable, reasons: Sequence[str]) -> _Need:
    """Return the needs of a log that takes pre-images from the input and needs both rows of an update, or neither."""
    why = f"the log of {sink.name} takes the rows before changes from the input (write.produce-update-before=input)"
    broken = [*reasons, *(f"{what} may make several rows of one" for what in facts.multiplies)]
    if not broken:
        return _need_of_whole_rows(facts, sink, why)
    return _need_of_whole_rows(facts, sink, _looking_up(sink, f"{why}, and {broken[0]}"), adds_up=broken[0])


def _normalized(facts: QueryFacts, sink: SinkTable, need: _Need) -> StreamPlan:
    if not need.rows_before:
        normalize = facts.streams[0].normalize
        if normalize is not None or facts.streams[0].is_complete:
            return StreamPlan()
        return StreamPlan(
            normalize=NONE,
            normalize_reason=f"the key of {facts.streams[0].name} is the key of {sink.name}, and no row can drop out",
        )
    reason = "; ".join(need.rows_before)
    pins, pin_reason = bool(need.fixed_tables and facts.fixed), need.fixed_tables
    wanting = [each for each in facts.streams if not each.is_complete and each.normalize not in (LOOKUP, STATE)]
    for each in wanting:
        if each.normalize == NONE:
            message = (
                f"table {sink.name}: {reason}; so the changes of {each.name} need their pre-images, which "
                f"scan.normalize=none leaves out. Remove that option, or set scan.normalize={_complete(each)}"
            )
            raise InvalidInputError(message)
    if not wanting:
        return StreamPlan(pins=pins, pin_reason=pin_reason if pins else "")
    return StreamPlan(
        normalize=_complete(wanting[0]), normalize_reason=reason, pins=pins, pin_reason=pin_reason if pins else ""
    )


def _complete(table: StreamTable) -> str:
    """Return the mode that adds pre-images: ``state`` if the files are behind the log, else ``lookup``."""
    return STATE if table.is_eventual else LOOKUP


def _with_order(facts: QueryFacts, sink: SinkTable, plan: StreamPlan, *, is_ordered: bool) -> StreamPlan:
    """Return the plan with row positions if it needs them. ``is_ordered``: the table depends on the order of rows."""
    reasons = list(dict.fromkeys(facts.reorders))
    needs = bool(reasons) and sink.kind is not SinkKind.COUNTS
    is_added = all(each.kind_column is None for each in facts.streams)
    if is_added and sink.kind in _KEEPS_ONE_ROW and not facts.streams[0].is_foreign:
        reasons.append("rows of one key come from anywhere in the source, and the last one counts")
    if not is_ordered or not reasons or sink.kind is SinkKind.APPENDS:
        return plan
    if is_added and sink.kind is SinkKind.COUNTS:
        return plan
    if len(facts.streams) > 1:
        if needs:
            raise _several_streams(facts, sink)
        return plan
    return replace(plan, carries_position=True, needs_position=needs, position_reason=", ".join(reasons))


def _names(facts: QueryFacts) -> str:
    return ", ".join(dict.fromkeys(each.name for each in facts.streams))


def _loses_kinds(facts: QueryFacts, sink: SinkTable) -> InvalidInputError:
    kind = next(each.kind_column for each in facts.streams if each.kind_column is not None)
    message = (
        f"table {sink.name}: the rows are changes of {_names(facts)}, but have lost the column {kind} that tells "
        f"deletions from insertions. Keep it as {sink.kind_column}, or say there what each row means"
    )
    return InvalidInputError(message)


def _refuse_unknown_results(facts: QueryFacts, sink: SinkTable) -> None:
    """Refuse rows computed from several changes, whose kind is undefined, and operations that cannot be analysed."""
    if all(each.kind_column is None for each in facts.streams):
        return
    if facts.combined and sink.columns.get(sink.kind_column) in facts.kinds:
        message = (
            f"table {sink.name}: {facts.combined[0]} makes rows of several changes of {_names(facts)}, and "
            f"{sink.kind_column} of one change does not determine the kind of the result. Compute "
            f"{sink.kind_column} of "
            "the result, or read a table that only grows (write-mode=append-only)"
        )
        raise InvalidInputError(message)
    if facts.unknown:
        message = (
            f"table {sink.name}: what Spark's {facts.unknown[0]} does to changes of {_names(facts)} is not known here. "
            "Write the query without it, or read one snapshot instead of changes"
        )
        raise InvalidInputError(message)


def _need_of_other_key(facts: QueryFacts, sink: SinkTable) -> _Need:
    """Return the needs of a key that does not contain the source's: one row may come from several source rows."""
    stream = facts.stream
    keys = ", ".join(sink.primary_keys)
    if stream is None:
        why = f"the rows come from several streams ({_names(facts)}), whose changes have no order among each other"
    elif not stream.primary_keys:
        why = f"{stream.name} has no primary key, so several of its rows may share one of {sink.name}"
    else:
        why = (
            f"the key ({keys}) of {sink.name} does not hold the primary key of {stream.name} "
            f"({', '.join(stream.primary_keys)}) unchanged, so several of its rows may share one"
        )
    return _need_of_whole_rows(facts, sink, _looking_up(sink, why), adds_up=why)


def _looking_up(sink: SinkTable, why: str) -> str:
    """Return ``why``; raise ``InvalidInputError`` if rows can't be summed because stored rows can't be looked up."""
    if sink.looks_up:
        return why
    message = (
        f"table {sink.name}: {why}, and with log.consistency=eventual the rows that are stored can't be looked up. "
        "Write into a table with log.consistency=transactional, into one whose key has the source's key in it, or into "
        "one without a primary key, which counts rows"
    )
    raise InvalidInputError(message)


def _refuse_lost_deletions(facts: QueryFacts, sink: SinkTable) -> None:
    """Refuse a query that drops rows by values which a deletion may not have: its row would stay for ever."""
    told = [each for each in facts.streams if each.leaves_out]
    if not told or not facts.drops or sink.kind is SinkKind.APPENDS:
        return
    message = (
        f"table {sink.name}: {facts.drops[0]} drops rows by values that deletions of {told[0].name} may leave out, as "
        "PostgreSQL's do by default, so that the rows which they delete would stay. Let it read only columns of "
        "the key (option primary-key); let the database log whole rows, and set source.before-image=whole; or apply "
        "the topic to a table of its own (read_changelog(table=...)), and query that"
    )
    raise InvalidInputError(message)


def _moves_keys(table: StreamTable, sink: SinkTable) -> InvalidInputError:
    message = (
        f"table {sink.name}: the primary key of {table.name} ({', '.join(table.primary_keys)}) lacks a partition "
        "column, so a key moves between partitions, whose changes have no order among each other. Copy it by batches, "
        "or declare the source with its partition columns in the key"
    )
    return InvalidInputError(message)


def _several_streams(facts: QueryFacts, sink: SinkTable) -> InvalidInputError:
    message = (
        f"table {sink.name}: the rows come from several streams ({_names(facts)}), whose changes have no order among "
        "each other, and it keeps the last one of a key. Run one stream for each, or write into a table without a "
        "primary key"
    )
    return InvalidInputError(message)
