"""Dynamic tables in Airflow: a hook, operators and a trigger. Knows Airflow, calls ``storage_lib``, decides little."""
