"""The definition of a materialized table: created, altered, and checked against its sources and options."""
