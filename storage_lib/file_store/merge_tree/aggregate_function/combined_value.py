"""Aggregate functions that combine all versions' values: sum, count, product, listagg."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.aggregate_function.decimal_products import decimal_products, decimal_quotients
from storage_lib.file_store.merge_tree.aggregate_function.exact_sums import exact_sums
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import MergedField
from storage_lib.file_store.merge_tree.aggregate_function.field_versions import FieldVersions


@dataclass(frozen=True, kw_only=True)
class Sum:
    """Sum of added values minus retracted values; nulls are ignored. ``table`` and ``column`` are for messages."""

    table: str
    column: str
    name: str = "sum"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Add the values; a retraction adds the negative, so one number is sufficient."""
        present = versions.only(versions.is_valid)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        total = present.spread(self._total(present))
        if versions.retracts is None:
            return MergedField(state=total)
        return MergedField(state=total, alone=self._negative(present, total), neutral=0)

    def _negative(self, present: FieldVersions, total: pa.Array) -> pa.Array:
        """Return the negative total for keys with retractions only; it may be null for other keys."""
        assert present.retracts is not None  # noqa: S101  else nothing is negative
        only_taken = present.spread(pa.array(np.logical_and.reduceat(present.retracts, present.starts)))
        taken = pc.if_else(pc.fill_null(only_taken, fill_value=False), total, pa.scalar(None, total.type))
        try:
            return pc.negate_checked(taken) if pa.types.is_integer(total.type) else pc.negate(taken)
        except pa.ArrowInvalid as error:
            raise too_large(self.table, self.column, self.name, total.type) from error

    def _total(self, present: FieldVersions) -> pa.Array:
        kind = present.values.type
        if pa.types.is_floating(kind):
            values = present.values.to_numpy().astype(np.float64)
            signed = values if present.retracts is None else np.where(present.retracts, -values, values)
            return pa.array(np.add.reduceat(signed, present.starts)).cast(kind)
        total, overflows = exact_sums(present.values, present.starts, present.retracts)
        if overflows.any():
            raise too_large(self.table, self.column, self.name, kind)
        return total


@dataclass(frozen=True, kw_only=True)
class Count:
    """Number of non-null values minus retracted ones. A stored count is a sum of ones."""

    table: str
    column: str
    name: str = "count"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return 1 for a value, 0 for a null."""
        return values.is_valid().cast(pa.int8()).cast(values.type)

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:
        """Add the counts."""
        return Sum(table=self.table, column=self.column, name=self.name).merge(versions, final=final)


@dataclass(frozen=True, kw_only=True)
class Product:
    """Product of added values divided by the product of retracted values; nulls are ignored.

    A quotient of integers is truncated towards zero, one of decimals rounded half up, in the final merge only: until
    then dividend and divisor are stored separately.
    """

    table: str
    column: str
    name: str = "product"
    takes_back: bool = True

    def lifted(self, values: pa.Array) -> pa.Array:
        """Return the values unchanged."""
        return values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:
        """Multiply the values; the divisor goes below until the merge is final."""
        product = self._product(versions.only(versions.is_added))
        if versions.retracts is None:
            return MergedField(state=product)
        divisor = self._product(versions.only(versions.is_valid & versions.retracts))
        if not final:
            return MergedField(state=product, below=divisor, neutral=1)
        return MergedField(state=self._quotient(product, divisor), below=divisor)

    def _quotient(self, product: pa.Array, divisor: pa.Array) -> pa.Array:
        if not pa.types.is_decimal(product.type):
            return pc.divide(product, pc.fill_null(divisor, 1))
        try:
            quotient, overflows = decimal_quotients(product, divisor)
        except ZeroDivisionError as error:
            message = (
                f"table {self.table}: the product of the values retracted from column {self.column!r} comes to 0 when "
                f"it is rounded to {product.type}, which can't be a divisor. Give the column a greater scale"
            )
            raise InvalidInputError(message) from error
        if overflows.any():
            raise too_large(self.table, self.column, self.name, product.type)
        return quotient

    def _product(self, present: FieldVersions) -> pa.Array:
        kind = present.values.type
        if not len(present.starts):
            return pa.nulls(present.count, kind)
        if pa.types.is_floating(kind):
            values = present.values.to_numpy().astype(np.float64)
            return present.spread(pa.array(np.multiply.reduceat(values, present.starts)).cast(kind))
        if pa.types.is_decimal(kind):
            decimals, overflows = decimal_products(present.values, present.starts)
            if overflows.any():
                raise too_large(self.table, self.column, self.name, kind)
            return present.spread(decimals)
        # Python integers, multiplied in NumPy's loop, do not overflow.
        products = np.multiply.reduceat(present.values.to_numpy().astype(object), present.starts)
        limits = np.iinfo(kind.to_pandas_dtype())
        if bool(((products < limits.min) | (products > limits.max)).any()):
            raise too_large(self.table, self.column, self.name, kind)
        return present.spread(pa.array(products.astype(np.int64)).cast(kind))


@dataclass(frozen=True, kw_only=True)
class ListAgg:
    """Strings joined by a delimiter, oldest first; nulls are ignored. ``distinct``: each part only once."""

    delimiter: str = ","
    distinct: bool = False
    name: str = "listagg"
    takes_back: bool = False

    def lifted(self, values: pa.Array) -> pa.Array:
        """Remove repeated parts of each value if ``distinct``."""
        return self._without_repeats(values) if self.distinct else values

    def merge(self, versions: FieldVersions, *, final: bool) -> MergedField:  # noqa: ARG002  of the protocol
        """Join one list per key."""
        present = versions.only(versions.is_added)
        if not len(present.starts):
            return MergedField(state=pa.nulls(versions.count, versions.values.type))
        offsets = np.append(present.starts, len(present.values))
        lists = pa.LargeListArray.from_arrays(pa.array(offsets), present.values.cast(pa.large_string()))
        joined = pc.binary_join(lists, pa.scalar(self.delimiter, pa.large_string())).cast(versions.values.type)
        return MergedField(state=present.spread(self._without_repeats(joined) if self.distinct else joined))

    def _without_repeats(self, values: pa.Array) -> pa.Array:
        parts = pl.Series(values).str.split(self.delimiter).list.unique(maintain_order=True)
        return parts.list.join(self.delimiter).to_arrow().cast(values.type)


def too_large(table: str, column: str, name: str, kind: pa.DataType) -> InvalidInputError:
    """Return the error for a result that its column can't store."""
    message = (
        f"table {table}: the {name} of column {column!r} is too large for {kind} in at least one row. Widen the "
        "column's type, or take the largest values out"
    )
    return InvalidInputError(message)
