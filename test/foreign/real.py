"""``python -m test.foreign.real 2.8.2``: the same steps on a real broker, to see who is wrong.

One broker of a release of servers/, and the steps for which it must neither be hurt nor be several.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from kafka.testing.releases import broker_release
from servers.cluster import Cluster
from servers.releases import problem, releases
from test.foreign.clients import CLIENTS, Client
from test.foreign.plan import STEPS, Step, in_peace
from test.foreign.workers import Worker

#: These need three brokers, or a topic that is not there.
VERBS_LEFT_OUT = ('admin', 'log_in', 'make_by_use')


def _wanted(client: Client, version: Tuple[int, ...], part: str) -> Iterator[Step]:
    for step in STEPS:
        is_harmless = step.meanwhile is in_peace and step.verb not in VERBS_LEFT_OUT
        has_it = version >= step.since and step.name not in dict(client.lacks)
        if is_harmless and has_it and part in step.name:
            yield step


def _run(cluster: Cluster, worker: Worker, step: Step, told: Dict[str, Any]) -> Dict[str, Any]:
    topic = '%s.%s' % (step.name, worker.client.name)
    topic = topic.replace(' ', '-').replace(',', '')
    how = dict(step.how)
    if step.source:
        how['source'] = topic + '.source'
        cluster.create_topic(how['source'], 1)
    cluster.create_topic(topic, step.partitions)
    return worker.ask(step.verb, told, topic=topic, **how)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run the steps and tell the outcomes; return 1 if a step failed."""
    parser = argparse.ArgumentParser(prog='python -m test.foreign.real', description=__doc__)
    parser.add_argument('release', choices=list(releases()), metavar='RELEASE')
    parser.add_argument('--client', default='', help='a part of the name of the clients wanted')
    parser.add_argument('--step', default='', help='a part of the name of the steps wanted')
    options = parser.parse_args(words)
    found = releases()[options.release]
    why = problem(found)
    if why:
        parser.error(why)
    as_embedded = broker_release(options.release)
    version, failed = as_embedded.version, 0
    with Cluster(found, 1) as cluster:
        told = {
            'bootstrap': cluster.bootstrap,
            'version': list(version),
            'release': as_embedded.name,
        }
        for client in CLIENTS:
            if options.client not in client.name or version < client.since:
                continue
            with Worker(client) as worker:
                for step in _wanted(client, version, options.step):
                    answer = _run(cluster, worker, step, told)
                    failed += 'failed' in answer
                    what = answer.get('failed') or '%d checks' % answer['passed']
                    sys.stdout.write('%s, %s: %s\n' % (client.name, step.name, what))
                    sys.stdout.flush()
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
