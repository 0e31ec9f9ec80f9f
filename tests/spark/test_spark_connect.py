"""The verbs and ``format("dynamic_table")`` over Spark Connect: a server, and clients in processes of their own.

A client runs in a subprocess, because pyspark decides once per process whether its functions are for Connect.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from storage_lib import open_catalog
from tests.support.fenced_blocks import sections
from tests.support.spark_connect import connect_server
from tests.support.spark_processes import REPOSITORY, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("grpc_status")
pytestmark = [pytest.mark.spark, pytest.mark.integration]

HEAD = """
import json, sys
from storage_lib import InvalidInputError, open_catalog
from storage_lib.spark import compact, read, read_stream, session, write, write_stream
catalog = open_catalog(sys.argv[1])
spark = session("client")
def say(**said): print(json.dumps(said))
"""
TEXTS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def without_java(text: str) -> str:
    """Return an error without its Java frames."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("\tat "))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one server for all tests of this module."""
    with connect_server(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture
def client(server: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a program as a client, and returns what it says at its end."""

    def run(program: str, head: str = HEAD) -> dict[str, Any]:
        ran = subprocess.run(
            [sys.executable, "-c", head + program, str(tmp_path / "warehouse")],
            env={**clean_environment(), "SPARK_REMOTE": server},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, without_java(ran.stderr)
        return json.loads(ran.stdout.splitlines()[-1])

    return run


def test_batches_are_written_and_read_and_compacted(client: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"))
    table = catalog.create_table("db.t", TEXTS, primary_key=["id"], options={"bucket": "2"})

    said = client("""
table = catalog.load_table("db.t")
first = write(spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id long, v string"), table, compaction=False)
again = write(spark.createDataFrame([(2, "B")], "id long, v string"), table, commit_user="me", compaction=False)
nothing = write(spark.createDataFrame([], "id long, v string"), table, commit_user="me", compaction=False)
compacted = compact(spark, table)
rows = read(spark, table, columns=["v"], filter="id > 1").collect()
say(
    ids=[first.id, again.id],
    nothing=nothing,
    kind=str(compacted.commit_kind),
    rows=sorted(row.v for row in rows),
    old=sorted(row.v for row in read(spark, table, snapshot_id=1).collect()),
)
""")

    assert said["ids"] == [1, 2]
    assert said["nothing"] is None
    assert said["kind"] == "COMPACT"
    assert said["rows"] == ["B", "c"]
    assert said["old"] == ["a", "b", "c"]
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "B"},
        {"id": 3, "v": "c"},
    ]


def test_errors_of_the_library_come_from_the_server_as_they_are(
    client: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"))
    catalog.create_table("db.t", TEXTS, primary_key=["id"])

    said = client("""
from storage_lib.sql import Session
def refusal(of):
    try:
        of()
    except InvalidInputError as error:
        return str(error)
table = catalog.load_table("db.t")
table.append([{"id": 1, "v": "a"}])
null = spark.createDataFrame([(None, "x")], "id long, v string")
say(
    null=refusal(lambda: write(null, table)),
    sql=refusal(lambda: Session(spark, catalog)),
)
""")

    assert "id" in said["null"]
    assert "Spark Connect" in said["sql"]
    assert "classic session" in said["sql"]


@pytest.mark.deep
def test_a_session_without_this_library_finds_the_format_by_itself(
    client: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    catalog = open_catalog(str(tmp_path / "warehouse"))
    catalog.create_table("db.t", TEXTS, primary_key=["id"]).append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    target = catalog.create_table("db.copy", TEXTS, primary_key=["id"])

    said = client(
        """
of = lambda name: {"warehouse": sys.argv[1], "table": name}
rows = spark.read.format("dynamic_table").options(**of("db.t")).load().where("id > 1").collect()
changes = spark.readStream.format("dynamic_table").options(**of("db.t")).option("scan.streaming", "true").load()
writer = changes.writeStream.format("dynamic_table").options(**of("db.copy")).trigger(availableNow=True)
writer.option("checkpointLocation", f"file://{sys.argv[1]}-checkpoint").start().awaitTermination()
ours = [name for name in sys.modules if name.startswith("storage_lib")]
print(json.dumps({"rows": [row.asDict() for row in rows], "ours": ours}))
""",
        head="""
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
""",
    )

    assert said == {"rows": [{"id": 2, "v": "b"}], "ours": []}
    assert target.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def test_the_example_of_the_page_runs(server: str, tmp_path: Path) -> None:
    (section,) = [each for each in sections(REPOSITORY / "docs" / "spark.md") if "connect" in each.needs]

    ran = subprocess.run(
        [sys.executable, "-c", section.program],
        env={**clean_environment(), "SPARK_REMOTE": server},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, without_java(ran.stderr)
    assert [ran.stdout] == list(section.prints)
