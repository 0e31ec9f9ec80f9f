"""The columns of a view that the catalog stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.schema.table_schema import typed_columns
from storage_lib.spark.types.spark_schema import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.catalog.views.view import View


def described_columns(view: View, df: DataFrame) -> list[tuple[str | None, ...]]:
    """Return name, type, nullability, role and comment of each column of a view, as DESCRIBE shows those of tables.

    ``df`` is the result of the view's query.
    """
    fields = typed_columns(arrow_schema_of(df.schema))
    names = view.columns or tuple(df.columns)
    return [
        (name, str(type_.with_nullable(nullable=True)), str(type_.nullable).lower(), "", view.column_comments.get(name))
        for name, (_, type_) in zip(names, fields, strict=True)
    ]
