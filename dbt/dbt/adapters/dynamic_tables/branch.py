"""A branch of the tables: models are written to it in place of the tables, and read from it where it has them.

shop.orders              main, which a target with a branch never writes
shop.orders$branch_pr    the same table with the rows that the target wrote (table, incremental, seed)
shop__pr.days            what a branch of a table can't hold: views, new tables, other columns, materialized tables
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib import InvalidInputError

if TYPE_CHECKING:
    from storage_lib import Catalog

_MARK = "$branch_"
_PROPERTY = "dbt.branch"
IN_PLACE = frozenset({"table", "incremental", "seed"})
"""Materializations that replace or add rows of a table, which a branch of it takes as well."""


@dataclass(frozen=True)
class Branch:
    """The branch of that name, of every table of a catalog that has it, and the databases next to the tables'."""

    name: str
    catalog: Catalog

    def database_next_to(self, schema: str) -> str:
        """Return the database of what a branch of a table can't hold."""
        return f"{schema}__{self.name}"

    def is_next_to_tables(self, database: str) -> bool:
        """Return whether a database has the name of one next to the tables'."""
        return database.endswith(f"__{self.name}")

    def written_to(self, schema: str, identifier: str, materialized: str) -> tuple[str, str]:
        """Return the database and the name in it that a model is written to; never those of main."""
        aside = self.database_next_to(schema)
        is_in_place = materialized in IN_PLACE and self.is_plain_table(f"{schema}.{identifier}")
        if is_in_place and not self.exists(f"{aside}.{identifier}"):
            return schema, f"{identifier}{_MARK}{self.name}"
        return aside, identifier

    def read_from(self, schema: str, identifier: str) -> tuple[str, str]:
        """Return the database and the name in it that a model is read from: main's, unless the branch has it."""
        aside = self.database_next_to(schema)
        if self.exists(f"{aside}.{identifier}"):
            return aside, identifier
        if self.has_table(f"{schema}.{identifier}"):
            return schema, f"{identifier}{_MARK}{self.name}"
        return schema, identifier

    def exists(self, name: str) -> bool:
        """Return whether a table or view exists."""
        return self.catalog.table_exists(name) or self.catalog.views.exists(name)

    def is_plain_table(self, name: str) -> bool:
        """Return whether a table exists and is not a materialized one."""
        return self.catalog.table_exists(name) and self.catalog.load_table(name).definition is None

    def has_table(self, name: str) -> bool:
        """Return whether a table exists and has this branch."""
        return self.catalog.table_exists(name) and self.name in self.catalog.load_table(name).branches.list()

    def prepare(self, schema: str, identifier: str, materialized: str) -> None:
        """Create what a model is about to be written to: the table's branch, or the database next to the table's."""
        self.create_database(self.database_next_to(schema))
        name = f"{schema}.{identifier}"
        if materialized in IN_PLACE and self.is_plain_table(name) and not self.has_table(name):
            self.catalog.load_table(name).branches.create(self.name)

    def create_database(self, database: str) -> None:
        """Create a database next to that of the tables. Raises ``InvalidInputError`` if another one has its name."""
        self.catalog.create_database(database, {_PROPERTY: self.name}, if_not_exists=True)
        self._check_own(database)

    def _check_own(self, database: str) -> None:
        if self.catalog.database_properties(database).get(_PROPERTY) != self.name:
            message = (
                f"database {database} exists, and branch {self.name} did not create it; choose another name of the "
                "branch in the profile"
            )
            raise InvalidInputError(message)

    def drop(self, schemas: list[str]) -> list[str]:
        """Delete the branch of the tables of these databases, and the databases next to them; return what was there.

        Raises ``InvalidInputError``, before anything is deleted, if such a database was created by something else.
        """
        dropped = []
        next_to = {schema: self.database_next_to(schema) for schema in schemas}
        for aside in filter(self.catalog.database_exists, next_to.values()):
            self._check_own(aside)
        for schema in schemas:
            for name in self.catalog.list_tables(schema) if self.catalog.database_exists(schema) else []:
                if self.has_table(name):
                    self.catalog.load_table(name).branches.delete(self.name)
                    dropped.append(f"{name}{_MARK}{self.name}")
            aside = next_to[schema]
            if self.catalog.database_exists(aside):
                self.catalog.drop_database(aside, cascade=True)
                dropped.append(aside)
        return dropped


def without_branch(name: str) -> str:
    """Return the name of a table itself."""
    return name.partition(_MARK)[0]


def is_of_branch(name: str) -> bool:
    """Return whether a name is that of a table's branch."""
    return _MARK in name
