"""Readers that convert parse trees to statements."""
