"""Recordings: made from a real or an embedded broker, written to compact files and read again."""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, FrozenSet, List, Optional, Tuple, Type

from kafka.testing import Cluster
from kafka.testing.releases import BrokerRelease, broker_release
from servers.cluster import Cluster as RealCluster
from servers.releases import releases
from test.differential import (
    secured_brokers,
    steps_admin,
    steps_basic,
    steps_cluster,
    steps_data,
    steps_fetch,
    steps_formats,
    steps_groups,
    steps_later,
    steps_secured,
    steps_settings,
    steps_share,
    steps_streams,
    steps_transactions,
    steps_transactions_2,
    steps_wires,
)
from test.differential.embedded import SETTINGS, NearCluster, asked
from test.differential.runner import (
    SETTLE_SECONDS,
    Greeting,
    Patience,
    Recording,
    hopeless,
    run,
)
from test.differential.script import Case, Choice, Scenario, cases

FOLDER = Path(__file__).parent / 'recorded'

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
    *steps_transactions_2.SCRIPT,
    *steps_settings.SCRIPT,
    *steps_wires.SCRIPT,
]


#: What is asked of a cluster that asks who one is.
SECURED: List[Scenario] = [
    each._replace(since=max(each.since, secured_brokers.SINCE)) for each in steps_secured.SCRIPT
]
ALL = [*SCRIPT, *SECURED]


def kept(release: str, folder: Path = FOLDER) -> Path:
    """Return where the recording of a release is kept."""
    return folder / (release + '.json.gz')


def all_kept(folder: Path = FOLDER) -> List[str]:
    """Return the releases of which there are recordings."""
    return sorted(path.name[: -len('.json.gz')] for path in folder.glob('*.json.gz'))


def write(path: Path, recording: Recording) -> None:
    """Write a recording; equal ones become equal files."""
    text = json.dumps(recording, separators=(',', ':'))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> Recording:
    """Read a recording. Raises OSError when there is none."""
    recording: Recording = json.loads(gzip.decompress(path.read_bytes()))
    return recording


def of_real(
    release: str, choose: Choice = cases, known: Optional[FrozenSet[str]] = None
) -> Recording:
    """Send the script to two real brokers, one of which asks who one is; return what they said.

    They run at the same time: whoever asks mostly waits.

    Arguments: choose: what is asked; known: steps in which nothing is to come; those of the kept
        recording by default.
    """
    if known is None:
        known = hopeless(read(kept(release))) if kept(release).exists() else frozenset()
    patience = Patience(known=known, settle_seconds=SETTLE_SECONDS)
    about = broker_release(release)

    def ask(part: List[Case]) -> Recording:
        with RealCluster(releases()[release], settings={}) as cluster:
            return run(part, cluster.address(0), about, patience)

    def ask_secured(part: List[Case]) -> Recording:
        with secured_brokers.SecuredCluster(releases()[release]) as cluster:
            return _run_secured(part, cluster.sasl_address, about, patience)

    parts = [(ask, SCRIPT), (ask_secured, SECURED)]
    chosen = [(how, list(choose(scenarios, about))) for how, scenarios in parts]
    with ThreadPoolExecutor(len(parts)) as pool:
        told = [pool.submit(how, part) for how, part in chosen if part]
        return {name: each for part in told for name, each in part.result().items()}


def _run_secured(
    chosen: List[Case], address: Tuple[str, int], release: BrokerRelease, patience: Patience
) -> Recording:
    def greet(user: str) -> Greeting:
        return secured_brokers.greeting(release, user)

    return run(chosen, address, release, patience, greet, secured_brokers.ADMIN)


def of_embedded(
    release: str,
    choose: Choice = cases,
    known: FrozenSet[str] = frozenset(),
    kind: Type[Cluster] = NearCluster,
    **settings: Any,
) -> Recording:
    """Send the script to embedded brokers; return what they said.

    Arguments: choose: what is asked; known: steps in which nothing is to come, see Patience; kind:
        in memory, where the waits are those that real brokers get and cost nothing, and one seed
        makes every run the same, or on sockets.
    """
    about = broker_release(release)
    settings = dict(SETTINGS, **settings)
    patience = Patience(known=known)
    script, secured = (list(choose(each, about)) for each in (SCRIPT, SECURED))
    recording: Recording = {}
    if script:
        plain = kind(version=release, **settings)
        recording.update(asked(plain, lambda address: run(script, address, about, patience)))
    if secured:
        asking = secured_brokers.embedded(kind, release, **settings)
        recording.update(
            asked(asking, lambda address: _run_secured(secured, address, about, patience))
        )
    return recording
