"""Batch reads of one snapshot: time travel, planning, and look-ups by key."""
