"""Checks and converts users' rows and partition specs before anything is written."""
