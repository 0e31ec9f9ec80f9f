"""A query over tables, compiled into statements that compute its answer and the change of its answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from storage_lib.materialized.algebra.accumulate.accumulated_groups import accumulated_groups
from storage_lib.materialized.algebra.accumulate.accumulators import Accumulators
from storage_lib.materialized.algebra.change.differentiate import ADDED, REMOVED, Change, Differentiation
from storage_lib.materialized.algebra.change.reduce import Reduction
from storage_lib.materialized.algebra.change.restrict import Touched, restricted
from storage_lib.materialized.algebra.change.top_rows import StoredTopRows
from storage_lib.materialized.algebra.derive.exactness import first_inexact
from storage_lib.materialized.algebra.derive.groups import regrouped
from storage_lib.materialized.algebra.derive.maintenance import MaintainedOperator
from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.query_sources import RESULT, Moment, Views
from storage_lib.materialized.algebra.read.table_names import NamedTables
from storage_lib.materialized.algebra.render.dialect import SPARK, Dialect
from storage_lib.materialized.algebra.render.steps import Steps
from storage_lib.materialized.algebra.tree.relational_operators import Relation, Scan, TopRows, at, over

__all__ = ["CompiledQuery"]

_FIRST_NEW_NAME = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledQuery:
    """Statements that compute a query's answer, and its change.

    ``sources`` are the qualified names of the tables that it reads and ``needed`` the columns read of each;
    ``columns`` are the answer's, ``key`` those of a primary key that every answer satisfies (None if none is known).
    ``operators`` say how each part of the query is maintained. If ``reason`` is given, only the whole answer can be
    computed, for this reason. ``is_deterministic``: the answer depends on nothing but the sources' rows. ``has_star``:
    the query reads columns that it does not name. ``types`` are those of the tree's columns that hold values of
    sources.
    """

    tables: NamedTables
    sources: tuple[str, ...]
    needed: Mapping[str, tuple[str, ...]]
    columns: tuple[str, ...]
    key: tuple[str, ...] | None
    operators: tuple[MaintainedOperator, ...]
    reason: str | None
    is_deterministic: bool
    has_star: bool
    tree: Relation | None
    types: Mapping[str, str]

    @property
    def is_incremental(self) -> bool:
        """Whether ``delta`` has a statement."""
        return self.tree is not None

    @property
    def reads_result(self) -> bool:
        """Whether ``delta`` reads the stored rows of the materialized table, as the view of ``RESULT``."""
        return self.tree is not None and (isinstance(self.tree, TopRows) or regrouped(self.tree) is not None)

    @property
    def inexact(self) -> str | None:
        """An aggregate whose value may have other last digits each time that it is computed; None without one."""
        return None if self.tree is None else first_inexact(self.tree, None)

    @property
    def accumulators(self) -> Accumulators | None:
        """Statements that keep sums and counts by group; None if the query has aggregates of other forms, or none."""
        groups = None if self.tree is None else accumulated_groups(self.tree)
        return None if groups is None else Accumulators(groups, self.columns, self.types)

    def full(self, views: Views, moment: Moment = Moment.AFTER, *, dialect: Dialect = SPARK) -> str:
        """Return a SELECT of the whole answer at a moment."""
        if self.tree is None:
            return self.tables.text(lambda name: views(name, moment))
        renderer = dialect.renderer(views)
        tree = at(self.tree, moment)
        items = zip(tree.outputs, self.columns, strict=True)
        names = ", ".join(f"{own} AS {renderer.name(name)}" for own, name in items)
        return f"SELECT {names} FROM ({renderer.query(tree)}) AS answer"

    def delta(
        self,
        views: Views,
        changed: Collection[str],
        *,
        dialect: Dialect = SPARK,
        may_read_result: bool = True,
        are_few: bool = True,
        prefix: str = "",
    ) -> Steps | None:
        """Return a SELECT of the answer's change: its columns and ``_weight``.

        A row may occur several times, with weights that add up; a sum of 0 means that it did not change. ``changed``
        are the sources with a change; None if there are none. Unless ``may_read_result``, old rows of the answer are
        computed from the sources, not read from the view of ``RESULT``. ``are_few``: the sources' changes have few
        rows, so that joins with them begin by reducing the other side. ``prefix`` is part of the names of shared
        relations. Raises ``ValueError`` if the query is not incremental.
        """
        if self.tree is None:
            raise ValueError(f"the query has no delta: {self.reason}")
        rules = Differentiation(frozenset(changed), Names(_FIRST_NEW_NAME), Reduction(self.types) if are_few else None)
        change = self._change(self.tree, rules) if may_read_result else rules.change(self.tree)
        if change is None:
            return None
        renderer = dialect.renderer(views, prefix)
        outputs = [each for each in change.rows.outputs if each != change.weight]
        names = [(own, renderer.name(name)) for own, name in zip(outputs, self.columns, strict=True)]
        return Steps(renderer, tuple(rules.shared), change.rows, (*names, (change.weight, "_weight")))

    def _change(self, tree: Relation, rules: Differentiation) -> Change | None:
        """Return the change of the answer; old rows are read from the table if it can tell which they are."""
        top = regrouped(tree)
        if top is None:
            if isinstance(tree, TopRows):
                return StoredTopRows(tree, rules.share(self._stored(rules)), rules).change()
            return rules.change(tree)
        grouped, named = top
        change = rules.change(grouped.input)
        if change is None:
            return None
        touched = rules.touched(grouped, change)
        rows = tree.input if isinstance(tree, TopRows) else tree
        new = over(rows, grouped, restricted(at(grouped, Moment.AFTER), touched, rules.reduction))
        stored = self._stored(rules)
        columns = dict(zip(tree.outputs, stored.outputs, strict=True))
        of_stored = Touched(touched.rows, tuple((columns[named[key]], name) for key, name in touched.pairs))
        if isinstance(tree, TopRows):
            return StoredTopRows(tree, rules.share(stored), rules).change_of_groups(new, of_stored)
        return rules.weighted([(new, ADDED), (restricted(stored, of_stored), REMOVED)], tree.outputs)

    def _stored(self, rules: Differentiation) -> Scan:
        return Scan(RESULT, tuple((name, rules.names.column()) for name in self.columns), Moment.BEFORE)
