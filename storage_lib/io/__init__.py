"""Files, clock, chance and new names: all that is not deterministic. No other code reads a clock or opens a file."""
