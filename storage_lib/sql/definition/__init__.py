"""Definitions of tables for CREATE and SHOW CREATE, with computed columns, watermarks and materialized tables."""
