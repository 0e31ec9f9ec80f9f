"""Spark that starts in half its time and burns half its processor time, for sessions that live for minutes.

    environment = {**os.environ, **quick_spark()}

A JVM is told two things. C1 alone compiles: the code of a session that ends soon never earns back what the second
compiler costs. And Spark's classes come parsed and verified from an archive that `make servers` made of a session like
ours (`spark_archive.py`; Java's application class-data sharing, JEP 350). A JVM that the archive does not fit goes on
without it.

Not for production, where the second compiler pays. Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ARCHIVE", "archiving_spark", "quick_spark"]

ARCHIVE = Path(__file__).resolve().parents[2] / ".local" / "spark" / "classes.jsa"
C1_ALONE = "-XX:TieredStopAtLevel=1"
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
