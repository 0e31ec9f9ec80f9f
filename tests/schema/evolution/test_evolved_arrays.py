"""Columns of older files converted to later schemas, compared value by value with plain Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.schema.evolution.evolved_arrays import evolved, stands_as_it_is
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, RowType

TEXT = DataType(TypeRoot.VARCHAR)
INTEGER, BIGINT = DataType(TypeRoot.INTEGER), DataType(TypeRoot.BIGINT)
SCALARS = st.sampled_from([TEXT, INTEGER, BIGINT])
NAMES = st.sampled_from("abc")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Values written as type ``stored`` and read as type ``wanted``."""

    stored: DataType
    wanted: DataType
    values: list[Any]


def row_of(fields: list[tuple[str, DataType]], ids: count[int]) -> RowType:
    return RowType(fields=tuple(DataField(id=next(ids), name=name, type=each) for name, each in fields))


def types(ids: count[int]) -> st.SearchStrategy[DataType]:
    def more(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        fields = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda field: field[0])
        return st.one_of(
            inner.map(lambda each: ArrayType(element=each)),
            inner.map(lambda each: MapType(key=TEXT, value=each)),
            fields.map(lambda each: row_of(each, ids)),
        )

    return st.recursive(SCALARS, more, max_leaves=5)


def later(draw: st.DrawFn, of: DataType, ids: count[int]) -> DataType:
    """Return a type that ALTER TABLE permits: wider, other nullability, fields renamed, dropped, added and moved."""
    nullable = draw(st.booleans())
    match of:
        case ArrayType():
            return replace(of, nullable=nullable, element=later(draw, of.element, ids))
        case MapType():
            return replace(of, nullable=nullable, value=later(draw, of.value, ids))
        case RowType():
            kept = [each for each in of.fields if draw(st.booleans())]
            added = [DataField(id=next(ids), name="", type=draw(SCALARS)) for _ in range(draw(st.integers(0, 1)))]
            if not kept + added:
                kept = list(of.fields)
            names = draw(st.permutations("abcdef"))
            keeps_names = draw(st.booleans())
            fields = [
                each
                if keeps_names and not added
                else replace(each, name=name, type=later(draw, each.type, ids) if each.name else each.type)
                for each, name in zip(kept + added, names, strict=False)
            ]
            return replace(of, nullable=nullable, fields=tuple(fields))
        case _:
            return replace(BIGINT if of.root is TypeRoot.INTEGER and draw(st.booleans()) else of, nullable=nullable)


def value(draw: st.DrawFn, of: DataType) -> Any:
    if draw(st.integers(0, 4)) == 0:
        return None
    match of:
        case ArrayType():
            return [value(draw, of.element) for _ in range(draw(st.integers(0, 2)))]
        case MapType():
            return [(key, value(draw, of.value)) for key in draw(st.sampled_from(["", "x", "xy"]))]
        case RowType():
            return {each.name: value(draw, each.type) for each in of.fields}
        case _:
            return draw(st.sampled_from(["", "text"]) if of.root is TypeRoot.VARCHAR else st.integers(-9, 9))


def as_wanted(stored_value: Any, stored: DataType, wanted: DataType) -> Any:
    """Convert one value with plain Python."""
    match stored, wanted:
        case _ if stored_value is None:
            return None
        case ArrayType(), ArrayType():
            return [as_wanted(each, stored.element, wanted.element) for each in stored_value]
        case MapType(), MapType():
            return [(key, as_wanted(each, stored.value, wanted.value)) for key, each in stored_value]
        case RowType(), RowType():
            was = {each.id: each for each in stored.fields}
            return {
                each.name: as_wanted(stored_value[was[each.id].name], was[each.id].type, each.type)
                if each.id in was
                else None
                for each in wanted.fields
            }
        case _:
            return stored_value


@st.composite
def cases(draw: st.DrawFn) -> Case:
    ids = count()
    stored = draw(types(ids))
    wanted = later(draw, stored, ids)
    return Case(stored=stored, wanted=wanted, values=[value(draw, stored) for _ in range(draw(st.integers(0, 4)))])


@given(case=cases())
def test_every_value_is_found_by_the_ids_of_its_fields(case: Case) -> None:
    array = pa.array(case.values, case.stored.arrow)

    found = evolved(array, case.stored, case.wanted)

    assert found.type == case.wanted.arrow
    assert found.to_pylist() == [as_wanted(each, case.stored, case.wanted) for each in case.values]


@given(case=cases())
def test_what_stands_as_it_is_has_the_same_values_already(case: Case) -> None:
    if stands_as_it_is(case.stored, case.wanted) and case.stored.arrow == case.wanted.arrow:
        assert [as_wanted(each, case.stored, case.wanted) for each in case.values] == case.values
        array = pa.array(case.values, case.stored.arrow)
        assert evolved(array, case.stored, case.wanted) is array


def test_a_new_field_under_the_name_of_a_dropped_one_does_not_stand_as_it_is() -> None:
    ids = count()
    stored = row_of([("a", INTEGER)], ids)
    wanted = row_of([("a", INTEGER)], ids)
    array = pa.array([{"a": 1}], stored.arrow)

    assert stored.arrow == wanted.arrow
    assert not stands_as_it_is(stored, wanted)
    assert evolved(array, stored, wanted).to_pylist() == [{"a": None}]
