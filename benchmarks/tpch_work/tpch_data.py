"""Makes TPC-H's data with tpchgen-cli, in an environment of its own below ``.local/tpchgen``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docker" / "local"))

from stack_setup import LOCAL, find_uv, make, run

_RELEASE = "tpchgen-cli==4.0.0"
_HOME = LOCAL / "tpchgen"


def make_tpch_data(directory: Path, scale: float) -> None:
    """Write ``<table>.parquet`` for each table. Raises ``SetupError`` if the generator cannot be installed."""
    make(_HOME, "TPC-H's data generator", f"{_HOME} {_RELEASE}", _install)
    directory.mkdir(parents=True, exist_ok=True)
    program = str(_HOME / "bin" / "tpchgen-cli")
    subprocess.run([program, "parquet", "-s", f"{scale:g}", "--output-dir", str(directory)], check=True)


def _install() -> None:
    uv = find_uv()
    run(uv, "venv", "--quiet", "--python", sys.executable, _HOME)
    run(uv, "pip", "install", "--quiet", "--python", _HOME / "bin" / "python", _RELEASE)
