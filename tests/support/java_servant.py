"""Java helper programs, recompiled when they have changed, that answer commands about tables, one line each.

docker/local/java_servant/RowJson.java defines how rows are spelled in commands and answers.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from java_runtime import find_java
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import ArrayType, MapType, MultisetType, RowType
from tests.support.line_servant import LineServant

CHECKOUT = Path(__file__).parents[2]
LOCAL = CHECKOUT / ".local"
SOURCES = CHECKOUT / "docker" / "local"
HADOOP = LOCAL / "hdfs" / "lib"
# Only the client jars, without the minicluster.
HADOOP_CLIENT = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "commons-logging-*.jar", "slf4j-*.jar")
JVM = (
    "-Xms64m",
    "-XX:ReservedCodeCacheSize=256m",  # with C1 alone 48 MB, which Flink's generated classes fill
    "-Xlog:disable",
    "-Xlog:all=warning:stderr",  # standard output has the answers only
    "-XX:+UseSerialGC",
    "-Duser.timezone=UTC",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
QUICK_COMPILER = ("-XX:TieredStopAtLevel=1",)
"""Short programs end before the optimizing compiler pays."""
MILLISECOND = dt.timedelta(milliseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def start(
    program: str,
    home: Path,
    sources: Path,
    *,
    heap: str,
    more_jars: Sequence[Path] = (),
    compiler: Sequence[str] = QUICK_COMPILER,
) -> LineServant:
    """Start class ``program`` of folder ``sources`` on the jars of ``home`` and ``more_jars``; skip without jars."""
    for needed in (home / "lib", HADOOP):
        if not needed.exists():
            pytest.skip(f"{needed.relative_to(CHECKOUT)} is missing, which {program} needs: run `make servers`")
    java = find_java()
    found = [
        *sorted((home / "lib").glob("*.jar")),
        *(jar for name in HADOOP_CLIENT for jar in sorted(HADOOP.glob(name))),
        *more_jars,
    ]
    jars = ":".join(str(jar) for jar in found)
    classes = compiled(java, jars, home, sources)
    log = Path(tempfile.mkdtemp(prefix=f"{home.name}-")) / "said.log"
    return LineServant([java, *JVM, *compiler, f"-Xmx{heap}", "-cp", f"{classes}:{jars}", program], log)


def compiled(java: Path, jars: str, home: Path, sources: Path) -> Path:
    """Compile the program if necessary; return the classes' folder, whose name contains a hash of the sources."""
    files = [*sorted((SOURCES / "java_servant").glob("*.java")), *sorted(sources.glob("*.java"))]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    place = home / f"classes-{digest[:16]}"
    if not place.exists():
        aside = Path(tempfile.mkdtemp(prefix="classes-", suffix=".part", dir=home))
        compiler = [java, "--module", "jdk.compiler/com.sun.tools.javac.Main"]
        command = [*compiler, "-nowarn", "-cp", jars, "-d", aside, *files]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if "jdk.compiler not found" in done.stderr + done.stdout:
            shutil.rmtree(aside)
            pytest.skip("this needs a Java compiler: install a JDK (Debian: openjdk-17-jdk-headless)")
        assert done.returncode == 0, done.stdout + done.stderr
        if not place.exists():
            aside.rename(place)
    return place


def rows_to_wire(rows: Sequence[Sequence[Any]], types: Sequence[DataType]) -> list[list[Any]]:
    """Convert tuples of Python values for a command."""
    return [[to_wire(value, each) for value, each in zip(row, types, strict=True)] for row in rows]


def rows_from_wire(rows: Sequence[Sequence[Any]], types: Sequence[DataType]) -> list[tuple[Any, ...]]:
    """Convert an answer's rows to tuples as from ``pa.Table.to_pylist``, with nanoseconds truncated."""
    return [tuple(from_wire(value, each) for value, each in zip(row, types, strict=True)) for row in rows]


def to_wire(value: Any, of: DataType) -> Any:  # noqa: C901, PLR0911  a table of types
    """Convert a Python value as docker/local/java_servant/RowJson.java defines."""
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
    """Reverse ``to_wire``."""
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
