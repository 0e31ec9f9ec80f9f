"""Pages in Airflow's UI: what every table's health is, and what one table holds. They only look."""
