"""Great Expectations' metrics of regular expressions, which evaluate those of forms by RE2 (``linear_regex``).

Importing this module registers them in place of Great Expectations' own for pandas; other expressions are evaluated as
before. Imported only where Great Expectations is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.expectations.metrics.column_map_metrics.column_values_match_regex import ColumnValuesMatchRegex
from great_expectations.expectations.metrics.column_map_metrics.column_values_match_regex_list import (
    ColumnValuesMatchRegexList,
)
from great_expectations.expectations.metrics.column_map_metrics.column_values_not_match_regex import (
    ColumnValuesNotMatchRegex,
)
from great_expectations.expectations.metrics.column_map_metrics.column_values_not_match_regex_list import (
    ColumnValuesNotMatchRegexList,
)
from great_expectations.expectations.metrics.map_metric_provider.column_condition_partial import (
    column_condition_partial,
)

from dynamic_table.quality.linear_regex import is_of_re2

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LinearMatch", "LinearMatchList", "LinearNotMatch", "LinearNotMatchList"]


class LinearMatch(ColumnValuesMatchRegex):
    """Values that contain a match."""

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex: str, **_: Any) -> pd.Series:  # noqa: N805  Great Expectations' way
        return _matches(column, regex)


class LinearNotMatch(ColumnValuesNotMatchRegex):
    """Values that contain no match."""

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex: str, **_: Any) -> pd.Series:  # noqa: N805
        return ~_matches(column, regex)


class LinearMatchList(ColumnValuesMatchRegexList):
    """Values that contain a match of any or of all expressions."""

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex_list: Sequence[str], match_on: str, **_: Any) -> pd.Series:  # noqa: N805
        found = pd.concat([_matches(column, each) for each in regex_list], axis=1, ignore_index=True)
        return found.all(axis="columns") if match_on == "all" else found.any(axis="columns")


class LinearNotMatchList(ColumnValuesNotMatchRegexList):
    """Values that contain no match of any expression."""

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column: pd.Series, regex_list: Sequence[str], **_: Any) -> pd.Series:  # noqa: N805
        found = pd.concat([_matches(column, each) for each in regex_list], axis=1, ignore_index=True)
        return ~found.any(axis="columns")


def _matches(column: pd.Series, expression: str) -> pd.Series:
    texts = column.astype(str)
    if not is_of_re2(expression):
        return texts.str.contains(expression)
    found = pc.match_substring_regex(pa.array(texts, type=pa.large_string()), expression)
    return pd.Series(found.to_numpy(zero_copy_only=False), index=column.index, dtype=bool)
