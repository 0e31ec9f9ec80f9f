"""The logical types of columns, their spelling, and their Arrow twins."""
