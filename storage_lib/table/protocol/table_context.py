"""Context that all parts of one branch of a table share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from storage_lib.built_once import built_once
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.iceberg_view import IcebergView
from storage_lib.iceberg.view_refusals import view_choice
from storage_lib.io.after_commit import after_commit
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.options.table_options import ChangelogMode, LogConsistency, TableOptions
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.protocol.lease import TableLeases


def _view_of(
    name: str,
    uuid: str,
    location: str,
    branch: str,
    environment: Environment,
    connection: Mapping[str, str],
) -> Callable[[FileStore], IcebergView | None]:
    """Return how to open the view of a table under a schema, if that asks for one. Branches have no view."""

    def view_of(store: FileStore) -> IcebergView | None:
        choice = view_choice(name, store.schema, location) if branch == MAIN_BRANCH else None
        if choice is None:
            return None
        return IcebergView(
            store,
            table=name,
            table_uuid=uuid,
            location=location,
            choice=choice,
            environment=environment,
            connection=connection,
        )

    return view_of


@dataclass(frozen=True)
class TableContext:
    """The name, location, schema, options and both stores of a table, under one version of its schema.

    ``location`` is the table's directory, ``paths`` those of the branch in it. ``store_options`` are the catalog's, for
    stream states that are stored elsewhere, and for views that are registered in a catalog of others.
    """

    name: str
    uuid: str
    location: str
    branch: str
    environment: Environment
    paths: TablePaths
    schema: TableSchema
    options: TableOptions
    file_store: FileStore
    log: LogStore | None
    store_options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *,
        name: str,
        uuid: str,
        location: str,
        branch: str,
        environment: Environment,
        schema: TableSchema,
        options: TableOptions,
        log: LogStore | None,
        store_options: Mapping[str, str],
    ) -> Self:
        """Create the context with the file store of the branch; reads nothing."""
        paths = TablePaths(location, branch)
        return cls(
            name=name,
            uuid=uuid,
            location=location,
            branch=branch,
            environment=environment,
            paths=paths,
            schema=schema,
            options=options,
            file_store=FileStore(
                table=name,
                environment=environment,
                paths=paths,
                schema=schema,
                options=options,
                view_of=_view_of(name, uuid, location, branch, environment, store_options),
            ),
            log=log,
            store_options=store_options,
        )

    @property
    def iceberg_view(self) -> IcebergView | None:
        """The table's Iceberg view; None if it has none."""
        view = self.file_store.view
        return view if isinstance(view, IcebergView) else None

    def refresh_view(self) -> None:
        """Let the Iceberg view, if there is one, show the newest snapshot, schema and tags.

        A failure is logged, and the next commit repeats it: the table itself has changed already.
        """
        view = self.iceberg_view
        if view is not None:
            with after_commit(f"table {self.name}: updating its Iceberg view"):
                view.refresh()

    def succeed_view(self, former: TableContext) -> None:
        """After the table was altered, refresh its Iceberg view, or drop the former one if that was another.

        Readers of a view that ends get an error, instead of rows that no longer change. A failure is logged.
        """
        view, before = self.iceberg_view, former.iceberg_view
        if before is not None and (view is None or view.directory.root != before.directory.root):
            with after_commit(f"table {self.name}: deleting its former Iceberg view"):
                before.drop()
        elif before is not None and view is not None:
            if view.choice.registered_as != before.choice.registered_as:
                before.entry.remove()
            if not self.options.delta_enabled:
                with after_commit(f"table {self.name}: deleting its log for readers of Delta"):
                    before.delta.drop()
        self.refresh_view()

    @property
    def is_branch(self) -> bool:
        """Whether this is a branch other than the main one."""
        return self.branch != MAIN_BRANCH

    @built_once
    def leases(self) -> TableLeases:
        """The leases of the branch's writers."""
        return TableLeases(
            self.environment,
            self.paths,
            timeout_ms=self.options.lease_timeout_ms,
            wait_timeout_ms=self.options.lease_wait_timeout_ms,
            table=self.name,
        )

    @property
    def is_log_first(self) -> bool:
        """Whether rows are written to the log only and visible at once; ``tier_log`` later writes them to files."""
        return self.log is not None and self.options.log_consistency is LogConsistency.EVENTUAL

    @cached_property
    def logs_old_rows(self) -> bool:
        """Whether the log contains the pre-image of each change (``log.changelog-mode=all``)."""
        mode = self.options.effective_changelog_mode(has_primary_key=bool(self.schema.primary_keys))
        return mode is ChangelogMode.ALL
