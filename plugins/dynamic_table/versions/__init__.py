"""Versions of Airflow: which ones fit, what each lacks, and what takes its place."""
