"""The tables that a query reads: their positions, one moment of all of them, and their changes."""
