"""The Kafka client that Python programs never have to leave."""
