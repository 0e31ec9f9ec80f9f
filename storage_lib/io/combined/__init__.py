"""Storage built on other storage: with a lock, or with one store for each URL scheme."""
