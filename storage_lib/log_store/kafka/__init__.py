"""The log on Kafka. The one folder that imports Kafka's client."""
