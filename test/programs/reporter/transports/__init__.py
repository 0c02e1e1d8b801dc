"""Where reports can go."""
from .kafka_transport import KafkaTransport


def open_transport(settings):
    return KafkaTransport(settings.brokers, settings.topic, async=settings.async)
