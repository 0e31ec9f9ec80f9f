"""Topics that others write."""
