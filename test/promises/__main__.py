"""``python -m test.promises``: try every promise with every client, and tell what differs.

python -m test.promises                                   everything
python -m test.promises --release 2.8.2 --promise flush   a part

Ends with 1 if there is a difference that deviations.py does not explain.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from kafka.testing import Cluster
from test.foreign.clients import Missing
from test.promises import comparing
from test.promises.clients import FOREIGN, OURS, Trying, found, numbers
from test.promises.deviations import reason

RELEASES = ['0.9.0.1', '0.11.0.3', '2.8.2', '4.4.0']
_PROMISE = re.compile(
    r"^@promise\(\s*'([^']*)'((?:,\s*\w+='[^']*')*)\s*\)\ndef (\w+)", re.MULTILINE
)


class Listed(NamedTuple):
    """A promise as its source says it, which only a client can import."""

    name: str
    section: str
    since: Tuple[int, ...]
    until: Tuple[int, ...]
    release: Tuple[int, ...]


def listed(part: str = '') -> List[Listed]:
    """Return the promises in the files that have a text in their names."""
    promises = []
    for path in sorted(Path(__file__).parent.glob('on_*.py')):
        if part in path.stem:
            for section, named, name in _PROMISE.findall(path.read_text(encoding='utf-8')):
                given = dict(re.findall(r"(\w+)='([^']*)'", named))
                promises.append(
                    Listed(
                        name.replace('_', ' '),
                        section,
                        numbers(given.get('since', '2')),
                        numbers(given.get('until', '9')),
                        numbers(given.get('release', '0.9')),
                    )
                )
    return promises


def _say(line: str) -> None:
    sys.stdout.write(line + '\n')
    sys.stdout.flush()


def _arguments(words: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m test.promises',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--release', action='append', help='such as 2.8.2; may be repeated')
    parser.add_argument('--client', action='append', help='a part of the name; may be repeated')
    parser.add_argument('--promise', default='', help='a part of the name of the promises wanted')
    parser.add_argument('--module', default='', help='a part of the name of their files')
    return parser.parse_args(words)


def _workers(parts: Sequence[str]) -> List[Trying]:
    workers = [Trying(OURS)]
    for client in FOREIGN:
        if any(part in client.name for part in parts):
            try:
                workers.append(Trying(client))
            except Missing as why:
                _say('NOT RUN  %s: %s' % (client.name, why))
    return workers


def main(words: Optional[Sequence[str]] = None) -> int:
    """Try what is asked for; return 1 for a difference that nobody has explained."""
    options = _arguments(words)
    promises = [each for each in listed(options.module) if options.promise in each.name]
    workers = _workers(options.client or [''])
    tried = explained = unexplained = 0
    try:
        for release in options.release or RELEASES:
            with Cluster(version=release) as cluster:
                for number, promise in enumerate(promises):
                    if numbers(release) < promise.release:
                        continue
                    told = _tried(cluster, workers, release, 'p%d' % number, promise)
                    tried += 1
                    explained += told.count(True)
                    unexplained += told.count(False)
    finally:
        for worker in workers:
            worker.close()
    _say(
        '%d promises tried, %d differences that are wanted, %d that nobody has explained'
        % (tried, explained, unexplained)
    )
    return 1 if unexplained or not tried else 0


def _tried(
    cluster: Any, workers: Sequence[Trying], release: str, prefix: str, promise: Listed
) -> List[bool]:
    """Try a promise with all clients; tell of each difference whether it is explained."""
    answers: Dict[str, Any] = {}
    for index, worker in enumerate(workers):
        if worker.makes(promise.since, promise.until, release):
            topic = '%s.%d' % (prefix, index)
            cluster.create_topic(topic, 3)
            began_ms = int(time.time() * 1000) - 1000
            answer = found(worker, promise.name, cluster.bootstrap, topic)
            stored = comparing.stored(cluster, topic, began_ms)
            answers[worker.client.name] = {'answer': answer, 'stored': stored}
    ours = answers.pop(OURS.name)
    where = '%-9s %s' % (release, promise.name)
    told = []
    if isinstance(ours['answer'], dict) and 'broke' in ours['answer']:
        _say('BROKEN     %s (%s)\n    ours   %s' % (where, promise.section, json.dumps(ours)))
        told.append(False)
    for who, theirs in answers.items():
        if comparing.is_same(theirs, ours):
            continue
        why = reason(promise.name, who.split()[-1], release)
        told.append(bool(why))
        if why:
            _say('wanted     %s, %s: %s' % (where, who, why))
            continue
        _say('DIFFERENT  %s (%s)' % (where, promise.section))
        for name, each in ((who, theirs), ('ours', ours)):
            _say('    %-19s %s' % (name, json.dumps(each)[:1500]))
    if not told:
        _say('same       %s (%d clients)' % (where, len(answers)))
    return told


if __name__ == '__main__':
    sys.exit(main())
