"""Kafka for PySpark: reads, streams and writes topics, with pip and without a jar."""
