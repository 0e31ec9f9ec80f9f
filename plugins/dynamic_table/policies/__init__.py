"""Limits on tasks: pools, failures in a row, and the functions, hosts and Spark settings that are allowed."""
