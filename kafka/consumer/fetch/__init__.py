"""Fetching for KafkaConsumer: fetch manager, node selection, fetch sessions, fetch buffer."""
