"""Paimon's own Java core, reading and writing our tables: one JVM for all tests of a session.

The program is docker/local/paimon_core; its jar comes from `make servers`, and it is compiled here when it has changed.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from java_runtime import find_java
from storage_lib.schema.data_types import DataType, TypeRoot
from storage_lib.schema.nested_types import ArrayType, MapType, MultisetType, RowType
from storage_lib.schema.row_kind import RowKind
from storage_lib.schema.table_schema import TableSchema
from tests.support.line_servant import LineServant

CHECKOUT = Path(__file__).parents[2]
SOURCES = CHECKOUT / "docker" / "local" / "paimon_core"
HOME, HADOOP = CHECKOUT / ".local" / "paimon_core", CHECKOUT / ".local" / "hdfs" / "lib"
JARS = HOME / "lib"
# Of Hadoop only the client; its minicluster stays out.
CLASS_PATH = (
    ("paimon-bundle-*.jar", JARS),
    ("hadoop-client-api-*.jar", HADOOP),
    ("hadoop-client-runtime-*.jar", HADOOP),
    ("commons-logging-*.jar", HADOOP),
    ("slf4j-*.jar", HADOOP),
)
JVM = (
    "-Xms64m",
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Duser.timezone=UTC",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
MILLISECOND = dt.timedelta(milliseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Values = Sequence[Sequence[Any]]


class PaimonCore:
    """Commands to it. All may raise ``RefusedError`` with what Paimon said. Skips the test where it can't be had."""

    def __init__(self) -> None:
        if not (JARS.exists() and HADOOP.exists()):
            pytest.skip("Paimon's Java core is not set up: run `make servers`")
        java = find_java()
        jars = ":".join(str(jar) for pattern, place in CLASS_PATH for jar in sorted(place.glob(pattern)))
        classes = compiled(java, jars)
        log = Path(tempfile.mkdtemp(prefix="paimon-core-")) / "said.log"
        self._servant = LineServant([java, *JVM, "-cp", f"{classes}:{jars}", "PaimonCore"], log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._servant.close()

    def create(self, warehouse: Path, identifier: str, schema: TableSchema) -> None:
        """A table of the schema's fields, keys and options, without rows."""
        wanted = json.loads(schema.to_json())
        self._ask("create", warehouse, identifier, schema=wanted)

    def write(
        self,
        warehouse: Path,
        identifier: str,
        rows: Values,
        schema: TableSchema,
        kinds: Sequence[RowKind] | None = None,
        *,
        overwrite: Mapping[str, str] | None = None,
    ) -> None:
        """One commit of rows, tuples in schema order; with ``overwrite``, in place of that partition."""
        types = [field.type for field in schema.fields]
        wire = [[to_wire(value, each) for value, each in zip(row, types, strict=True)] for row in rows]
        codes = [int(kind) for kind in kinds or [RowKind.INSERT] * len(rows)]
        more = {} if overwrite is None else {"overwrite": dict(overwrite)}
        self._ask("write", warehouse, identifier, rows=wire, kinds=codes, **more)

    def read(
        self,
        warehouse: Path,
        identifier: str,
        schema: TableSchema,
        *,
        options: Mapping[str, str] | None = None,
        equal: tuple[str, Any] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Rows as tuples of what ``pa.Table.to_pylist`` gives, nanoseconds cut off.

        ``options`` are those of one read (``scan.snapshot-id``); ``equal`` is a column and a value to look for.
        """
        types = [field.type for field in schema.fields]
        more: dict[str, Any] = {"options": dict(options or {})}
        if equal is not None:
            of = next(field.type for field in schema.fields if field.name == equal[0])
            more["equal"] = [equal[0], to_wire(equal[1], of)]
        answer = self._ask("read", warehouse, identifier, **more)
        return [tuple(from_wire(value, each) for value, each in zip(row, types, strict=True)) for row in answer["rows"]]

    def stream(
        self, warehouse: Path, identifier: str, schema: TableSchema, *, options: Mapping[str, str] | None = None
    ) -> list[tuple[RowKind, tuple[Any, ...]]]:
        """What a streaming read from snapshot 1 up to the newest is handed: each row with its kind, in that order."""
        types = [field.type for field in schema.fields]
        answer = self._ask("stream", warehouse, identifier, options=dict(options or {}))
        rows = [tuple(from_wire(value, each) for value, each in zip(row, types, strict=True)) for row in answer["rows"]]
        return [(RowKind(kind), row) for kind, row in zip(answer["kinds"], rows, strict=True)]

    def compact(self, warehouse: Path, identifier: str) -> None:
        """A full compaction of all buckets."""
        self._ask("compact", warehouse, identifier)

    def drop_partition(self, warehouse: Path, identifier: str, partition: Mapping[str, str]) -> None:
        """Drop one partition."""
        self._ask("drop partitions", warehouse, identifier, partition=dict(partition))

    def expire(self, warehouse: Path, identifier: str, *, retain_max: int) -> None:
        """Drop the oldest snapshots."""
        self._ask("expire", warehouse, identifier, retain_max=retain_max)

    def tag(self, warehouse: Path, identifier: str, tag: str, snapshot_id: int) -> None:
        """Keep a snapshot by a name."""
        self._ask("tag", warehouse, identifier, tag=tag, snapshot=snapshot_id)

    def alter(self, warehouse: Path, identifier: str, changes: Sequence[Mapping[str, Any]]) -> None:
        """Change the schema; a change is what Paimon's REST catalog takes: ``{"action": "addColumn", ...}``."""
        self._ask("alter", warehouse, identifier, changes=list(changes))

    def _ask(self, verb: str, warehouse: Path, identifier: str, **arguments: Any) -> Any:
        return self._servant.ask({"verb": verb, "warehouse": str(warehouse), "table": identifier, **arguments})


def compiled(java: Path, jars: str) -> Path:
    """The program's classes, in a folder named for its source."""
    sources = sorted(SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    place = HOME / f"classes-{digest[:16]}"
    if not place.exists():
        aside = Path(tempfile.mkdtemp(prefix="classes-", suffix=".part", dir=HOME))
        compiler = [java, "--module", "jdk.compiler/com.sun.tools.javac.Main"]
        command = [*compiler, "-nowarn", "-cp", jars, "-d", aside, *sources]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if "jdk.compiler not found" in done.stderr + done.stdout:
            shutil.rmtree(aside)
            pytest.skip("Paimon's Java core needs a compiler: install a JDK (Debian: openjdk-17-jdk-headless)")
        assert done.returncode == 0, done.stdout + done.stderr
        if not place.exists():
            aside.rename(place)
    return place


def to_wire(value: Any, of: DataType) -> Any:  # noqa: C901, PLR0911  a table of types
    """A Python value as docker/local/paimon_core/RowJson.java spells it."""
    if value is None:
        return None
    match of:
        case ArrayType():
            return [to_wire(each, of.element) for each in value]
        case MapType():
            return [[to_wire(key, of.key), to_wire(each, of.value)] for key, each in value]
        case MultisetType():
            return [[to_wire(key, of.element), count] for key, count in value]
        case RowType():
            return [to_wire(value[field.name], field.type) for field in of.fields]
    if of.root is TypeRoot.VARIANT:
        return [base64.b64encode(value[part]).decode() for part in ("value", "metadata")]
    arrow = of.arrow
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return str(value)
    if pa.types.is_binary(arrow):
        return base64.b64encode(value).decode()
    if pa.types.is_date(arrow):
        return (value - EPOCH.date()).days
    if pa.types.is_time(arrow):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if pa.types.is_timestamp(arrow):
        millis, rest = divmod(value.replace(tzinfo=dt.UTC) - EPOCH, MILLISECOND)
        return [millis, rest.microseconds * 1000]
    return value


def from_wire(value: Any, of: DataType) -> Any:  # noqa: C901, PLR0911  a table of types
    """The reverse of ``to_wire``."""
    if value is None:
        return None
    match of:
        case ArrayType():
            return [from_wire(each, of.element) for each in value]
        case MapType():
            return [(from_wire(key, of.key), from_wire(each, of.value)) for key, each in value]
        case MultisetType():
            return [(from_wire(key, of.element), count) for key, count in value]
        case RowType():
            return {field.name: from_wire(each, field.type) for field, each in zip(of.fields, value, strict=True)}
    if of.root is TypeRoot.VARIANT:
        return {part: base64.b64decode(each) for part, each in zip(("value", "metadata"), value, strict=True)}
    arrow = of.arrow
    if pa.types.is_floating(arrow):
        return float(value)
    if pa.types.is_decimal(arrow):
        return Decimal(value)
    if pa.types.is_binary(arrow):
        return base64.b64decode(value)
    if pa.types.is_date(arrow):
        return EPOCH.date() + dt.timedelta(days=value)
    if pa.types.is_time(arrow):
        return (EPOCH + value * MILLISECOND).time()
    if pa.types.is_timestamp(arrow):
        moment = EPOCH + value[0] * MILLISECOND + dt.timedelta(microseconds=value[1] // 1000)
        return moment if arrow.tz else moment.replace(tzinfo=None)
    return value
