"""The Java that Spark uses: from JAVA_HOME if it is set, else from PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["REMEDY", "java_problem", "java_version"]

REMEDY = "Spark needs Java 17 or 21: install one, or set JAVA_HOME to it"
_SUPPORTED = ("17", "21")
_ANSWER_SECONDS = 60


def java_version() -> str | None:
    """Return the first line of ``java -version``; None if Java does not run."""
    try:
        ran = subprocess.run(  # noqa: S603  the program that Spark runs next
            [_java(), "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stderr.partition("\n")[0]


def java_problem() -> str | None:
    """Return why Spark can't run on this Java; None if it can."""
    java, home = _java(), os.environ.get("JAVA_HOME")
    if shutil.which(java) is None:
        return (
            f"JAVA_HOME is {home}, which has no bin/java" if home else "java is not on PATH, and JAVA_HOME is not set"
        )
    version = java_version()
    if version is None:
        return f"{java} does not run"
    release = re.search(r'version "(?:1\.)?(\d+)', version)
    if release is None or release[1] not in _SUPPORTED:
        return f"{java} is {version}"
    return None


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
