"""Clusters in folders, without sockets, for tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, List

from kafka.testing.storage.cluster_storage import Storage
from test.testing.data_requests import TOPIC
from test.testing.drive import Driver


class DurableDriver(Driver):
    """A cluster on a virtual clock whose state is in a folder.

    Arguments: path: of the folder; fsync: as of Cluster; others as of Driver.
    """

    def __init__(self, path: Path, version: str = '4.4', fsync: bool = False, **more: Any) -> None:
        super().__init__(version, **more)
        self.path = path
        self.storage = Storage(path, fsync, self.state, self.waiting)
        self.storage.open()

    def ask(self, *args: Any, **more: Any) -> Any:
        """Send a request; what was done is in the files when the response is here."""
        response = super().ask(*args, **more)
        self.storage.commit()
        return response


class Folders:
    """Starts clusters one after the other in what the one before has left."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._drivers: List[DurableDriver] = []

    def start(self, version: str = '4.4', **more: Any) -> DurableDriver:
        """Start the first one, or the next after the last one was stopped."""
        driver = DurableDriver(self._path / str(self._count), version, **more)
        self._drivers.append(driver)
        return driver

    def stop(self) -> None:
        """Stop what runs."""
        while self._drivers:
            self._drivers.pop().storage.close()

    def after_stop(self, version: str = '4.4', **more: Any) -> DurableDriver:
        """Stop what runs and start the next one."""
        self.stop()
        return self.start(version, **more)

    def after_kill(self, version: str = '4.4', **more: Any) -> DurableDriver:
        """Start the next one in what a kill would leave now."""
        before = self._path / str(self._count)
        self._count += 1
        shutil.copytree(str(before), str(self._path / str(self._count)))
        return self.start(version, **more)

    def after(self, how: str, version: str = '4.4', **more: Any) -> DurableDriver:
        """Start the next one after a ``'stop'`` or a ``'kill'``."""
        return (self.after_stop if how == 'stop' else self.after_kill)(version, **more)


def with_topic(folders: Folders, **more: Any) -> DurableDriver:
    """Start a cluster with the topic of data_requests, with one partition."""
    driver = folders.start(**more)
    driver.state.create_topic(TOPIC, assignments=[[0]])
    driver.storage.commit()
    return driver
