"""Recordings of what secured brokers say to people and logins, from real and embedded ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Tuple

from kafka.testing.releases import broker_release
from servers.releases import releases
from test.differential.embedded import SETTINGS, NearCluster, asked
from test.differential.runner import Recording
from test.differential.secured_brokers import MECHANISMS, SecuredCluster, embedded
from test.differential.secured_logins import of_dialogues
from test.differential.secured_people import of_people, prepare

FOLDER = Path(__file__).parent / 'recorded_secured'
#: Until a real broker knows the rights that were just given.
RIGHTS_SECONDS = 1.0


def of_embedded(release: str, only: str = '') -> Recording:
    """Ask an embedded broker in memory; return what it said.

    Arguments: only: parts of the names of what is wanted, with commas between.
    """
    cluster = embedded(NearCluster, release, MECHANISMS, **SETTINGS)
    return asked(cluster, lambda address: _asked(address, release, only))


def of_real(release: str, only: str = '') -> Recording:
    """Start a secured real broker, ask it, stop it; return what it said; as ``of_embedded``."""
    with SecuredCluster(releases()[release], MECHANISMS) as cluster:
        return _asked(cluster.sasl_address, release, only, RIGHTS_SECONDS)


def _asked(address: Tuple[str, int], release: str, only: str, pause: float = 0.0) -> Recording:
    about = broker_release(release)
    ids = prepare(address, about)
    time.sleep(pause)
    told = of_people(address, about, ids, only)
    return {**told, **of_dialogues(address, about, only)}
