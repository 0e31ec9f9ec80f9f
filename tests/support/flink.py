"""Flink with Paimon's connector: SQL, batch and streaming, on a cluster inside one JVM for all tests of a session.

The program is docker/local/flink; its jars come from `make servers`, and it is compiled here when it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.row_kind import RowKind
from tests.support.java_servant import LOCAL, QUICK_COMPILER, SOURCES, rows_from_wire, rows_to_wire, start

FLINKS = {"1.20": LOCAL / "flink_1_20", "2.0": LOCAL / "flink_2_0"}
SECONDS_MAX = 120
"""Time limit of a job; a busy machine takes several times as long as a quiet one."""

Values = Sequence[Sequence[Any]]
Changes = list[tuple[RowKind, tuple[Any, ...]]]


class Flink:
    """Client of one Flink release; every command may raise ``RefusedError`` with Flink's error.

    ``identifier`` is ``database.table``, ``types`` are those of the table's columns in order.
    """

    def __init__(self, release: str, *, heap: str = "800m", compiler: Sequence[str] = QUICK_COMPILER) -> None:
        self._servant = start("FlinkServant", FLINKS[release], SOURCES / "flink", heap=heap, compiler=compiler)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servant.close()

    def execute(self, warehouse: Path, *statements: str, streaming: bool = False) -> list[str]:
        """Run statements one after the other to completion; return the rows of the last as Flink prints them."""
        answer = self._ask("execute", warehouse, statements=statements, streaming=streaming)
        return list(answer["rows"])

    def query(self, warehouse: Path, statement: str, types: Sequence[DataType]) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT in batch mode, of columns of these types."""
        return rows_from_wire(self._ask("query", warehouse, statement=statement)["rows"], types)

    def read(
        self, warehouse: Path, identifier: str, types: Sequence[DataType], options: Mapping[str, str] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return all rows of a table; ``options`` apply to this read only (``scan.snapshot-id``)."""
        return self.query(warehouse, f"SELECT * FROM {quoted(identifier)}{hint(options or {})}", types)  # noqa: S608  names of tests

    def read_each(
        self, warehouse: Path, identifier: str, types: Sequence[DataType], looks: Sequence[Mapping[str, str]]
    ) -> list[list[tuple[Any, ...]]]:
        """Return all rows of a table per element of ``looks``, in one query: start-up dominates small queries."""
        selects = [
            f"SELECT {number} AS `look`, * FROM {quoted(identifier)}{hint(options)}"  # noqa: S608  names of tests
            for number, options in enumerate(looks)
        ]
        rows = self.query(warehouse, " UNION ALL ".join(selects), [DataType(TypeRoot.INTEGER), *types])
        found: list[list[tuple[Any, ...]]] = [[] for _ in looks]
        for row in rows:
            found[row[0]].append(row[1:])
        return found

    def write(
        self,
        warehouse: Path,
        identifier: str,
        rows: Values,
        types: Sequence[DataType],
        kinds: Sequence[RowKind] | None = None,
        *,
        overwrite: bool = False,
        streaming: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Run INSERT, or INSERT OVERWRITE of the rows' partitions; kinds other than +I need streaming mode."""
        self._ask(
            "write",
            warehouse,
            table=identifier,
            rows=rows_to_wire(rows, types),
            kinds=[int(kind) for kind in kinds or [RowKind.INSERT] * len(rows)],
            overwrite=overwrite,
            streaming=streaming,
            options=dict(options or {}),
        )

    def stream(
        self,
        warehouse: Path,
        identifier: str,
        types: Sequence[DataType],
        through: int,
        options: Mapping[str, str] | None = None,
    ) -> Changes:
        """Return the rows of a streaming SELECT from snapshot 1 through snapshot ``through``."""
        answer = self._ask(
            "stream",
            warehouse,
            table=identifier,
            streaming=True,
            through=through,
            seconds_max=SECONDS_MAX,
            options={"scan.mode": "from-snapshot", "scan.snapshot-id": "1", **(options or {})},
        )
        kinds = [RowKind(kind) for kind in answer["kinds"]]
        return list(zip(kinds, rows_from_wire(answer["rows"], types), strict=True))

    def begin(self, warehouse: Path, *statements: str, parallelism: int, checkpoint_seconds: float) -> str:
        """Run statements, of which the last one is a streaming INSERT; return the id of its running job."""
        answer = self._ask(
            "begin",
            warehouse,
            statements=statements,
            streaming=True,
            parallelism=parallelism,
            checkpoint_millis=round(1000 * checkpoint_seconds),
        )
        return str(answer["job"])

    def check(self, warehouse: Path, job: str) -> None:
        """Raise ``RefusedError``, with the reason, if a job of ``begin`` has ended."""
        self._ask("check", warehouse, job=job)

    def end(self, warehouse: Path, job: str) -> None:
        """Cancel a job of ``begin``."""
        self._ask("end", warehouse, job=job)

    def _ask(self, verb: str, warehouse: Path, **arguments: Any) -> Any:
        return self._servant.ask({"verb": verb, "warehouse": str(warehouse), **arguments})


def quoted(identifier: str) -> str:
    """Quote a name of several parts for Flink SQL."""
    return ".".join(f"`{part}`" for part in identifier.split("."))


def hint(options: Mapping[str, str]) -> str:
    """Return a SQL hint with the options of one use of a table, to follow its name."""
    return f" /*+ OPTIONS({settings(options)}) */" if options else ""


def settings(options: Mapping[str, str]) -> str:
    """Format keys and values as in WITH (...)."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in options.items())


def literal(text: str) -> str:
    """Quote a string for Flink SQL."""
    return "'" + text.replace("'", "''") + "'"
