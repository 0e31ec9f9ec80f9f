"""Declaration of a table for CREATE, built step by step from ``TableDescriptor.for_managed()``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage_lib.schema.evolution.schema_changes import TypeLike, type_of
from storage_lib.schema.options.metadata_options import metadata_key, split_type
from storage_lib.schema.table_schema import Columns, typed_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescriptor:
    """Declaration of a table: columns, keys, options and comment.

    Options that are not given come from the catalog, then from the defaults.
    """

    schema: Columns
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def for_managed(cls) -> TableDescriptor:
        """Return an empty declaration of a table with its own storage (FLIP-188's ``TableDescriptor.forManaged``)."""
        return cls(schema=())

    def columns(self, types: Mapping[str, TypeLike]) -> TableDescriptor:
        """Append columns, by name."""
        described = self
        for name, type_ in types.items():
            described = described.column(name, type_)
        return described

    def column(
        self,
        name: str,
        type_: TypeLike,
        *,
        nullable: bool = True,
        comment: str | None = None,
        metadata: str | None = None,
    ) -> TableDescriptor:
        """Append a column. ``type_`` is an Arrow type (``pa.int64()``) or an SQL type (``VARCHAR(20)``).

        ``metadata``, such as ``value.source.lsn``: ``ingest`` fills the column from that metadata of records, as it
        does with SQL's ``BIGINT METADATA FROM 'value.source.lsn'``.
        """
        text, of_records = split_type(name, type_) if isinstance(type_, str) else (type_, None)
        metadata = of_records if metadata is None else metadata
        of = type_of(text)
        added = (name, of if nullable else of.not_null())
        comments = self.column_comments if comment is None else {**self.column_comments, name: comment}
        options = self.options if metadata is None else {**self.options, metadata_key(name): metadata}
        columns = (*typed_columns(self.schema), added)
        return replace(self, schema=columns, column_comments=comments, options=options)

    def with_primary_key(self, columns: Sequence[str]) -> TableDescriptor:
        """Set the primary key."""
        return replace(self, primary_key=tuple(columns))

    def partitioned_by(self, columns: Sequence[str]) -> TableDescriptor:
        """Set the partition columns."""
        return replace(self, partition_by=tuple(columns))

    def option(self, key: str, value: str) -> TableDescriptor:
        """Add an option."""
        return replace(self, options={**self.options, key: value})
