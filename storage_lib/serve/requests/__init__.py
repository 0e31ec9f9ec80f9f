"""What both catalogs share: bodies, pages of names, counts, and messages without paths."""
