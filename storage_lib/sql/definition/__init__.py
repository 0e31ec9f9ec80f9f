"""Definitions of tables for CREATE TABLE and SHOW CREATE TABLE, with computed columns and watermarks."""
