"""Views: queries that a catalog stores under a name."""
