"""Airflow's own API and its masking of secrets."""
