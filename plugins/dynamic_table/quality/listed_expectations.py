"""The expectations that a form may contain, by name, with the arguments of each: they only compare values.

Great Expectations runs some arguments as code (conditions, queries), and reads files, addresses and other tables for
others (``$ref`` of a JSON schema, ``urn:`` parameters). Files of expectations and functions may contain them all,
because the authors of DAGs write both. An expectation of a later release is not allowed before it is listed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from dynamic_table.quality.linear_regex import problem_of_re2

__all__ = ["refuse_unlisted"]

_NAME = re.compile(r"[^()'\"`;@\\]+")  # Spark may parse a column as an expression
_TYPE_NAME = re.compile(r"\w+(\(\d+(, ?\d+)?\))?")

Check = Callable[[object], bool]


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | Decimal | date)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_type_name(value: object) -> bool:
    return isinstance(value, str) and _TYPE_NAME.fullmatch(value) is not None


def _is_linear(value: object) -> bool:
    """Return whether a value is a regular expression; raises InvalidInputError for one that RE2 can't evaluate."""
    if not isinstance(value, str):
        return False
    if (problem := problem_of_re2(value)) is not None:
        from storage_lib.errors import InvalidInputError

        message = (
            f"the regular expression {value!r} is not allowed from a form, because it is not one of RE2, which take "
            f"linear time and have no look-around and no back-references ({problem}): write it into a file next to the "
            "DAG, such as expectations/database.table.yaml, or let a function return it, and give its name"
        )
        raise InvalidInputError(message)
    return True


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _one_of(*words: str) -> Check:
    return lambda value: value in words


def _are_quantiles(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and set(value) == {"quantiles", "value_ranges"}
        and _list_of(_is_scalar)(value["quantiles"])
        and _list_of(_list_of(_is_scalar))(value["value_ranges"])
    )


_COLUMN: dict[str, Check] = {"column": _is_name}
_COLUMNS: dict[str, Check] = {"column_list": _list_of(_is_name), "ignore_row_if": _is_scalar}
_PAIR: dict[str, Check] = {"column_A": _is_name, "column_B": _is_name, "ignore_row_if": _is_scalar}
_MOSTLY: dict[str, Check] = {"mostly": _is_scalar}
_BETWEEN: dict[str, Check] = dict.fromkeys(("min_value", "max_value", "strict_min", "strict_max"), _is_scalar)
_SET: dict[str, Check] = {"value_set": _list_of(_is_scalar)}
_MATCH: dict[str, Check] = {"match_on": _one_of("any", "all")}
_LIKE: dict[str, Check] = {"like_pattern": _is_scalar, "escape": _is_scalar}
_LIKES: dict[str, Check] = {"like_pattern_list": _list_of(_is_scalar), "escape": _is_scalar}
_VALUE: dict[str, Check] = {"value": _is_scalar}
_REGEX: dict[str, Check] = {"regex": _is_linear}
_REGEXES: dict[str, Check] = {"regex_list": _list_of(_is_linear)}

