#!/usr/bin/env python
"""Ship log records to Kafka as JSON through a handler of the logging package."""
import json
import logging
import sys

from kafka import KafkaClient, SimpleProducer


class KafkaHandler(logging.Handler):

    def __init__(self, hosts, topic):
        logging.Handler.__init__(self)
        self.client = KafkaClient(hosts)
        self.topic = topic
        self.producer = SimpleProducer(self.client, random_start=False)

    def emit(self, record):
        # The client's own lines would come back here for ever.
        if record.name == 'kafka' or record.name.startswith('kafka.'):
            return
        try:
            fields = {
                'level': record.levelname,
                'logger': record.name,
                'text': record.getMessage(),
                'error': str(record.exc_info[1]) if record.exc_info else None,
            }
            line = json.dumps(fields, sort_keys=True)
            self.producer.send_messages(self.topic, line.encode('utf-8'))
        except (KeyboardInterrupt, SystemExit):
            raise
        except Exception:
            self.handleError(record)

    def close(self):
        if self.producer is not None:
            self.producer.stop()
            self.client.close()
            self.producer = None
        logging.Handler.close(self)


def main(hosts, topic):
    handler = KafkaHandler(hosts, topic)
    handler.setFormatter(logging.Formatter())
    root = logging.getLogger()
    root.setLevel(logging.DEBUG)  # everything, the client's debug lines included
    root.addHandler(handler)

    log = logging.getLogger('shop.cart')
    log.info('added %d of %s', 2, u'caf\xe9')
    log.warning('stock is low')
    try:
        {}['missing']
    except KeyError:
        log.exception('no such item')
    logging.shutdown()


if __name__ == '__main__':
    main(*sys.argv[1:3])
