"""Read-only pages in Airflow's UI: the health of all tables, and the details of one table."""
