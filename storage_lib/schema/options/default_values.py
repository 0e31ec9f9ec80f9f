"""Default values of columns, written if the input has no value for a column, or NULL.

Paimon stores the default as text in the column's entry of the schema file (``defaultValue``) and casts it from text.
The option ``fields.<column>.default-value`` declares it; the entry is updated with the option, so engines that read
only one of them agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import time
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.field_options import DEFAULT_VALUE, PREFIX, field_option
from storage_lib.schema.options.table_options import MergeEngine
from storage_lib.schema.table_schema import MERGE_ENGINE_OPTION, TableSchema
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import is_nested

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_INTEGERS = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INTEGER, TypeRoot.BIGINT)


def option_of_default(column: str) -> str:
    """Return the key of the option that declares a column's default."""
    return f"{PREFIX}{column}{DEFAULT_VALUE}"


def defaults_in(options: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults that options declare, by column."""
    of_columns = {key: field_option(key) for key in options}
    return {column: options[key] for key, (column, suffix) in of_columns.items() if suffix == DEFAULT_VALUE}


def default_text(schema: TableSchema, field: DataField) -> str | None:
    """Return a column's default as text from its entry, or else from the option, as Paimon 1.2 and older write it."""
    return field.default_value if field.default_value is not None else schema.options.get(option_of_default(field.name))


def default_scalar(field: DataField, text: str) -> pa.Scalar:
    """Convert the default to the column's type.

    Raises ``InvalidInputError`` naming column, text and remedy.
    """
    quoted = len(text) > 1 and text.startswith("'") and text.endswith("'")
    try:
        return _value_of(text[1:-1] if quoted else text, field.type)
    except (pa.ArrowException, ArithmeticError, ValueError) as error:
        message = (
            f"the default value {text!r} of column {field.name!r} can't be read as {field.type} ({error}); change "
            f"option {option_of_default(field.name)}"
        )
        raise InvalidInputError(message) from error


def with_declared_defaults(schema: TableSchema, before: Mapping[str, str]) -> TableSchema:
    """Copy the defaults that the schema's options declare to its columns; ``before`` are the previous options.

    Defaults without an option are kept. Raises ``InvalidInputError`` for a column that can't have a default and for a
    value that is invalid for its type.
    """
    declared, were = defaults_in(schema.options), defaults_in(before)
    if declared == were:
        return schema
    changed = {
        column: declared.get(column) for column in {*declared, *were} if declared.get(column) != were.get(column)
    }
    for column, text in changed.items():
        if text is not None:
            _check(schema, schema.field(column), text)
    return replace(
        schema,
        fields=tuple(
            replace(each, default_value=changed[each.name]) if each.name in changed else each for each in schema.fields
        ),
    )


def _check(schema: TableSchema, field: DataField, text: str) -> None:
    option = option_of_default(field.name)
    if field.name in (*schema.primary_keys, *schema.partition_keys):
        role = "a partition column" if field.name in schema.partition_keys else "part of the primary key"
        message = f"option {option}: column {field.name!r} is {role}, which has no default; leave the option out"
        raise InvalidInputError(message)
    if schema.options.get(MERGE_ENGINE_OPTION) == MergeEngine.PARTIAL_UPDATE:
        message = (
            f"option {option}: with {MERGE_ENGINE_OPTION}={MergeEngine.PARTIAL_UPDATE} NULL leaves the column "
            "unchanged, and a default would overwrite its value; leave the option out"
        )
        raise InvalidInputError(message)
    default_scalar(field, text)
    if field.type.length is not None and field.type.root in (TypeRoot.CHAR, TypeRoot.VARCHAR):
        characters = len(text.removeprefix("'").removesuffix("'"))
        if characters > field.type.length:
            message = f"option {option} has {characters} characters, more than {field.type}; shorten it"
            raise InvalidInputError(message)


def _value_of(text: str, of: DataType) -> pa.Scalar:  # noqa: PLR0911  one line per type
    if is_nested(of) or of.root in (TypeRoot.VARIANT, TypeRoot.TIMESTAMP_LTZ):
        message = "columns of this type have no default here: fill them in the rows that are written"
        raise ValueError(message)
    word = text.strip()
    if of.root in (TypeRoot.CHAR, TypeRoot.VARCHAR):
        return pa.scalar(_cut(text, of), pa.string())
    if of.root in (TypeRoot.BINARY, TypeRoot.VARBINARY):
        return pa.scalar(text.encode(), of.arrow)
    if of.root is TypeRoot.BOOLEAN:
        if word.lower() not in (*_TRUE, *_FALSE):
            message = f"it has to be one of {', '.join((*_TRUE, *_FALSE))}"
            raise ValueError(message)
        return pa.scalar(word.lower() in _TRUE, pa.bool_())
    if of.root in _INTEGERS:
        return pa.scalar(int(word), of.arrow)
    if of.root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        return pa.scalar(float(word), of.arrow)
    if of.root is TypeRoot.DECIMAL:
        return pa.scalar(_decimal(word, of), of.arrow)
    if of.root is TypeRoot.TIME:
        return pa.scalar(time.fromisoformat(word), of.arrow)
    return pa.scalar(word).cast(of.arrow)


def _cut(text: str, of: DataType) -> str:
    """Cast text as Paimon does: truncate long text, and pad short text to the length of a CHAR."""
    if of.length is None:
        return text
    return text[: of.length].ljust(of.length) if of.root is TypeRoot.CHAR else text[: of.length]


def _decimal(word: str, of: DataType) -> Decimal:
    try:
        return Decimal(word).quantize(Decimal(1).scaleb(-(of.scale or 0)), rounding=ROUND_HALF_UP)
    except InvalidOperation as error:
        message = "it is not a number that fits its digits"
        raise ValueError(message) from error
