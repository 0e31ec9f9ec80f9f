"""Declarations of CREATE TABLE: options are checked, completed and frozen; drift is reported."""
