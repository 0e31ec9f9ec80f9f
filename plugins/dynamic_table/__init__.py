"""Dynamic tables in Airflow: hook, operators, sensors and triggers, which call ``storage_lib``."""

from importlib.util import find_spec

from storage_lib.distribution import import_failure

if find_spec("airflow") is None:
    missing = ModuleNotFoundError("No module named 'airflow'", name="airflow")
    raise import_failure(__name__, missing) from missing
