"""Settings with which Spark starts in half the time and uses half the CPU time, for sessions of a few minutes.

    environment = {**os.environ, **quick_spark()}

The JVM gets four settings. Only the C1 compiler runs: a short session does not regain the cost of C2. There is room
for compiled code: with C1 alone the JVM reserves 48 MB, which the classes that Spark generates for each query fill
within minutes; after that it compiles nothing. One thread collects garbage: those of G1 cost more than they save where
little memory is used. And Spark's classes are loaded, already parsed and verified, from an
archive that `make servers` creates (`spark_archive.py`; Java's application class-data sharing, JEP 350). A JVM that
can't use the archive runs without it.

Not for production, where C2 pays off. Standard library only.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["ARCHIVE", "archiving_spark", "quick_spark"]

ARCHIVE = Path(__file__).resolve().parents[2] / ".local" / "spark" / "classes.jsa"
C1_ALONE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
ONE_COLLECTOR = "-XX:+UseSerialGC"
COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def quick_spark() -> dict[str, str]:
    """Return the environment variables with which Spark's drivers start quickly; the user's own options win."""
    archive = f"-XX:SharedArchiveFile={ARCHIVE} {SILENT}" if ARCHIVE.exists() else ""
    return _variables(archive)


def archiving_spark(archive: Path) -> dict[str, str]:
    """Return the environment variables with which a driver archives its loaded classes into ``archive`` at its end."""
    return _variables(f"-XX:ArchiveClassesAtExit={archive} {SILENT}")


def _variables(archive: str) -> dict[str, str]:
    without, ours = f"{C1_ALONE} {archive}".strip(), f"{C1_ALONE} {ONE_COLLECTOR} {archive}".strip()
    theirs = os.environ.get("SPARK_SUBMIT_OPTS", "").removeprefix(ours).removeprefix(without).strip()
    if COLLECTOR.search(theirs):
        # A JVM with two collectors does not start.
        ours = without
    return {
        "SPARK_SUBMIT_OPTS": f"{ours} {theirs}".strip(),
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", C1_ALONE),
    }
