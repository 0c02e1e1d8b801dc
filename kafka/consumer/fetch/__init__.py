"""What a KafkaConsumer fetches, from which broker, and what it has and did not hand out yet."""
