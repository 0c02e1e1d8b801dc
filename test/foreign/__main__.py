"""``python -m test.foreign``: run the foreign clients on the embedded broker, and tell the outcome.

python -m test.foreign                                      everything
python -m test.foreign --release 4.4 --client aiokafka      a part
python -m test.foreign --write docs/foreign_clients.rst     everything, and the table
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable, List, Optional, Sequence, Tuple, Union

from servers.releases import releases
from test.foreign import table
from test.foreign.clients import CLIENTS, Missing
from test.foreign.console import OLDEST, Tools
from test.foreign.running import run
from test.foreign.workers import Worker

RELEASES = ['0.8.2', '0.9', '0.10.2', '0.11', '1.1', '2.8', '3.9', '4.0', '4.3', '4.4']


def _arguments(words: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m test.foreign',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--release', action='append', help='such as 2.8; may be repeated')
    parser.add_argument('--client', action='append', help='a part of the name; may be repeated')
    parser.add_argument('--step', default='', help='a part of the name of the steps wanted')
    parser.add_argument('--write', metavar='FILE', help='write the table there')
    return parser.parse_args(words)


def _say(line: str) -> None:
    sys.stdout.write(line + '\n')
    sys.stdout.flush()


def _found(parts: Sequence[str]) -> List[Union[Worker, Tools]]:
    """Return the clients wanted that can run here; tell why others cannot."""
    known = releases()
    makers: List[Tuple[str, Callable[[], Union[Worker, Tools]]]] = [
        *((each.name, partial(Worker, each)) for each in CLIENTS),
        *(('Kafka tools ' + name, partial(Tools, known[name])) for name in OLDEST),
    ]
    found = []
    for name, make in makers:
        if any(part in name for part in parts):
            try:
                found.append(make())
            except Missing as reason:
                _say('NOT RUN  %s: %s' % (name, reason))
    return found


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run what is asked for; return 1 if a step failed."""
    options = _arguments(words)
    began = time.monotonic()
    clients = _found(options.client or [''])
    workers = [each for each in clients if isinstance(each, Worker)]
    judges = workers or [Worker(CLIENTS[0])]
    try:
        outcomes = run(clients, judges[0], options.release or RELEASES, options.step, _say)
    finally:
        for worker in judges:
            worker.close()
    every = table.keep(outcomes)
    if options.write:
        names = [each.name for each in CLIENTS] + ['Kafka tools ' + name for name in OLDEST]
        table.write(Path(options.write), table.page(every, names, RELEASES))
    failed = [each for each in outcomes if each.failed]
    for each in failed:
        _say('FAILED  %s' % (each,))
    passed = sum(each.passed for each in outcomes)
    seconds = time.monotonic() - began
    _say('%d checks passed, %d steps failed, %d s' % (passed, len(failed), seconds))
    return 1 if failed or not clients else 0


if __name__ == '__main__':
    sys.exit(main())
