"""Airflow's home while DAG files are parsed: thrown away, never the user's."""

from __future__ import annotations

import os
import tempfile

# Before the first import of Airflow, which reads it once.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-home-"))
