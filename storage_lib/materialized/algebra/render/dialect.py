"""Whose SQL statements are written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from storage_lib.materialized.algebra.query_sources import Views
from storage_lib.materialized.algebra.render.statement import Renderer
from storage_lib.schema.filter.spark_text import SparkText

__all__ = ["SPARK", "Dialect", "SqlDialect"]


class Dialect(Protocol):
    """Gives renderers of statements."""

    def renderer(self, views: Views, prefix: str = "") -> Renderer:
        """Return a renderer of statements over the relations that ``views`` names."""
        ...


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """A dialect of sqlglot, with the values and types of its engine."""

    name: str | type[SparkText]

    def renderer(self, views: Views, prefix: str = "") -> Renderer:
        """Return a renderer of statements over the relations that ``views`` names."""
        return Renderer(views, self.name, prefix)


SPARK = SqlDialect(SparkText)
