"""File store of one table: operations in this package, their building blocks in its subpackages."""
