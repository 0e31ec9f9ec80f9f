"""The log on Kafka. Only this folder imports Kafka's client."""
