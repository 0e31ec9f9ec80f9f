"""Incremental SQL: from the text of a query to statements that compute how its answer changed.

Pure: it reads no table and starts no engine. A refresh names relations with the rows of each source before and after,
and with the change between both, and runs the statements.

    query = compile_query("SELECT dt, count(*) AS n FROM orders GROUP BY dt", [orders], database="shop")
    query.full(lambda table, moment: f"{table}_{moment.value}")
    query.delta(lambda table, moment: f"{table}_{moment.value}", changed=["shop.orders"])
"""

from storage_lib.materialized.algebra.accumulate.accumulator_types import ItemTypes
from storage_lib.materialized.algebra.accumulate.accumulators import ROW_COUNT, Accumulators
from storage_lib.materialized.algebra.compile_query import compile_query
from storage_lib.materialized.algebra.compiled_query import CompiledQuery
from storage_lib.materialized.algebra.derive.maintenance import MaintainedOperator
from storage_lib.materialized.algebra.in_duckdb.exact_renderer import ExactDuckDb
from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError
from storage_lib.materialized.algebra.in_duckdb.value_type import ValueType, read_type
from storage_lib.materialized.algebra.query_sources import RESULT, Moment, SourceTable, Views, of_one_moment
from storage_lib.materialized.algebra.read.table_names import tables_of
from storage_lib.materialized.algebra.render.dialect import SPARK, Dialect, SqlDialect
from storage_lib.materialized.algebra.render.steps import Steps

__all__ = [
    "RESULT",
    "ROW_COUNT",
    "SPARK",
    "Accumulators",
    "CompiledQuery",
    "Dialect",
    "ExactDuckDb",
    "ItemTypes",
    "MaintainedOperator",
    "Moment",
    "NotExactError",
    "SourceTable",
    "SqlDialect",
    "Steps",
    "ValueType",
    "Views",
    "compile_query",
    "of_one_moment",
    "read_type",
    "tables_of",
]
