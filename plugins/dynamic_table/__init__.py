"""Dynamic tables in Airflow: hook, operators, sensors and triggers, which call ``storage_lib``."""

from importlib.util import find_spec

if find_spec("airflow") is None:
    # Airflow parses DAG files every few seconds, so the library is imported only for this error.
    from storage_lib.distribution import import_failure

    missing = ModuleNotFoundError("No module named 'airflow'", name="airflow")
    raise import_failure(__name__, missing) from missing

from dynamic_table.versions.fitting_airflow import refuse_unfitting_airflow

refuse_unfitting_airflow()
