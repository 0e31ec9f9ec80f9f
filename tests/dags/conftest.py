"""The DAG folder and the local Airflow, importable as Airflow and the demo import them."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

# Before the first import of Airflow, which reads it once.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-home-"))
sys.path[:0] = [str(CHECKOUT / "dags"), str(CHECKOUT / "docker" / "local")]
