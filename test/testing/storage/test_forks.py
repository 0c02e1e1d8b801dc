"""What a child that is forked has of a folder with data: nothing that its parent would miss."""

from __future__ import annotations

import os
import re

import pytest

from kafka.testing.logs.partition_log import Batch
from kafka.testing.logs.segments import StorageError
from kafka.testing.storage.cluster_storage import Storage
from test.testing.data_requests import TOPIC, batch, fetch, produce, values
from test.testing.drive import Driver


def in_a_child(work):
    """Fork; return what a function returns in the child, which lives until the block ends."""
    results, ends = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(ends[1])
            os.write(results[1], work().encode())
            os.read(ends[0], 1)  # until the parent has closed it
        finally:
            os._exit(0)
    os.close(ends[0])
    os.close(results[1])
    said = os.read(results[0], 1000).decode()
    os.close(results[0])
    return said, child, ends[1]


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='nobody forks here')
def test_a_forked_child_neither_keeps_the_lock_nor_writes(folders):
    driver = folders.start()
    driver.state.create_topic(TOPIC, assignments=[[0]])
    produce(driver, batch(b'a'))
    log = driver.state.topics[TOPIC].partitions[0].log

    def work():
        answers = []
        for step in (
            lambda: log.append(Batch(0, 0, 5, 2, batch(b'of the child'), -1), 0),
            lambda: (driver.storage.note_everything(), driver.storage.commit()),
            driver.storage.close,
        ):
            try:
                step()
                answers.append('done')
            except OSError as error:
                answers.append(error.strerror)
            except StorageError as error:
                answers.append(str(error))
        return '; '.join(answers)

    said, child, end = in_a_child(work)
    try:
        assert re.fullmatch('.*forked this one; .*forked this one; done', said)
        assert produce(driver, batch(b'b')).base_offset == 1  # the parent goes on
        with pytest.raises(StorageError, match='in use'):
            Storage(driver.path, False, Driver().state, driver.waiting).open()
        found = folders.after_stop()  # while the child lives
        assert values(fetch(found).records) == [b'a', b'b']
    finally:
        os.close(end)
        os.waitpid(child, 0)
