"""Limits on tasks: pools, consecutive failures, and allowed functions, hosts and Spark settings."""
