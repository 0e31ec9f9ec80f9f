"""Environments of the peers below ``.local/spark_peers``: the newest Spark that each supports, and its jars.

    python -m benchmarks.spark_engine.environments [lock]

``lock`` resolves the jars again and rewrites their checksums. The benchmark itself runs this setup first.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

from java_runtime import find_java
from stack_setup import LOCAL, fetch_jars, find_uv, fingerprint, jar_sums, make, resolve_jars, run, say

_HOME = LOCAL / "spark_peers"
_PARTS = Path(__file__).parent / "jars"


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python with a release of Spark, and the jars of one table format."""

    name: str
    pyspark: str

    @property
    def python(self) -> Path:
        """The interpreter that starts this Spark."""
        return _HOME / self.name / "bin" / "python"

    @property
    def jars(self) -> list[Path]:
        """The format's jars, without those that Spark ships."""
        return sorted((_HOME / f"{self.name}_jars" / "lib").glob("*.jar"))

    @property
    def _ivy(self) -> Path:
        return _PARTS / f"{self.name}_ivy.xml"

    @property
    def _sums(self) -> Path:
        return _PARTS / f"{self.name}_jars.sha256"

    def set_up(self) -> None:
        """Install Spark and fetch the pinned jars unless both are there. Raises ``SetupError`` with the reason."""
        _HOME.mkdir(parents=True, exist_ok=True)
        place, jars = self.python.parents[1], _HOME / f"{self.name}_jars"
        make(place, f"Spark {self.pyspark} for {self.name} (450 MB)", f"{place} {self.pyspark}", self._install)
        java, sums = find_java(), fingerprint(self._ivy, self._sums)
        make(jars, f"{self.name}'s jars", sums, lambda: fetch_jars(java, jars, self._ivy, self._sums))

    def lock(self) -> None:
        """Resolve the jars again and rewrite their checksums."""
        _HOME.mkdir(parents=True, exist_ok=True)
        say(f"resolving {self._sums.name}")
        aside = resolve_jars(find_java(), _HOME / f"{self.name}_jars", self._ivy)
        self._sums.write_text("".join(f"{total}  {name}\n" for name, total in jar_sums(aside / "lib").items()))
        shutil.rmtree(aside)

    def _install(self) -> None:
        uv, place = find_uv(), self.python.parents[1]
        run(uv, "venv", "--quiet", "--python", sys.executable, place)
        run(uv, "pip", "install", "--quiet", "--python", self.python, f"pyspark=={self.pyspark}")


ENVIRONMENTS = {
    "delta": Environment("delta", "4.2.0"),
    "iceberg": Environment("iceberg", "4.1.4"),
    "paimon": Environment("paimon", "3.5.9"),
}
"""By system. Delta 4.4 admits Spark up to 4.2.0, Iceberg 1.12 has a runtime up to 4.1, Paimon 0.9 up to 3.5."""


if __name__ == "__main__":
    for environment in ENVIRONMENTS.values():
        if sys.argv[1:] == ["lock"]:
            environment.lock()
        else:
            environment.set_up()
