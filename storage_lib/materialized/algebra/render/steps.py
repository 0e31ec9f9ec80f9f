"""A statement in parts that are computed one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from storage_lib.materialized.algebra.render.statement import Renderer
from storage_lib.materialized.algebra.tree.relational_operators import Relation

__all__ = ["Steps"]


@dataclass(frozen=True, slots=True)
class Steps:
    """Relations ``shared`` by a statement, each under its name and over earlier ones, and ``last``, its rows.

    ``columns``: the tree's columns of ``last``, and their names in the statement.
    """

    renderer: Renderer
    shared: tuple[tuple[str, Relation], ...]
    last: Relation
    columns: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """One statement, with the shared relations as common table expressions."""
        shared = ", ".join(f"{name} AS ({select})" for name, select in self.shared_selects)
        last = self._named(self.renderer)
        return f"WITH {shared} {last}" if shared else last

    @property
    def shared_selects(self) -> tuple[tuple[str, str], ...]:
        """The names of the shared relations in statements, and their SELECT statements."""
        return tuple((self.renderer.shared_name(name), self.renderer.query(rows)) for name, rows in self.shared)

    def run(self, compute: Callable[[str, str], bool]) -> str | None:
        """Give each shared relation's name and SELECT to ``compute``; return the SELECT of the rows, None for no rows.

        ``compute`` returns whether the relation has rows. Later statements leave out what has none for that reason.
        """
        renderer = self.renderer
        for name, rows in self.shared:
            if renderer.is_empty(self.last):
                return None
            select = renderer.query(rows)
            if renderer.is_empty(rows):
                select = f"SELECT * FROM ({select}) AS r WHERE FALSE"
            if not compute(renderer.shared_name(name), select):
                renderer = renderer.with_empty(name)
        return None if renderer.is_empty(self.last) else self._named(renderer)

    def _named(self, renderer: Renderer) -> str:
        names = ", ".join(f"{own} AS {name}" for own, name in self.columns)
        return f"SELECT {names} FROM ({renderer.query(self.last)}) AS d"
