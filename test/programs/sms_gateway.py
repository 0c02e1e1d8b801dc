#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Queue short messages by number; json.dumps() and str() give text, and that is what is sent."""
from __future__ import print_function

import json
import logging
import os

from kafka import KafkaClient, KeyedProducer, Murmur2Partitioner, create_message
from kafka.producer import SimpleProducer

logging.basicConfig(level=logging.WARNING, format='%(name)s %(levelname)s')


class Gateway(object):
    def __init__(self, settings):
        self.client = KafkaClient(settings['KAFKA_BROKERS'])
        self.topic = settings['SMS_TOPIC']
        self.keyed = KeyedProducer(self.client, partitioner=Murmur2Partitioner)
        self.plain = SimpleProducer(self.client, random_start=False)

    def send(self, number, text):
        body = json.dumps({'to': number, 'text': text}, sort_keys=True, ensure_ascii=False)
        response, = self.keyed.send_messages(self.topic, str(number), body)
        return response.error

    def audit(self, what):
        response, = self.plain.send_messages(self.topic, what, b'end of audit')
        return response.error


if __name__ == '__main__':
    gateway = Gateway(os.environ)
    print(gateway.send(4711, 'grüße'), gateway.send(4712, 'ok'), gateway.audit('5 €'))
    print(create_message('text').value == 'text')
    gateway.client.close()
