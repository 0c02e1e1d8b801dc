"""A complete program for the interface of 0.9.5: write messages, read them, remember the place.

``python simple_0_9_5.py HOST:PORT TOPIC [GROUP]``

Without a group every run reads the topic from its start. With one, the place is stored and the next
run goes on from there (Apache Kafka 0.8.0 cannot store places).
"""

import sys

from kafka import KafkaClient, SimpleConsumer, SimpleProducer


def main(hosts, topic, group=None):
    client = KafkaClient(hosts)
    client.ensure_topic_exists(topic)

    producer = SimpleProducer(client)
    for number in range(3):
        responses = producer.send_messages(topic, ('message %d' % number).encode('utf-8'))
        for response in responses:
            print(
                'wrote message %d: partition %d, offset %d'
                % (number, response.partition, response.offset)
            )

    consumer = SimpleConsumer(client, group, topic, auto_commit=False, iter_timeout=1)
    consumer.provide_partition_info()
    for partition, message in consumer:
        print(
            'read %s: partition %d, offset %d'
            % (message.message.value.decode('utf-8'), partition, message.offset)
        )
    if group:
        consumer.commit()

    consumer.stop()
    client.close()


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
