"""Files that processes of Airflow share."""
