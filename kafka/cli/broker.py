"""``python -m kafka broker``: run embedded brokers of ``kafka.testing`` in the foreground.

It parses the command line, prints the addresses, and ends at Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from kafka.cli import broker_security
from kafka.cli.broker_security import SecurityOptions, text_of
from kafka.testing import Cluster
from kafka.testing.cluster import HOST
from kafka.testing.logs.segments import StorageError
from kafka.testing.releases import NEWEST
from kafka.testing.security.tls import CertificateError

PORT = 9092
#: How often a signal is checked for: an endless wait cannot be interrupted on every platform.
LOOK_SECONDS = 0.5
SIGNALLED = 128  # what a shell adds to the number of a signal


class BrokerCommand(NamedTuple):
    """A parsed command line."""

    host: str = HOST
    port: int = PORT
    version: str = NEWEST
    brokers: int = 1
    topics: Dict[str, int] = {}
    data: Optional[str] = None
    fsync: bool = False
    security: SecurityOptions = SecurityOptions()


def main(args: List[str]) -> int:
    """Run a command line.

    Returns: 128 plus the number of the signal that ended it; 1 on failure.
    Raises: SystemExit: 2 for an invalid command line, 0 for --help.
    """
    parser = _parser()
    command = _command(parser, args)
    try:
        cluster = Cluster(
            command.brokers,
            command.version,
            host=command.host,
            port=command.port,
            topics=command.topics,
            data=command.data,
            fsync=command.fsync,
            **command.security.arguments(os.environ),
        )
    except ValueError as error:
        parser.error(str(error))
    return _serve(command, cluster)


def parse(args: List[str]) -> BrokerCommand:
    """Parse a command line.

    Raises: SystemExit for an unknown option or an invalid value, and for --help.
    """
    return _command(_parser(), args)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python -m kafka broker',
        description='Run a small Kafka in pure Python until Ctrl-C.',
        allow_abbrev=False,
    )
    add = parser.add_argument
    text = 'the host to listen on and to advertise (%(default)s)'
    add('--host', type=text_of, default=HOST, help=text)
    text = 'the port of the first broker, the others follow; 0 for free ports (%(default)s)'
    add('--port', type=_port, default=PORT, help=text)
    text = 'the release of Apache Kafka to behave as, from 0.8.0 on (%(default)s)'
    add('--version', type=text_of, default=NEWEST, help=text)
    text = 'the number of brokers (%(default)s)'
    add('--brokers', type=_count, default=1, metavar='N', help=text)
    text = 'create a topic with N partitions (1); may be repeated'
    add('--topic', type=_topic, action='append', default=[], metavar='NAME[:N]', help=text)
    text = (
        'store all data in this directory, and load it at the next start; without it all data is'
        ' in memory'
    )
    add('--data', type=text_of, metavar='DIR', help=text)
    text = 'flush to the disk before acknowledging, so that data survives a power failure'
    add('--fsync', action='store_true', help=text)
    broker_security.add_options(parser)
    return parser


def _command(parser: argparse.ArgumentParser, args: List[str]) -> BrokerCommand:
    found = vars(parser.parse_args(args))
    topics = dict(found.pop('topic'))
    security = {key: found.pop(key) for key in SecurityOptions._fields if key in found}
    security['super_users'] = tuple(security.get('super_users', ()))
    command = BrokerCommand(topics=topics, security=SecurityOptions(**security), **found)
    if command.fsync and not command.data:
        parser.error('--fsync needs --data')
    return command


def _port(value: str) -> int:
    return _number(value, 0, 65535)


def _count(value: str) -> int:
    return _number(value, 1, 2**31 - 1)


def _number(value: str, least: int, most: int) -> int:
    if not (value.isdecimal() and value.isascii() and least <= int(value) <= most):
        expected = 'expected a number from %d to %d' % (least, most)
        raise argparse.ArgumentTypeError('%s, got %r' % (expected, value))
    return int(value)


def _topic(value: str) -> Tuple[str, int]:
    name, colon, partitions = value.partition(':')
    if not name:
        raise argparse.ArgumentTypeError('expected NAME or NAME:PARTITIONS, got %r' % value)
    return name, _count(partitions) if colon else 1


def _fail(reason: str) -> int:
    sys.stderr.write('python -m kafka broker: %s\n' % reason)
    return 1


def _why(command: BrokerCommand, error: OSError) -> str:
    last = command.port + command.brokers - 1
    ports = '%d' % command.port if last == command.port else '%d to %d' % (command.port, last)
    reason = error.strerror or str(error)
    return 'cannot listen at %s, port %s: %s' % (command.host, ports, reason)


def _serve(command: BrokerCommand, cluster: Cluster) -> int:
    """Run until a signal comes, and return the exit status."""
    # Not an Event: its set() would deadlock if the signal interrupts its wait().
    held = threading.Lock()
    held.acquire()
    numbers: List[int] = []

    def stop(number: int, frame: Any) -> None:
        numbers.append(number)
        if len(numbers) == 1:
            held.release()

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        try:
            cluster.start()
            _say(_greeting(command, cluster))
            while not held.acquire(timeout=LOOK_SECONDS):
                pass
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
            cluster.state.control.failures.clear()  # they were logged when they came
            cluster.stop()
    except (CertificateError, StorageError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(_why(command, error))
    _say('Stopped.\n')
    return SIGNALLED + numbers[0]


def _greeting(command: BrokerCommand, cluster: Cluster) -> str:
    addresses = cluster.bootstrap.split(',')
    where = 'in %s' % command.data if command.data else 'in memory'
    count = '1 broker' if len(addresses) == 1 else '%d brokers' % len(addresses)
    topics = ', '.join(
        '%s (%d)' % (name, len(topic.partitions)) for name, topic in cluster.state.topics.items()
    )
    lines = [
        'Kafka %s in pure Python, everything %s: %s' % (cluster.state.release.name, where, count),
        *('  node %d  %s' % each for each in enumerate(addresses)),
        '  topics  %s' % (topics or 'none yet; created when first used'),
        *broker_security.greeting(cluster.security),
        'Clients start with: %s' % cluster.bootstrap,
        'Stop with Ctrl-C, or: kill %d' % os.getpid(),
    ]
    return '\n'.join(lines) + '\n'


def _say(text: str) -> None:
    """Print text; ignore a closed standard output."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        pass
