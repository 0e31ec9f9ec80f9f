"""Schema evolution: allowed changes, and reading files of older versions."""
