"""The Spark session and its Python daemon, set up for the connector."""
