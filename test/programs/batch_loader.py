#!/usr/bin/env python
"""Load a topic into SQLite; rows and offsets change together, Kafka only hears about it later."""
from __future__ import print_function

import sqlite3
import sys

from kafka import KafkaClient, SimpleConsumer

BATCH = 40


class Loader(object):
    def __init__(self, client, group, topic, path):
        self.db = sqlite3.connect(path)
        self.db.execute('create table if not exists line (part int, off int, text text, '
                        'primary key (part, off))')
        self.db.execute('create table if not exists place (part int primary key, off int)')
        self.consumer = SimpleConsumer(client, group, topic, auto_commit=False,
                                       max_buffer_size=None)
        self.consumer.provide_partition_info()
        for part, off in self.db.execute('select part, off from place'):
            # the data base knows better than the group
            self.consumer.offsets[part] = off
            self.consumer.fetch_offsets[part] = off

    def load(self):
        batch = self.consumer.get_messages(count=BATCH, block=True, timeout=1)
        if not batch:
            return 0
        with self.db:
            for part, m in batch:
                self.db.execute('insert into line values (?, ?, ?)',
                                (part, m.offset, m.message.value.decode('utf-8')))
            for part, off in self.consumer.offsets.items():
                self.db.execute('insert or replace into place values (?, ?)', (part, off))
        self.consumer.commit()
        return len(batch)


def main(brokers, group, topic, path):
    client = KafkaClient(brokers)
    loader = Loader(client, group, topic, path)
    sizes = []
    while not sizes or sizes[-1]:
        sizes.append(loader.load())
    print('batches of %s' % sizes)
    print('rows: %d, places: %s' % (
        loader.db.execute('select count(*) from line').fetchone()[0],
        loader.db.execute('select part, off from place order by part').fetchall()))
    loader.consumer.stop()
    loader.db.close()
    client.close()


if __name__ == '__main__':
    main(*sys.argv[1:])
