"""Create, rename and drop tables in idempotent steps; find remains of interrupted ones."""
