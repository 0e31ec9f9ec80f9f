"""Everything that is not deterministic: files, clock, random names. No other code reads a clock or opens a file."""
