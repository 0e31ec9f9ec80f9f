"""The adapter's version, which dbt shows."""

version = "0.3.0"
