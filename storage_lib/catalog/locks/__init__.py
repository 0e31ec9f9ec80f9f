"""The lock on a table that all processes of a catalog share: for creators, and for stores without create-if-absent."""
