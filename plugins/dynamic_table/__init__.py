"""Dynamic tables in Airflow: hook, operators, sensors and triggers, which call ``storage_lib``."""
