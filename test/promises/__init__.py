"""What the documents promise of KafkaProducer, tried with this package and kafka-pythons of others.

``python -m test.promises`` tries every promise on embedded brokers with each of the clients, and
compares what came back, what was raised and what was stored.
"""
