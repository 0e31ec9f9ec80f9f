"""A table, view or materialized table by name: ``database.table``, which dbt calls schema and identifier."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import Policy, RelationType


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

    @property
    def name_in_catalog(self) -> str:
        """The name as the catalog has it, without quotes."""
        return f"{self.schema}.{self.identifier}"
