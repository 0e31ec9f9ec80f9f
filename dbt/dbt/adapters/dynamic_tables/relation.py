"""A table, view or materialized table by name: ``database.table``, which dbt calls schema and identifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import HasQuoting, Policy, RelationConfig, RelationType
from dbt.adapters.dynamic_tables.branch import is_of_branch
from dbt.adapters.dynamic_tables.connections import DynamicTablesCredentials, branch_of

_BUILT = ("model", "seed", "snapshot")


@dataclass
class _Included(Policy):
    database: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class DynamicTablesRelation(BaseRelation):
    """A name of two parts in back quotes. A materialized table has dbt's type ``materialized_view``."""

    quote_character: str = "`"
    include_policy: Policy = field(default_factory=_Included)
    renameable_relations = frozenset({RelationType.View, RelationType.Table})
    replaceable_relations = frozenset({RelationType.View})

    @classmethod
    def create(cls, database: str | None = None, **parts: Any) -> DynamicTablesRelation:
        """Create a relation. Names have no database in dbt's sense, which nodes give as an empty text."""
        created: DynamicTablesRelation = super().create(database=None, **parts)
        return created

    @classmethod
    def create_from(cls, quoting: HasQuoting, relation_config: RelationConfig, **more: Any) -> DynamicTablesRelation:
        """Create the relation of a node of the project. A target with a branch never gets main's name to write to.

        dbt resolves ``ref`` with a limit of rows, which may be None, and what is written without one.
        """
        created: DynamicTablesRelation = super().create_from(quoting, relation_config, **more)
        credentials = getattr(quoting, "credentials", None)
        branch = branch_of(credentials) if isinstance(credentials, DynamicTablesCredentials) else None
        if branch is None or relation_config.resource_type not in _BUILT or created.identifier is None:
            return created
        schema, identifier = str(created.schema), str(created.identifier)
        if "limit" in more:
            schema, identifier = branch.read_from(schema, identifier)
        else:
            materialized = str(getattr(relation_config.config, "materialized", ""))
            schema, identifier = branch.written_to(schema, identifier, materialized)
        return created.incorporate(path={"schema": schema, "identifier": identifier})

    @property
    def is_of_branch(self) -> bool:
        """Whether this is the branch of a table."""
        return is_of_branch(str(self.identifier))

    @property
    def name_in_catalog(self) -> str:
        """The name as the catalog has it, without quotes."""
        return f"{self.schema}.{self.identifier}"
