"""Python environments without this library, for processes that have to receive it from elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from storage_lib.distribution import DISTRIBUTION

__all__ = ["bare_environment", "make_bare_python"]

_OURS = DISTRIBUTION.replace("-", "_")


def make_bare_python(directory: Path, *, has_dependencies: bool) -> Path:
    """Create an environment in ``directory`` and return its folder of programs, with ``python3``.

    With ``has_dependencies``, all packages of this environment can be imported there, except this library.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    programs = directory / "bin"
    if has_dependencies:
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        into = subprocess.run([programs / "python3", "-c", code], check=True, capture_output=True, text=True).stdout
        for package in Path(sysconfig.get_path("purelib")).iterdir():
            if package.suffix != ".pth" and not package.name.startswith(_OURS):
                Path(into.strip(), package.name).symlink_to(package)
    return programs


def bare_environment(programs: Path) -> dict[str, str]:
    """Return this process's environment without Python's and Spark's variables, and with ``programs`` first on PATH."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "PYSPARK", "SPARK_", "_PYSPARK", "VIRTUAL_ENV"))
    }
    return {**kept, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
