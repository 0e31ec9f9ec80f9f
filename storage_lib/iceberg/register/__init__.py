"""The table's entry in a catalog that others run: it follows the view."""
