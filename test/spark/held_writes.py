"""A sink whose first task is held at a point of its way, until the driver has ended the write.

Owns the order of what happens, by files in a folder, which is what transactional ids begin with:
``<folder>/before`` where that task is to have no producer id yet, ``<folder>/initialised`` where it
is to have one. The first attempt of task 0 comes there and says so; then task 1 goes on. Where that
one fails, Spark aborts the write; where it ends, Spark may begin a second attempt of task 0, and
commit what that one writes. Then the first goes on: it is killed by then, but Spark waits seconds
before it ends its Python.
"""

from __future__ import annotations

import time
from pathlib import Path
from unittest import mock

from pyspark import TaskContext

from kafka.errors import KafkaError
from kafka.producer import KafkaProducer
from kafka.spark import sink
from kafka.spark.source import KafkaDataSource

SECONDS = 30


def wait_for(path, seconds=SECONDS):
    """Wait until a file is there, but not for ever: what follows tells whether it came."""
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


class HeldWriter(sink.BatchWriter):
    """As its base, with tasks that wait for each other."""

    @property
    def _folder(self):
        return Path(self._prefix).parent

    def write(self, iterator):
        context = TaskContext.get()
        if context.partitionId() or context.attemptNumber():
            wait_for(self._folder / 'held')
            return super().write(iterator)
        try:
            if self._prefix.endswith('before'):
                self._hold()
                return super().write(iterator)
            initialise = KafkaProducer.init_transactions

            def initialise_and_hold(producer):
                initialise(producer)
                self._hold()

            with mock.patch.object(KafkaProducer, 'init_transactions', initialise_and_hold):
                return super().write(iterator)
        except KafkaError as error:
            (self._folder / 'error').write_text(str(error))
            raise
        finally:
            (self._folder / 'over').touch()

    def commit(self, messages):
        super().commit(messages)
        (self._folder / 'ended').touch()

    def abort(self, messages):
        super().abort(messages)
        (self._folder / 'ended').touch()

    def _hold(self):
        (self._folder / 'held').touch()
        wait_for(self._folder / 'ended')


class HeldSource(KafkaDataSource):
    """As ``kafka-py``, by a HeldWriter."""

    @classmethod
    def name(cls):
        return 'kafka-held'

    def writer(self, schema, overwrite):
        made = super().writer(schema, overwrite)
        return HeldWriter(made._layout, made._config, made._prefix, made._base)
