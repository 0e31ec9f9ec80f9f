"""Table locks shared by all processes of a catalog, for CREATE and for stores without create-if-absent."""
