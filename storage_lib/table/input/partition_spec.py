"""Translates partition specs such as ``{"dt": "2013-01-05"}`` to filters on partition columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.comparisons import Equal, IsNull
from storage_lib.schema.filter.literal import typed_literal
from storage_lib.schema.filter.predicate import And, Or, Predicate
from storage_lib.schema.placing.partition import PartitionCodec
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.protocol.write_context import OverwriteScope


class PartitionSpecs:
    """Checks and translates partition specs of one table."""

    def __init__(self, table: str, schema: TableSchema) -> None:
        self._table = table
        self._schema = schema

    def predicate(self, spec: Mapping[str, object]) -> Predicate | None:
        """Return a filter for partitions with all these values; None for the empty spec, which selects every partition.

        Raises ``InvalidInputError`` for a column that is not a partition column and for a value of another type.
        """
        return reduce(And, (self._equals(name, value) for name, value in spec.items())) if spec else None

    def predicate_of_any(self, specs: Sequence[Mapping[str, object]]) -> Predicate | None:
        """Return a filter for partitions of any of these specs; ``InvalidInputError`` for an empty list or spec."""
        if not specs or not all(specs):
            message = (
                f"table {self._table}: no partition is named; name at least one, "
                f"as {{{', '.join(f'{name!r}: ...' for name in self._schema.partition_keys)}}}"
            )
            raise InvalidInputError(message)
        predicates = [predicate for spec in specs if (predicate := self.predicate(spec)) is not None]
        return reduce(Or, predicates)

    def buckets(self, named: Iterable[tuple[Mapping[str, object], int]]) -> set[tuple[bytes, int]]:
        """Return buckets by whole partition and number; ``InvalidInputError`` for an invalid partition or number.

        A bucket that does not exist is accepted, because the caller may have listed buckets of an earlier snapshot.
        """
        codec = PartitionCodec(self._schema)
        found = set[tuple[bytes, int]]()
        for partition, bucket in named:
            if type(bucket) is not int or bucket < 0:
                message = f"table {self._table}: {bucket!r} is not a bucket of a partition; their numbers begin at 0"
                raise InvalidInputError(message)
            try:
                found.add((codec.encode(partition), bucket))
            except InvalidInputError as error:
                message = f"table {self._table}: bucket {bucket} of partition {dict(partition)}: {error}"
                raise InvalidInputError(message) from error
        return found

    def predicate_of(self, scope: OverwriteScope) -> Predicate | None:
        """Return a filter for a scope's partitions; None for all and for dynamic ones. Raises as ``predicate``."""
        return self.predicate_of_any(scope.specs) if scope.specs and all(scope.specs) else None

    def _equals(self, name: str, value: object) -> Predicate:
        if name not in self._schema.partition_keys:
            known = ", ".join(self._schema.partition_keys) or "none: the table is not partitioned"
            message = f"table {self._table}: {name!r} is not a partition column; they are: {known}"
            raise InvalidInputError(message)
        return IsNull(name) if value is None else Equal(name, typed_literal(value, self._schema.field(name)))
