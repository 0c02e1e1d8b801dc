"""Recordings: made from a real or an embedded broker, written to compact files and read again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, List

from kafka.testing import Cluster
from kafka.testing.releases import broker_release
from test.differential import (
    steps_admin,
    steps_basic,
    steps_cluster,
    steps_data,
    steps_fetch,
    steps_formats,
    steps_groups,
    steps_later,
    steps_share,
    steps_streams,
    steps_transactions,
)
from test.differential.runner import Recording, run
from test.differential.script import Scenario

FOLDER = Path(__file__).parent / 'recorded'
EMBEDDED_SECONDS = 1.5

#: Everything, in the order in which it is asked.
SCRIPT: List[Scenario] = [
    *steps_basic.SCRIPT,
    *steps_data.SCRIPT,
    *steps_fetch.SCRIPT,
    *steps_formats.SCRIPT,
    *steps_groups.SCRIPT,
    *steps_transactions.SCRIPT,
    *steps_admin.SCRIPT,
    *steps_cluster.SCRIPT,
    *steps_later.SCRIPT,
    *steps_share.SCRIPT,
    *steps_streams.SCRIPT,
]


def kept(release: str) -> Path:
    """Return where the recording of a release is kept."""
    return FOLDER / (release + '.json.gz')


def write(path: Path, recording: Recording) -> None:
    """Write a recording; equal ones become equal files."""
    text = json.dumps(recording, separators=(',', ':'))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> Recording:
    """Read a recording. Raises OSError when there is none."""
    recording: Recording = json.loads(gzip.decompress(path.read_bytes()))
    return recording


def of_real(release: str, only: str = '') -> Recording:
    """Start one real broker, send it the script, stop it; return what it said."""
    # Late: the recordings are read where no real broker can run.
    from servers.cluster import Cluster as RealCluster
    from servers.releases import releases

    with RealCluster(releases()[release]) as cluster:
        return run(SCRIPT, cluster.address(0), broker_release(release), only)


def of_embedded(release: str, only: str = '', **settings: Any) -> Recording:
    """Send the script to an embedded broker; return what it said.

    What a handler raised, if any did, is a step that no real broker has.
    """
    # As the real ones here: servers/eras/common/common.properties.
    settings = dict({'num_partitions': 2, 'offsets_topic_partitions': 5}, **settings)
    cluster = Cluster(version=release, **settings)
    cluster.start()
    try:
        host, port = cluster.bootstrap.rsplit(':', 1)
        address = host, int(port)
        recording = run(SCRIPT, address, broker_release(release), only, EMBEDDED_SECONDS)
    finally:
        try:
            cluster.stop()
        except Exception as error:  # any that a handler may have
            raised = '%s: %s' % (type(error).__name__, error)
        else:
            raised = ''
    if raised:
        recording['a handler/raised'] = {'outcome': raised}
    return recording
