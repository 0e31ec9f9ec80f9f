"""Random ALTERs between random writes, compared with a dictionary: rows by key, their values by field id."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage_lib import MemoryCatalog, col
from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, DropColumn, MoveColumn, RenameColumn
from storage_lib.table.dynamic_table import DynamicTable

NAMES = ("a", "b", "c", "r")
WIDER = {"SMALLINT": "INT", "INT": "BIGINT", "BIGINT": "DECIMAL(20, 0)", "VARCHAR(5)": "STRING"}
KINDS = ("SMALLINT", "VARCHAR(5)", "ARRAY<INT>", "ROW<x INT, y STRING>")


class AlteredTable(RuleBasedStateMachine):
    """Current table (``table``), the table of a writer that never reloads (``old``), and the model."""

    @initialize()
    def create(self) -> None:
        catalog = MemoryCatalog({"log.system": "none"})
        self.old = catalog.create_table("db.t", {"id": "INT", "a": "SMALLINT"}, primary_key=["id"])
        self.table = self.old
        self.rows: dict[int, dict[int, Any]] = {}

    def columns(self, table: DynamicTable) -> list[tuple[int, str, str]]:
        return [(each.id, each.name, str(each.type)) for each in table.schema.fields[0:] if each.name != "id"]

    @rule(name=st.sampled_from(NAMES), kind=st.sampled_from(KINDS), first=st.booleans())
    def add(self, name: str, kind: str, first: bool) -> None:  # noqa: FBT001  drawn
        if name not in self.table.arrow_schema.names:
            self.table = self.table.alter(AddColumn(name, kind, first=first))

    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        columns = self.columns(self.table)
        if columns:
            self.table = self.table.alter(DropColumn(data.draw(st.sampled_from(columns))[1]))

    @rule(data=st.data(), new_name=st.sampled_from(NAMES))
    def rename(self, data: st.DataObject, new_name: str) -> None:
        columns = self.columns(self.table)
        if columns and new_name not in self.table.arrow_schema.names:
            self.table = self.table.alter(RenameColumn(data.draw(st.sampled_from(columns))[1], new_name))

    @rule(data=st.data())
    def widen(self, data: st.DataObject) -> None:
        narrow = [(name, WIDER[kind]) for _, name, kind in self.columns(self.table) if kind in WIDER]
        if narrow:
            self.table = self.table.alter(AlterType(*data.draw(st.sampled_from(narrow))))

    @rule()
    def move(self) -> None:
        self.table = (
            self.table.alter(MoveColumn(self.table.arrow_schema.names[-1], first=True))
            if (len(self.table.arrow_schema.names) > 1)
            else self.table
        )

    @rule(keys=st.sets(st.integers(1, 6), min_size=1), data=st.data(), is_old=st.booleans())
    def write(self, keys: set[int], data: st.DataObject, is_old: bool) -> None:  # noqa: FBT001  drawn
        table = self.old if is_old else self.table
        for key in keys:
            values = {each: data.draw(_value(kind)) for each, _, kind in self.columns(table)}
            self.rows[key] = values
        names = {name: each for each, name, _ in self.columns(table)}
        rows = [{"id": key, **{name: self.rows[key][each] for name, each in names.items()}} for key in sorted(keys)]
        table.append(pa.Table.from_pylist(rows, schema=table.arrow_schema))

    @rule(is_old=st.booleans(), full=st.booleans())
    def compact(self, is_old: bool, full: bool) -> None:  # noqa: FBT001  drawn
        (self.old if is_old else self.table).compact(full=full)

    @rule()
    def reload(self) -> None:
        self.old = self.table = self.table.refresh()

    @precondition(lambda self: hasattr(self, "rows"))
    @invariant()
    def the_table_shows_what_the_dictionary_holds(self) -> None:
        found = {row.pop("id"): row for row in self.table.to_arrow().to_pylist()}
        columns = self.columns(self.table)
        assert found == {
            key: {name: _as(values.get(each), kind) for each, name, kind in columns}
            for key, values in self.rows.items()
        }
        for each, name, kind in columns[:1]:
            nulls = self.table.to_arrow(columns=["id"], filter=col(name).is_null())["id"].to_pylist()
            assert sorted(nulls) == sorted(key for key, values in self.rows.items() if values.get(each) is None)
            if kind in ("INT", "BIGINT", "DECIMAL(20, 0)"):
                some = self.table.to_arrow(columns=["id"], filter=col(name) > 100)["id"].to_pylist()
                assert sorted(some) == sorted(k for k, v in self.rows.items() if (v.get(each) or 0) > 100)


def _value(kind: str) -> st.SearchStrategy[Any]:
    known: dict[str, st.SearchStrategy[Any]] = {
        "SMALLINT": st.integers(-300, 300),
        "INT": st.integers(-300, 300),
        "BIGINT": st.integers(-300, 300),
        "DECIMAL(20, 0)": st.integers(-300, 300).map(Decimal),
        "ARRAY<INT>": st.lists(st.integers(0, 9), max_size=2),
        "ROW<x INT, y STRING>": st.fixed_dictionaries({"x": st.integers(0, 9), "y": st.text("xy", max_size=2)}),
    }
    return st.none() | known.get(kind, st.text("ab", max_size=5))


def _as(value: Any, kind: str) -> Any:
    return Decimal(value) if value is not None and kind.startswith("DECIMAL") else value


TestAlteredTables = AlteredTable.TestCase
TestAlteredTables.settings = settings(
    max_examples=12, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
)
