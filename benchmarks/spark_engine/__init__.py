"""The same work done by several table formats through Spark, each in a Spark session of its own."""
