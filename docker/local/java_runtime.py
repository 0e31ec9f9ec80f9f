"""Finds the Java that runs Spark and Kafka: JAVA_HOME's if set, or else the one on PATH, as Spark itself chooses.

Standard library only and plain syntax: this runs before anything is installed, perhaps under an older Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["JavaMissingError", "find_java"]

SUPPORTED = (17, 21)  # versions that pyspark 4.3 and Kafka 4.3 both support
HOW_TO_GET_IT = """  Debian, Ubuntu:  sudo apt install openjdk-17-jre-headless
  macOS:           brew install openjdk@17
                   export JAVA_HOME="$(brew --prefix openjdk@17)/libexec/openjdk.jdk/Contents/Home"
then run the same command again."""
USUAL_PLACES = (
    "/usr/lib/jvm/*/bin/java",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home/bin/java",
    "/usr/local/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home/bin/java",
)


class JavaMissingError(RuntimeError):
    """No Java 17 or 21 is installed; the message says what was found and how to install one."""


def find_java() -> Path:
    """Return the ``java`` that Spark would start; raises JavaMissingError if it is missing or unsupported."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return _checked(Path(home) / "bin" / "java", f"JAVA_HOME is {home}, but")
    on_path = shutil.which("java")
    if on_path is None:
        msg = f"Java 17 or 21 is needed; no java on PATH, and JAVA_HOME is not set.\n{_remedy()}"
        raise JavaMissingError(msg)
    return _checked(Path(on_path), "On PATH,")


def _checked(java: Path, found: str) -> Path:
    if not java.exists():
        msg = f"Java 17 or 21 is needed. {found} {java} does not exist.\n{_remedy()}"
        raise JavaMissingError(msg)
    version = _version(java)
    if version not in SUPPORTED:
        says = f"is Java {version}" if version else "does not run"
        msg = f"Java 17 or 21 is needed. {found} {java} {says}.\n{_remedy()}"
        raise JavaMissingError(msg)
    return java


def _version(java: Path) -> int | None:
    """Return the feature release (17 for "17.0.15", 8 for "1.8.0"); None if it does not run (macOS's stub)."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None


def _remedy() -> str:
    """Return the advice to use a Java found in one of the usual places, or else how to install one."""
    for pattern in USUAL_PLACES:
        for java in sorted(Path("/").glob(pattern[1:])):
            if _version(java) in SUPPORTED:
                return (
                    f"This machine has one:\n  export JAVA_HOME={java.parent.parent}\nthen run the same command again."
                )
    return HOW_TO_GET_IT


if __name__ == "__main__":
    try:
        print(find_java())
    except JavaMissingError as missing:
        sys.exit(str(missing))
