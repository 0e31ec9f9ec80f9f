"""The Spark session and its Python daemon, configured for the connector."""
