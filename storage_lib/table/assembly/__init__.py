"""The parts that read and write one branch of a table, constructed and connected."""
