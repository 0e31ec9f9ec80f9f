"""DAGs of materialized tables, made from their definitions."""
