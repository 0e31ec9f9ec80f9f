"""Aggregate functions that choose one version's value: last, first, greatest, least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.data_file.comparable_key import comparable_integers, is_integer_like
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import MergedField
from storage_lib.file_store.merge_tree.aggregate_function.field_versions import NOTHING, FieldVersions
from storage_lib.schema.types.data_types import DataType


@dataclass(frozen=True, kw_only=True)
class LastValue:
    """The newest value, null or not; null after the newest was retracted."""

    name: str = "last_value"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Choose the last value; a null is a value like any other, so no row has to be below."""
        lasts = versions.lasts
        if versions.retracts is not None:
            lasts = np.where(versions.retracts[lasts], NOTHING, lasts)
        state = versions.picked(lasts)
        return MergedField(state=state, alone=pa.nulls(versions.count, state.type))


@dataclass(frozen=True, kw_only=True)
class LastNonNullValue:
    """The newest value that is not null; null after a retraction, until the next value."""

    name: str = "last_non_null_value"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Choose the last non-null value; a retraction goes below, since a null would mean "not mentioned"."""
        if versions.retracts is None and versions.values.null_count == 0:
            return MergedField(state=versions.picked(versions.lasts))
        added = versions.last_of(versions.is_added)
        if versions.retracts is None:
            return MergedField(state=versions.picked(added))
        taken = versions.last_of(versions.is_valid & versions.retracts)
        return MergedField(
            state=versions.picked(np.where(added > taken, added, NOTHING)),
            below=versions.picked(np.where(taken > added, taken, NOTHING)),
        )


@dataclass(frozen=True, kw_only=True)
class FirstValue:
    """The oldest value, null or not."""

    name: str = "first_value"
    takes_back: bool = False

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Choose the value of each key's first row."""
        return MergedField(state=versions.picked(versions.starts))


@dataclass(frozen=True, kw_only=True)
class FirstNonNullValue:
    """The oldest value that is not null."""

    name: str = "first_non_null_value"
    takes_back: bool = False

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Choose the value of each key's first row that has one."""
        return MergedField(state=versions.picked(versions.first_of(versions.is_added)))


@dataclass(frozen=True, kw_only=True)
class Extreme:
    """The greatest or the least value; nulls are ignored. Ordered like keys (comparable_key.py)."""

    name: str
    type: DataType
    takes_back: bool = False

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Compare integers in the order of the values."""
        present = versions.only(versions.is_added)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        ranks = self._ranks(present.values)
        choose = np.maximum if self.name == "max" else np.minimum
        best = choose.reduceat(ranks, present.starts)
        is_best = ranks == np.repeat(best, present.lasts - present.starts + 1)
        return MergedField(state=present.picked(present.last_of(is_best)))

    def _ranks(self, values: pa.Array) -> npt.NDArray[np.int64]:
        if is_integer_like(self.type):
            return comparable_integers(values)
        return pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class BooleanExtreme:
    """``bool_and`` and ``bool_or``; nulls are ignored."""

    name: str
    takes_back: bool = False

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Choose the least, or the greatest, of false and true."""
        present = versions.only(versions.is_added)
        values = present.values.to_numpy(zero_copy_only=False).astype(np.bool_)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, pa.bool_()))
        merge = np.logical_and if self.name == "bool_and" else np.logical_or
        return MergedField(state=present.spread(pa.array(merge.reduceat(values, present.starts))))
