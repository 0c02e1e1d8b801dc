"""A pipeline of Kafka and PySpark, from events to a plot: ``python -m examples.pipeline``."""
