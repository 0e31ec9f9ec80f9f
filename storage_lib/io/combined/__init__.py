"""Storage that wraps other storage: with a lock, or with one store per URL scheme."""
