"""The table's entry in an Iceberg REST catalog that others run: it follows the view."""
