"""Filters given as Arrow expressions: ``pc.field("price") > 5``.

Arrow gives no access to the parts of an expression, so it is evaluated as a whole on the rows, with Arrow's semantics.
Unlike filters given as text or ``col()``, it can't be used to skip files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.predicate import Predicate, Stats
from storage_lib.schema.table_schema import TableSchema

_RESULT = "passes"


@dataclass(frozen=True, slots=True, eq=False)
class ArrowCondition(Predicate):
    """Predicate of an Arrow expression. ``names`` are the columns that it reads, None before validation."""

    expression: pc.Expression
    names: frozenset[str] | None = None

    @property
    def columns(self) -> frozenset[str]:
        """Names of all columns in the expression. Raises ``InvalidInputError`` before validation."""
        if self.names is None:
            message = (
                f"the filter {self._text} is an expression of Arrow, which is evaluated where rows are read by Arrow "
                "only; give it as text, or made of col()"
            )
            raise InvalidInputError(message)
        return self.names

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        rows = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        found = _evaluated(self.expression, rows.select(sorted(self.columns)), rows.num_rows)
        return found if rows is batch else found.combine_chunks()

    def may_match(self, stats: Stats) -> bool:  # noqa: ARG002  the expression's parts are unknown
        return True

    def may_fail(self, stats: Stats) -> bool:  # noqa: ARG002  likewise
        return True

    def validated(self, schema: TableSchema) -> Predicate:
        """Return the condition with its columns: those without which it can't be bound."""
        rows = schema.arrow_schema.empty_table()
        try:
            found = _evaluated(self.expression, rows, 0)
        except (pa.ArrowException, KeyError, TypeError) as error:
            problem = str(error).partition("\n")[0]
            message = (
                f"the filter {self._text} does not fit the table: {problem}; columns: {', '.join(rows.schema.names)}"
            )
            raise InvalidInputError(message) from error
        if not pa.types.is_boolean(found.type):
            message = (
                f"the filter {self._text} is of type {found.type}; give a condition, such as pc.field('price') > 5"
            )
            raise InvalidInputError(message)
        needed = frozenset(name for name in rows.schema.names if not self._binds(rows.drop_columns([name])))
        return replace(self, names=needed)

    def _binds(self, rows: pa.Table) -> bool:
        try:
            _evaluated(self.expression, rows, 0)
        except (pa.ArrowException, KeyError):
            return False
        return True

    @property
    def _text(self) -> str:
        return repr(str(self.expression))


def _evaluated(expression: pc.Expression, rows: pa.Table, count: int) -> pa.ChunkedArray:
    if not rows.num_columns:
        # A condition without columns still has a value for each row.
        rows = pa.table({_RESULT: pa.nulls(count)})
    from pyarrow import acero

    plan = acero.Declaration.from_sequence(
        [
            acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
            acero.Declaration("project", acero.ProjectNodeOptions([expression], [_RESULT])),
        ]
    )
    return plan.to_table(use_threads=False)[_RESULT]
