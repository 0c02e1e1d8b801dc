"""Reports go to a topic."""
from kafka import KafkaClient, SimpleProducer


class KafkaTransport(object):
    def __init__(self, brokers, topic, async=True):
        self.client = KafkaClient(brokers)
        self.topic = topic
        self.producer = SimpleProducer(self.client, async=async, batch_send_every_n=50,
                                       batch_send_every_t=30, random_start=False)
        self.sent = 0

    def report(self, name, number):
        self.producer.send_messages(self.topic, ('%s=%d' % (name, number)).encode('ascii'))
        self.sent += 1

    def close(self):
        self.producer.stop()
        self.client.close()
