"""A sink for queries whose tasks kill the executor that they run on, each of them once.

Owns which ones, in the environment of the executors: DEADLY has JSON, ``[folder, [[batch,
partition], ...]]``; ``<folder>/killed.<batch>.<partition>`` says that it was done. The transaction
of the task is open by then, and its Python outlives the executor: it goes on, and is told nothing.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from kafka.spark import sink
from kafka.spark.source import KafkaDataSource

DEADLY = 'KAFKA_TEST_DEADLY'


def deadly(rows, base):
    """Pass on what a task writes, and kill the executor when the first of it was sent."""
    folder, places = json.loads(os.environ[DEADLY])
    place = sink._place(base, '')
    kills = [place.batch, place.partition] in places
    for each in rows:
        yield each
        if kills:
            kills = False
            time.sleep(0.3)  # it is sent at once, by another thread
            kill_executor(Path(folder) / ('killed.%d.%d' % (place.batch, place.partition)))


def kill_executor(marker):
    """Kill the parent of the daemon that made this process, unless that was done before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    stat = Path('/proc/%d/stat' % os.getppid()).read_text()
    os.kill(int(stat.rpartition(')')[2].split()[1]), signal.SIGKILL)


def _deadly_writer(made):
    """Return a writer like another one, with tasks that kill."""

    class DeadlyWriter(type(made)):
        def write(self, iterator):
            return super().write(deadly(iterator, self._base))

    return DeadlyWriter(made._layout, made._config, made._prefix, made._base)


class DeadlySource(KafkaDataSource):
    """As ``kafka-py``, by such a writer."""

    @classmethod
    def name(cls):
        return 'kafka-deadly'

    def streamWriter(self, schema, overwrite):
        return _deadly_writer(super().streamWriter(schema, overwrite))
