"""The plan of a refresh (nothing, changes or the whole query, with or without accumulators), and its result."""
