"""Publication of a branch: the difference of its rows to main's, and then main with the branch's rows.

All tables are checked before the first is changed. Each is then replaced in one commit, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.dynamic_tables.branch import IN_PLACE, Branch

from storage_lib import InvalidInputError
from storage_lib.errors import StorageError

if TYPE_CHECKING:
    from storage_lib import DynamicTable
    from storage_lib.verification.verification import Verification

_NAMED = 3


@dataclass(frozen=True)
class _Model:
    """A model or seed of the project: its name in the project, in main and next to it."""

    node: str
    materialized: str
    main: str
    aside: str


class Publication:
    """Publishes the models of a project that a branch has."""

    def __init__(self, branch: Branch, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._branch, self._catalog = branch, branch.catalog
        models = [
            _Model(
                node=each["name"],
                materialized=each["materialized"],
                main=f"{each['schema']}.{each['identifier']}",
                aside=f"{branch.database_next_to(each['schema'])}.{each['identifier']}",
            )
            for each in nodes
        ]
        self._schemas = sorted({each["schema"] for each in nodes})
        is_aside = {each.main: branch.exists(each.aside) for each in models}
        self._forwarded = [each for each in models if not is_aside[each.main] and branch.has_table(each.main)]
        self._replaced = [each for each in models if is_aside[each.main] and each.materialized in IN_PLACE]
        self._rebuilt = [each for each in models if is_aside[each.main] and each.materialized not in IN_PLACE]

    def differences(self) -> Iterator[str]:
        """Yield lines that say how the rows of the branch differ from main's."""
        found = [*self._forwarded, *self._replaced, *self._rebuilt]
        for each in found:
            yield from self._difference(each)
        if not found:
            yield f"branch {self._branch.name} has no model of this project"

    def publish(self) -> Iterator[str]:
        """Replace main by the branch, and delete the branch; yield a line per table.

        Raises ``InvalidInputError``, before anything is changed, if a table of main has changed since the branch was
        made from it.
        """
        self._check()
        for each in self._forwarded:
            snapshot = self._catalog.load_table(each.main).branches.fast_forward(self._branch.name)
            yield f"{each.main}: " + ("unchanged" if snapshot is None else f"snapshot {snapshot.id}")
        for each in self._replaced:
            if self._catalog.table_exists(each.main):
                self._catalog.drop_table(each.main)
            self._catalog.views.drop(each.main, if_exists=True)
            self._catalog.rename_table(each.aside, each.main)
            yield f"{each.main}: a new table"
        rebuilt = " ".join(each.node for each in self._rebuilt)
        self._branch.drop(self._schemas)
        if rebuilt:
            yield f"views and materialized tables follow by `dbt run --select {rebuilt}` in a target without the branch"

    def _check(self) -> None:
        for each in (*self._forwarded, *self._replaced):
            if not self._catalog.table_exists(each.main):
                continue
            table = self._catalog.load_table(each.main)
            if table.definition is not None:
                if each in self._replaced:
                    message = (
                        f"{each.main} is a materialized table, and model {each.node} of the branch is "
                        f"{each.materialized}; drop it by DROP MATERIALIZED TABLE, then publish the branch again"
                    )
                    raise InvalidInputError(message)
                continue
            if not self._branch.has_table(each.main):
                message = (
                    f"{each.main} was created after branch {self._branch.name} had built it as a new table; drop the "
                    "branch (drop_branch), and build it again"
                )
                raise InvalidInputError(message)
            table.branches.check_unchanged(self._branch.name)

    def _difference(self, model: _Model) -> Iterator[str]:
        if self._catalog.views.exists(model.aside):
            yield f"{model.main}: a view, whose rows are not compared"
            return
        if model in self._forwarded:
            table = self._catalog.load_table(f"{model.main}$branch_{self._branch.name}")
        else:
            table = self._catalog.load_table(model.aside)
        if not self._catalog.table_exists(model.main):
            yield f"{model.main}: a new table of {table.to_arrow().num_rows} rows"
            return
        yield from _compared(model.main, table, self._catalog.load_table(model.main))


def _compared(name: str, table: DynamicTable, main: DynamicTable) -> Iterator[str]:
    from storage_lib.verification.verify import verify

    new, old = (list(each.arrow_schema.names) for each in (table, main))
    common = [column for column in new if column in old]
    columns = [f"new column {each}" for each in new if each not in old]
    columns += [f"without column {each}" for each in old if each not in new]
    try:
        result = verify(table, main, columns=common, limit=_NAMED)
    except StorageError as error:
        yield f"{name}: not compared: {error}"
        return
    yield f"{name}: " + "; ".join([_counts(result), *columns])
    for each in result.differences:
        key = ", ".join(f"{column} {value!r}" for column, value in each.key.items())
        values = ", ".join(
            f"{column} {(each.source_values or {}).get(column)!r} -> {(each.table_values or {}).get(column)!r}"
            for column in each.columns
        )
        yield f"  {_WORDS.get(each.kind.value, each.kind.value)}: {key}" + (f": {values}" if values else "")


_WORDS = {"extra": "added", "missing": "deleted", "different": "changed"}


def _counts(result: Verification) -> str:
    counts = {"added": result.extra, "deleted": result.missing, "changed": result.different}
    counts["repeated keys"] = result.repeated
    changed = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    return f"{result.source_rows} rows before, {result.table_rows} after: {changed or 'no difference'}"
