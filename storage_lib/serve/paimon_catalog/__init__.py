"""The REST catalog of Paimon over the tables."""
