"""Access to Airflow's own API, and to its masking of secrets."""
