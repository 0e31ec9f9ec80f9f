"""A copy of the checkout in which faults are planted, so that the checkout itself stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.planted_fault import CHECKOUT, PlantedFault

_IMPORTED_FROM = (".", "plugins", "storage_lib/spark/discovery", "docker/local", "dags")


class CopiedTree:
    """The files of the checkout that git knows or would add, copied to ``root``; ``.local`` is shared with it."""

    def __init__(self, root: Path, checkout: Path = CHECKOUT) -> None:
        self.root = root
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=checkout,
            check=True,
            capture_output=True,
        )
        for name in os.fsdecode(listed.stdout).split("\0"):
            source, target = checkout / name, root / name
            if name and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        if (checkout / ".local").exists():
            (root / ".local").symlink_to((checkout / ".local").resolve())

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of processes that import the copy, in place of the checkout's editable installation."""
        paths = os.pathsep.join(str(self.root / each) for each in _IMPORTED_FROM)
        return {**os.environ, "PYTHONPATH": paths}

    def check_imports(self) -> None:
        """Raise ``RuntimeError`` if a process would import the code from elsewhere: no fault would be found."""
        asked = [sys.executable, "-c", "import storage_lib, dynamic_table; print(storage_lib.__file__)"]
        shown = subprocess.run(asked, cwd=self.root, env=self.environment, check=True, capture_output=True, text=True)
        if not Path(shown.stdout.strip()).is_relative_to(self.root):
            message = f"processes in {self.root} import {shown.stdout.strip()}, in which no fault is planted"
            raise RuntimeError(message)

    @contextmanager
    def planted(self, fault: PlantedFault) -> Iterator[None]:
        """Plant a fault while the body runs. Raises ``StaleFaultError``."""
        path = self.root / fault.file
        text = path.read_text(encoding="utf-8")
        try:
            self._write(path, fault.planted(text))
            yield
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Python compares only size and seconds: a file that was written twice in a second could keep its old code.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
