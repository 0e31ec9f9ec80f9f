"""Triggers: waits that hold no worker slot."""
