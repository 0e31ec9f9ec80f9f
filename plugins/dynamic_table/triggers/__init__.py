"""What waits without holding a worker slot."""
