"""ALTER TABLE: derives the next version of the schema, and refuses changes that the files or the log do not support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from storage_lib.errors import CommitConflictError, InvalidInputError, NotFoundError
from storage_lib.file_store.cleanup.external_claims import ExternalClaims
from storage_lib.file_store.kind.kind_choice import kind_of
from storage_lib.file_store.snapshot.schema_in_force import schema_in_force
from storage_lib.format.formats import format_of, formats_by_level
from storage_lib.iceberg.view_refusals import OPTION as VIEW_OPTION
from storage_lib.iceberg.view_refusals import VERSION_OPTION, refuse_view
from storage_lib.log_store.codec.log_evolution import refuse_for_log
from storage_lib.log_store.external.source_metadata import refuse_declared_metadata
from storage_lib.schema.evolution.alter_schema import alter_schema
from storage_lib.schema.evolution.schema_changes import RemoveOption, SchemaChange, SetOption
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.evolution.unsupported import refuse_unsupported
from storage_lib.schema.options.external_paths import (
    PATHS_OPTION,
    ROOT_PATH_OPTION,
    STRATEGY_OPTION,
    ExternalPathStrategy,
    declared_directories,
    external_paths_of,
    with_root_path,
)
from storage_lib.schema.options.table_options import UUID_OPTION, TableOptions, canonical_key
from storage_lib.schema.placing.layout import begins_layout
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.protocol.materialized_rows import refuse_user_columns
from storage_lib.table.protocol.table_context import TableContext


class TableAlter:
    """Implements the schema verbs of ``DynamicTable``; see their docstrings there."""

    def __init__(
        self,
        context: TableContext,
        *,
        give_up_rewriting: Callable[[], None],
    ) -> None:
        self._table = context.name
        self._uuid = context.schema.options.get(UUID_OPTION)
        self._environment = context.environment
        self._history = SchemaHistory(context.environment.file_io, context.paths)
        self._location = context.location
        self._is_branch = context.is_branch
        self._log = context.log
        self._check_table = context.file_store.check_still_there
        self._in_force = partial(schema_in_force, context.environment.file_io, context.paths)
        self._give_up_rewriting = give_up_rewriting

    def apply(self, changes: Sequence[SchemaChange]) -> TableSchema:
        """Append a schema version with the changes; if another process appended one first, apply them to that one.

        Waits for a running rewrite. Raises ``CommitConflictError`` if one begins at the same time.
        """
        self._check_table()
        self._give_up_rewriting()
        try:
            changes = [each for change in changes for each in self._spelled_out(change)]
            sets_directories = any(_sets_directories(change) for change in changes)
            return self._history.alter(lambda schema: self._altered(schema, changes, claims=sets_directories))
        except InvalidInputError as error:
            name = f"table {self._table}: "
            message = str(error) if str(error).startswith(name) else f"{name}{error}"
            raise InvalidInputError(message) from error

    def newest(self) -> TableSchema:
        """Return the current version; ``NotFoundError`` if the table was dropped."""
        newest = self._in_force()
        if newest is None:
            message = f"table {self._table} no longer exists; it was dropped, or renamed, after it was loaded"
            raise NotFoundError(message)
        return newest

    def version(self, schema_id: int) -> TableSchema:
        """Return one version; raises as ``SchemaHistory.load``."""
        return self._history.load(schema_id)

    def _spelled_out(self, change: SchemaChange) -> tuple[SchemaChange, ...]:
        """Replace a change of ``file.root-path`` by changes of the options that the schema stores for it."""
        if isinstance(change, SetOption) and canonical_key(change.key) == ROOT_PATH_OPTION:
            declared = with_root_path({ROOT_PATH_OPTION: change.value}, self._table.partition("$")[0])
            return tuple(SetOption(key, value) for key, value in declared.items())
        if isinstance(change, RemoveOption) and canonical_key(change.key) == ROOT_PATH_OPTION:
            # The directory stays declared, because it contains files.
            return (SetOption(STRATEGY_OPTION, ExternalPathStrategy.NONE.value),)
        return (change,)

    def _claim_directories(self, schema: TableSchema, altered: TableSchema) -> None:
        if self._is_branch:
            message = (
                f"table {self._table}: option {PATHS_OPTION} cannot be set on a branch, because all branches of a "
                "table share its data directories; set it on the table"
            )
            raise InvalidInputError(message)
        known = declared_directories(schema.options)
        claims = ExternalClaims(self._environment.stores, self._location)
        for directory in declared_directories(altered.options):
            claims.claim(directory, is_new=directory not in known)

    def _altered(self, schema: TableSchema, changes: Sequence[SchemaChange], *, claims: bool) -> TableSchema:
        if schema.options.get(UUID_OPTION) != self._uuid:
            message = f"table {self._table} was dropped and recreated while it was altered; load it again"
            raise NotFoundError(message)
        if begins_layout(schema) and self.newest().id != schema.id:
            message = (
                f"table {self._table} cannot be altered while it is being rewritten under schema {schema.id}; alter it "
                "when the rewrite has ended"
            )
            raise CommitConflictError(message)
        altered = alter_schema(schema, changes, time_millis=self._environment.clock.now_millis())
        refuse_user_columns(self._table, schema, altered)
        options = TableOptions.parse(altered.options)
        format_of(options)
        formats_by_level(options)
        refuse_unsupported(self._table, altered, before=schema)
        self._refuse_view(schema, altered)
        refuse_declared_metadata(altered)
        # The merge engine must support a column's new type.
        kind_of(self._table, altered, options)
        if _rows(altered) != _rows(schema):
            self._refuse_other_rows(schema)
        external_paths_of(altered.options)
        if claims:
            self._claim_directories(schema, altered)
        if self._log is not None and altered is not schema:
            refuse_for_log(altered, [self._history.load(each) for each in self._history.ids()])
            self._log.evolve(altered)
        return altered

    def _refuse_view(self, schema: TableSchema, altered: TableSchema) -> None:
        """Refuse an Iceberg view of the altered table that could not be exact."""
        for option in (VIEW_OPTION, VERSION_OPTION):
            if self._is_branch and altered.options.get(option) != schema.options.get(option):
                message = (
                    f"table {self._table}: option {option} cannot be changed on a branch, because branches have no "
                    "Iceberg view; change it on the table"
                )
                raise InvalidInputError(message)
        if altered.options.get(VIEW_OPTION) is None:
            return
        refuse_view(
            self._table,
            altered,
            location=self._location,
            earlier=[self._history.load(each) for each in self._history.ids()],
            before=schema.options.get(VIEW_OPTION),
        )

    def _refuse_other_rows(self, schema: TableSchema) -> None:
        """Refuse changes of columns if rows are counted by their whole content, which would no longer match."""
        if schema.counts_values:
            message = (
                "a table without primary key tells its rows apart by all their columns, so these can't change; create "
                "a new table, with the primary key or write-mode=append-only"
            )
            raise InvalidInputError(message)


def _sets_directories(change: SchemaChange) -> bool:
    return isinstance(change, SetOption) and canonical_key(change.key) == PATHS_OPTION


def _rows(schema: TableSchema) -> list[tuple[str, object]]:
    return [(each.name, each.type) for each in schema.fields]
