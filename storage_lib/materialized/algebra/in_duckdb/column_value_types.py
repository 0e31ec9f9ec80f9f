"""Types of all columns of a tree, from those of its sources."""

from __future__ import annotations

from collections.abc import Callable

from storage_lib.materialized.algebra.in_duckdb.group_text import GroupText
from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError
from storage_lib.materialized.algebra.in_duckdb.scalar_text import ScalarText
from storage_lib.materialized.algebra.in_duckdb.value_type import BIGINT, NOTHING, ValueType, common_type
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Project,
    Relation,
    Scan,
    Union,
    Window,
    inputs_of,
)

__all__ = ["ColumnValueTypes", "ScanTypes"]

ScanTypes = Callable[[str, str], ValueType]
"""Returns the type of a column by its table's name; raises ``NotExactError``."""


class ColumnValueTypes:
    """Types by column, whose names occur once in a tree; they are found operator by operator."""

    def __init__(self, of_source: ScanTypes) -> None:
        self._of_source = of_source
        self.known: dict[str, ValueType] = {}
        self.scalars = ScalarText(self.known)
        self.groups = GroupText(self.known)
        self._seen: list[Relation] = []
        self._seen_ids: set[int] = set()

    def learn(self, relation: Relation) -> None:
        """Find the types of the columns of an operator, and of those below it. Raises ``NotExactError``."""
        if id(relation) in self._seen_ids:
            return
        for each in inputs_of(relation):
            self.learn(each)
        match relation:
            case Scan():
                self.known.update({own: self._of_source(relation.table, name) for name, own in relation.columns})
                if relation.weight is not None:
                    self.known[relation.weight] = BIGINT
            case Project():
                self.known.update({name: self.scalars.value(value).type for name, value in relation.items})
            case Aggregate():
                self.known.update({name: self.groups.value(value).type for name, value in relation.items})
            case Window():
                self.known.update({name: self.groups.window(value).type for name, value in relation.items})
            case Union():
                self.known.update(self._of_union(relation))
            case _:
                pass
        self._seen_ids.add(id(relation))
        self._seen.append(relation)  # An id may be given again once a relation is gone.

    def _of_union(self, union: Union) -> dict[str, ValueType]:
        found = {}
        for place, name in enumerate(union.outputs):
            kind = NOTHING
            for each in union.inputs:
                outputs = each.outputs
                if len(outputs) != len(union.outputs):
                    raise NotExactError("a union of different columns")
                kind = common_type(kind, self.known[outputs[place]])
            found[name] = kind
        return found
