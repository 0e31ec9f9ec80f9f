"""CALL: maintenance procedures with the names and effects of Apache Paimon's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_values import parse_millis
from storage_lib.spark.compaction.distributed_compaction import compact
from storage_lib.sql.run.insert_rows import written
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.parts import Literal, NamedTable
from storage_lib.sql.statements.row_statements import Call

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

Arguments = Mapping[str, Literal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure. ``parameters`` are (name, type) in order; the first is ``table``, which is always required."""

    parameters: tuple[tuple[str, type], ...]
    run: Callable[[SessionState, DynamicTable, Arguments], Result]
    required: tuple[str, ...] = ()


def run_call(state: SessionState, statement: Call) -> Result:
    """Run a procedure. Raises ``NotFoundError`` for an unknown one, ``InvalidInputError`` naming a wrong argument."""
    schema, name = statement.procedure[:-1], statement.procedure[-1].lower()
    procedure = PROCEDURES.get(name)
    if procedure is None or schema not in ((), ("sys",), (state.catalog_name, "sys")):
        message = f"unknown procedure {'.'.join(statement.procedure)}{did_you_mean(name, PROCEDURES)}"
        raise NotFoundError(message)
    arguments = _arguments(name, procedure, statement)
    table = state.load(NamedTable(parts=tuple(str(arguments["table"]).split("."))))
    return procedure.run(state, table, arguments)


def _arguments(name: str, procedure: Procedure, statement: Call) -> dict[str, Literal]:
    types = dict(procedure.parameters)
    parameters = list(types)
    signature = f"{name}({', '.join(parameters)})"
    if len(statement.arguments) > len(parameters):
        message = f"CALL {signature} takes {len(parameters)} arguments, not {len(statement.arguments)}"
        raise InvalidInputError(message)
    given = dict(zip(parameters, statement.arguments, strict=False))
    for key, value in statement.named.items():
        if key not in parameters:
            message = f"CALL {signature} has no argument {key!r}{did_you_mean(key, parameters)}"
            raise InvalidInputError(message)
        if key in given:
            message = f"CALL {signature}: argument {key!r} is given twice"
            raise InvalidInputError(message)
        given[key] = value
    given = {key: value for key, value in given.items() if value is not None}
    for key in ("table", *procedure.required):
        if key not in given:
            message = f"CALL {signature} lacks argument {key!r}"
            raise InvalidInputError(message)
    for key, value in given.items():
        if not isinstance(value, types[key]) or (types[key] is int and isinstance(value, bool)):
            message = f"CALL {signature}: {key} = {value!r} is not a {_TYPE_NAMES[types[key]]}"
            raise InvalidInputError(message)
    return given


_TYPE_NAMES = {str: "text in quotes", int: "whole number", bool: "true or false"}


def _compact(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:
    partitions = _partitions(table, str(arguments.get("partitions", "")))
    result = Result(message=f"{table.name}: nothing to write")
    for spec in partitions or [None]:
        snapshot = compact(state.spark, table, partition=spec, full=bool(arguments.get("full", True)))
        result = written(table, snapshot) if snapshot is not None else result
    return result


def _partitions(table: DynamicTable, text: str) -> list[dict[str, object] | None]:
    """Parse partitions in Paimon's syntax, ``dt=2024-05-14,hr=1;dt=2024-05-15``; empty for an empty text."""
    specs: list[dict[str, object] | None] = []
    for part in filter(None, (each.strip() for each in text.split(";"))):
        pairs = [pair.partition("=") for pair in part.split(",")]
        if not all(equals for _, equals, _ in pairs):
            message = f"table {table.name}: invalid partition {part!r}; write 'dt=2024-05-14,hr=1;dt=2024-05-15'"
            raise InvalidInputError(message)
        specs.append({key.strip(): value.strip() for key, _, value in pairs})
    return specs


def _expire_snapshots(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    older = arguments.get("older_than_millis")
    result = table.maintenance.expire_snapshots(
        retain_last=int(str(arguments.get("retain_last", 10))),
        older_than_millis=None if older is None else int(str(older)),
    )
    return _counted(snapshots=result.snapshot_count, data_files=result.data_file_count, manifests=result.manifest_count)


def _remove_orphan_files(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    age = timedelta(milliseconds=parse_millis(str(arguments.get("older_than", "1 d"))))
    result = table.maintenance.remove_orphan_files(older_than=age, dry_run=bool(arguments.get("dry_run", False)))
    return Result(rows=rows_of(("file",), [(path,) for path in result.paths]))


def _create_tag(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    snapshot, retained = arguments.get("snapshot"), arguments.get("time_retained")
    table.tags.create(
        str(arguments["tag"]),
        snapshot_id=None if snapshot is None else int(str(snapshot)),
        time_retained=None if retained is None else str(retained),
    )
    return Result(message=f"{table.name}: tag {arguments['tag']} created")


def _delete_tag(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    table.tags.delete(str(arguments["tag"]))
    return Result(message=f"{table.name}: tag {arguments['tag']} deleted")


def _expire_tags(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    return Result(rows=rows_of(("tag",), [(name,) for name in table.tags.expire()]))


def _rollback_to(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    tag, snapshot = arguments.get("tag"), arguments.get("snapshot")
    return written(
        table,
        table.rollback_to(
            snapshot_id=None if snapshot is None else int(str(snapshot)), tag=None if tag is None else str(tag)
        ),
    )


def _tier_log(state: SessionState, table: DynamicTable, arguments: Arguments) -> Result:  # noqa: ARG001
    return written(table, table.maintenance.tier_log(skip_expired=bool(arguments.get("skip_expired", False))))


def _counted(**counts: int) -> Result:
    return Result(rows=rows_of(("what", "count"), [(name, str(count)) for name, count in counts.items()]))


PROCEDURES: Mapping[str, Procedure] = {
    "compact": Procedure(parameters=(("table", str), ("partitions", str), ("full", bool)), run=_compact),
    "expire_snapshots": Procedure(
        parameters=(("table", str), ("retain_last", int), ("older_than_millis", int)), run=_expire_snapshots
    ),
    "remove_orphan_files": Procedure(
        parameters=(("table", str), ("older_than", str), ("dry_run", bool)), run=_remove_orphan_files
    ),
    "create_tag": Procedure(
        parameters=(("table", str), ("tag", str), ("snapshot", int), ("time_retained", str)),
        run=_create_tag,
        required=("tag",),
    ),
    "delete_tag": Procedure(parameters=(("table", str), ("tag", str)), run=_delete_tag, required=("tag",)),
    "expire_tags": Procedure(parameters=(("table", str),), run=_expire_tags),
    "rollback_to": Procedure(parameters=(("table", str), ("snapshot", int), ("tag", str)), run=_rollback_to),
    "tier_log": Procedure(parameters=(("table", str), ("skip_expired", bool)), run=_tier_log),
}
