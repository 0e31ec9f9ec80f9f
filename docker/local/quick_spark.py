"""Spark that starts in half its time and burns half its processor time, for sessions that live for minutes.

    environment = {**os.environ, **quick_spark()}

The JVM gets three settings. Only C1 compiles: a short session does not regain the cost of the second compiler. There
is room for compiled code: with C1 alone the JVM reserves 48 MB, which the classes that Spark generates for each query
fill within minutes, and then it compiles nothing any more. And Spark's classes are loaded, parsed and verified, from an archive that `make servers` made of a session like ours
(`spark_archive.py`; Java's application class-data sharing, JEP 350). A JVM that the archive does not fit runs without
it.

Not for production, where the second compiler pays. Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ARCHIVE", "archiving_spark", "quick_spark"]

ARCHIVE = Path(__file__).resolve().parents[2] / ".local" / "spark" / "classes.jsa"
C1_ALONE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def quick_spark() -> dict[str, str]:
    """Return the variables under which Spark's drivers start quickly here; options that the user set win."""
    archive = f"-XX:SharedArchiveFile={ARCHIVE} {SILENT}" if ARCHIVE.exists() else ""
    return _variables(archive)


def archiving_spark(archive: Path) -> dict[str, str]:
    """Return the variables under which a driver writes, when it ends, the classes it has loaded into ``archive``."""
    return _variables(f"-XX:ArchiveClassesAtExit={archive} {SILENT}")


def _variables(archive: str) -> dict[str, str]:
    ours = f"{C1_ALONE} {archive}".strip()
    theirs = os.environ.get("SPARK_SUBMIT_OPTS", "").removeprefix(ours).strip()
    return {
        "SPARK_SUBMIT_OPTS": f"{ours} {theirs}".strip(),
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", C1_ALONE),
    }