_LISTED: Mapping[str, Mapping[str, Check]] = {
    "expect_column_distinct_values_to_be_in_set": {**_COLUMN, **_SET},
    "expect_column_distinct_values_to_contain_set": {**_COLUMN, **_SET},
    "expect_column_distinct_values_to_equal_set": {**_COLUMN, **_SET},
    "expect_column_max_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_mean_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_median_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_min_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_most_common_value_to_be_in_set": {**_COLUMN, **_SET, "ties_okay": _is_scalar},
    "expect_column_pair_values_a_to_be_greater_than_b": {**_PAIR, **_MOSTLY, "or_equal": _is_scalar},
    "expect_column_pair_values_to_be_equal": {**_PAIR, **_MOSTLY},
    "expect_column_pair_values_to_be_in_set": {**_PAIR, **_MOSTLY, "value_pairs_set": _list_of(_list_of(_is_scalar))},
    "expect_column_proportion_of_non_null_values_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_proportion_of_unique_values_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_quantile_values_to_be_between": {
        **_COLUMN,
        "quantile_ranges": _are_quantiles,
        "allow_relative_error": _is_scalar,
    },
    "expect_column_stdev_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_sum_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_to_exist": {**_COLUMN, "column_index": _is_scalar},
    "expect_column_unique_value_count_to_be_between": {**_COLUMN, **_BETWEEN},
    "expect_column_value_lengths_to_be_between": {**_COLUMN, **_MOSTLY, **_BETWEEN},
    "expect_column_value_lengths_to_equal": {**_COLUMN, **_MOSTLY, **_VALUE},
    "expect_column_value_z_scores_to_be_less_than": {
        **_COLUMN,
        **_MOSTLY,
        "threshold": _is_scalar,
        "double_sided": _is_scalar,
    },
    "expect_column_values_to_be_between": {**_COLUMN, **_MOSTLY, **_BETWEEN},
    "expect_column_values_to_be_dateutil_parseable": {**_COLUMN, **_MOSTLY},
    "expect_column_values_to_be_decreasing": {**_COLUMN, **_MOSTLY, "strictly": _is_scalar},
    "expect_column_values_to_be_in_set": {**_COLUMN, **_MOSTLY, **_SET},
    "expect_column_values_to_be_in_type_list": {**_COLUMN, **_MOSTLY, "type_list": _list_of(_is_type_name)},
    "expect_column_values_to_be_increasing": {**_COLUMN, **_MOSTLY, "strictly": _is_scalar},
    "expect_column_values_to_be_json_parseable": {**_COLUMN, **_MOSTLY},
    "expect_column_values_to_be_null": {**_COLUMN, **_MOSTLY},
    "expect_column_values_to_be_of_type": {**_COLUMN, **_MOSTLY, "type_": _is_type_name},
    "expect_column_values_to_be_unique": {**_COLUMN, **_MOSTLY},
    "expect_column_values_to_match_like_pattern": {**_COLUMN, **_MOSTLY, **_LIKE},
    "expect_column_values_to_match_like_pattern_list": {**_COLUMN, **_MOSTLY, **_LIKES, **_MATCH},
    "expect_column_values_to_match_regex": {**_COLUMN, **_MOSTLY, **_REGEX},
    "expect_column_values_to_match_regex_list": {
        **_COLUMN,
        **_MOSTLY,
        **_MATCH,
        **_REGEXES,
    },
    "expect_column_values_to_match_strftime_format": {**_COLUMN, **_MOSTLY, "strftime_format": _is_scalar},
    "expect_column_values_to_not_be_in_set": {**_COLUMN, **_MOSTLY, **_SET},
    "expect_column_values_to_not_be_null": {**_COLUMN, **_MOSTLY},
    "expect_column_values_to_not_be_outliers": {
        **_COLUMN,
        **_MOSTLY,
        "method": _one_of("iqr", "std"),
        "multiplier": _is_scalar,
    },
    "expect_column_values_to_not_match_like_pattern": {**_COLUMN, **_MOSTLY, **_LIKE},
    "expect_column_values_to_not_match_like_pattern_list": {**_COLUMN, **_MOSTLY, **_LIKES},
    "expect_column_values_to_not_match_regex": {**_COLUMN, **_MOSTLY, **_REGEX},
    "expect_column_values_to_not_match_regex_list": {**_COLUMN, **_MOSTLY, **_REGEXES},
    "expect_compound_columns_to_be_unique": {**_COLUMNS, **_MOSTLY},
    "expect_multicolumn_sum_to_equal": {**_COLUMNS, **_MOSTLY, "sum_total": _is_scalar},
    "expect_multicolumn_values_to_be_equal": {**_COLUMNS, **_MOSTLY},
    "expect_select_column_values_to_be_unique_within_record": {**_COLUMNS, **_MOSTLY},
    "expect_table_column_count_to_be_between": dict.fromkeys(("min_value", "max_value"), _is_scalar),
    "expect_table_column_count_to_equal": _VALUE,
    "expect_table_columns_to_match_ordered_list": {"column_list": _list_of(_is_name)},
    "expect_table_columns_to_match_set": {"column_set": _list_of(_is_name), "exact_match": _is_scalar},
    "expect_table_row_count_to_be_between": _BETWEEN,
    "expect_table_row_count_to_equal": _VALUE,
}


def refuse_unlisted(expectations: object) -> None:
    """Raise InvalidInputError for an expectation or an argument that is not listed; does not check them otherwise."""
    for spec in expectations if isinstance(expectations, list | tuple) else ():
        if not isinstance(spec, Mapping):
            continue
        listed = _LISTED.get(str(spec.get("type")))
        if listed is None:
            raise _refusal(f"the expectation {spec.get('type')!r}")
        arguments: Any = spec.get("kwargs")
        for key, value in arguments.items() if isinstance(arguments, Mapping) else ():
            check = listed.get(str(key))
            if check is None or not (value is None or check(value)):
                raise _refusal(f"{key}={value!r} of {spec['type']}")


def _refusal(what: str) -> Exception:
    from storage_lib.errors import InvalidInputError

    message = (
        f"{what} is not allowed from a form, because it may run code or read files: write it into a file next to the "
        "DAG, such as expectations/database.table.yaml, or let a function return it, and give its name"
    )
    return InvalidInputError(message)
