"""Context that all parts of one branch of a table share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from storage_lib.built_once import built_once
from storage_lib.file_store.store import FileStore
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.options.table_options import ChangelogMode, LogConsistency, TableOptions
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.protocol.lease import TableLeases


@dataclass(frozen=True)
class TableContext:
    """The name, location, schema, options and both stores of a table, under one version of its schema.

    ``location`` is the table's directory, ``paths`` those of the branch in it. ``store_options`` are the catalog's, for
    stream states that are stored elsewhere.
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
            file_store=FileStore(table=name, environment=environment, paths=paths, schema=schema, options=options),
            log=log,
            store_options=store_options,
        )

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
