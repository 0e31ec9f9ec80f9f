"""What a refresh has to do: nothing, changes or the whole query, with or without accumulators, and its result."""
