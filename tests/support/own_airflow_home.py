"""A home of Airflow for one run of tests, so that it never is the user's."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile


def own_airflow_home() -> str:
    """Return ``AIRFLOW_HOME``, or a new directory, which is deleted when this process ends.

    Airflow reads the variable at its first import. Processes that pytest starts for its tests inherit it.
    """
    known = os.environ.get("AIRFLOW_HOME")
    if known is not None:
        return known
    home = tempfile.mkdtemp(prefix="airflow-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home
