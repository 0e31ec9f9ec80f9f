"""Compare the rows of a materialized table with the query's answer by DuckDB, as bags of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import sqlglot

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_SHOWN = 5
_TOLERANCE = 1e-9
"""Relative difference of two numbers of which at least one is a DOUBLE: DuckDB divides and averages in DOUBLE."""


class WrongRowsError(Exception):
    """A materialized table differs from its query's answer."""


class AnswerCheck:
    """Answers queries over Parquet files and Arrow tables, independently of Spark and this library."""

    def __init__(self, memory: str = "2GB") -> None:
        self._database = duckdb.connect(config={"memory_limit": memory, "threads": 2})

    def set_files(self, name: str, files: Path) -> None:
        """Read the table ``name`` from a Parquet file or a folder of them."""
        place = f"{files}/*.parquet" if files.is_dir() else str(files)
        self._database.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{place}')")

    def set_rows(self, name: str, rows: pa.Table) -> None:
        """Use ``rows`` as the table ``name``."""
        self._database.register("given", rows)
        self._database.execute(f"DROP TABLE IF EXISTS {name}")
        self._database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self._database.unregister("given")

    def check(self, name: str, text: str, found: pa.Table) -> int:
        """Compare the rows ``found`` with the answer of the query ``text`` (Spark SQL); return their number.

        Raises ``WrongRowsError`` with the first rows that differ.
        """
        translated = sqlglot.transpile(text, read="spark", write="duckdb")[0]
        return self.check_answer(name, translated, found)

    def check_answer(self, name: str, text: str, found: pa.Table) -> int:
        """Compare as ``check``, with a query in DuckDB's own SQL."""
        base = self._database
        base.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {text}")
        base.register("given", found)
        base.execute("CREATE OR REPLACE TEMP TABLE found AS SELECT * FROM given")
        base.unregister("given")
        expected_types, found_types = self._types("expected"), self._types("found")
        if [each.lower() for each in expected_types] != [each.lower() for each in found_types]:
            message = f"{name} has the columns {', '.join(found_types)}, not {', '.join(expected_types)}"
            raise WrongRowsError(message)
        pairs = dict(zip(found_types, zip(expected_types.values(), found_types.values(), strict=True), strict=True))
        inexact = [each for each, types in pairs.items() if "DOUBLE" in types or "FLOAT" in types]
        exact = [each for each in pairs if each not in inexact]
        counts = [self._number(f"SELECT count(*) FROM {side}") for side in ("expected", "found")]
        wrong = self._differing(exact) if not inexact else self._distant(exact, inexact)
        if counts[0] != counts[1] or wrong:
            message = f"{name} has {counts[1]} rows, its query's answer {counts[0]}; first differences: {wrong}"
            raise WrongRowsError(message)
        return counts[1]

    def _differing(self, exact: list[str]) -> list[tuple[object, ...]]:
        columns = ", ".join(exact)
        sides = (("missing", "expected", "found"), ("wrong", "found", "expected"))
        parts = [
            f"(SELECT '{word}', {columns} FROM (SELECT {columns} FROM {own} EXCEPT ALL SELECT {columns} FROM {other}))"
            for word, own, other in sides
        ]
        return self._database.execute(f"{' UNION ALL '.join(parts)} LIMIT {_SHOWN}").fetchall()

    def _distant(self, exact: list[str], inexact: list[str]) -> list[tuple[object, ...]]:
        """Pair the rows of both sides by their order, and return pairs that differ."""
        values = [f"{each}::DOUBLE AS {each}" for each in inexact]
        order = ", ".join([*exact, *(f"{each}::DOUBLE" for each in inexact)])
        sides = [
            f"(SELECT {', '.join([*exact, *values])}, row_number() OVER (ORDER BY {order}) AS place FROM {side})"
            for side in ("expected", "found")
        ]
        differs = [f"e.{each} IS DISTINCT FROM f.{each}" for each in exact]
        differs += [
            f"((e.{each} IS NULL) <> (f.{each} IS NULL) OR "
            f"abs(e.{each} - f.{each}) > {_TOLERANCE} * greatest(abs(e.{each}), abs(f.{each}))"
            f" + {self._unit(each)})"
            for each in inexact
        ]
        text = f"SELECT * FROM {sides[0]} AS e FULL JOIN {sides[1]} AS f USING (place) WHERE {' OR '.join(differs)}"
        return self._database.execute(f"{text} ORDER BY place LIMIT {_SHOWN}").fetchall()

    def _unit(self, name: str) -> float:
        """Return the last digit of a DECIMAL, to which Spark has rounded the quotient; 0 for other types."""
        scales = [
            int(kind.partition(",")[2].rstrip(")"))
            for side in ("expected", "found")
            if (kind := self._types(side).get(name, "")).startswith("DECIMAL")
        ]
        return 10.0 ** -min(scales) if scales else 0.0

    def _types(self, table: str) -> dict[str, str]:
        return {row[0]: row[1] for row in self._database.execute(f"DESCRIBE {table}").fetchall()}

    def _number(self, text: str) -> int:
        [row] = self._database.execute(text).fetchall()
        return int(row[0])
