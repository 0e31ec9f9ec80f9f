"""Temporary views of a refresh: each source at the moments that the compiled query reads, created when it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from storage_lib.io.environment import system_environment
from storage_lib.materialized.algebra import Moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.materialized.algebra import Views

FrameOf = Callable[[str, Moment], "DataFrame"]
"""Returns the rows of a source, by ``database.table``, at a moment."""


@contextmanager
def source_views(spark: SparkSession, token: str, frame_of: FrameOf) -> Iterator[Views]:
    """Yield a function that names views of the session, each created once; all are dropped at the end.

    ``token`` is part of the names, so that refreshes of one session do not share views.
    """
    views: dict[tuple[str, Moment], str] = {}

    def view(name: str, moment: Moment) -> str:
        if (name, moment) not in views:
            relation = f"refresh_{token.replace('-', '_')}_{len(views)}"
            frame_of(name, moment).createOrReplaceTempView(relation)
            views[name, moment] = relation
        return views[name, moment]

    try:
        yield view
    finally:
        for relation in views.values():
            spark.catalog.dropTempView(relation)


def shared_prefix() -> str:
    """Return a prefix for names of relations that no other refresh of the session uses."""
    return f"refresh_{system_environment().new_name().replace('-', '_')}_"
