"""``python -m kafka broker``: run embedded brokers of ``kafka.testing`` in the foreground.

It parses the command line, prints the addresses, and ends at Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from kafka.cli import broker_security
from kafka.cli.broker_security import SecurityOptions
from kafka.cli.run import Usage
from kafka.testing import Cluster
from kafka.testing.cluster import HOST
from kafka.testing.logs.segments import StorageError
from kafka.testing.releases import NEWEST
from kafka.testing.security.tls import CertificateError

USAGE = f"""\
usage: python -m kafka broker [OPTIONS]

Run a small Kafka in pure Python until Ctrl-C.

--host HOST          the host to listen on and to advertise (127.0.0.1)
--port PORT          the port of the first broker, the others follow; 0 for free ports (9092)
--version VERSION    the release of Apache Kafka to behave as, from 0.8.0 on ({NEWEST})
--brokers N          the number of brokers (1)
--topic NAME[:N]     create a topic with N partitions (1); may be repeated
--data DIR           store all data in this directory, and load it at the next start; without it
                     all data is in memory
--fsync              flush to the disk before acknowledging, so that data survives a power failure
{broker_security.USAGE}-h, --help           show this
"""
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
    data: str = ''
    fsync: bool = False
    security: SecurityOptions = SecurityOptions()


def main(args: List[str]) -> int:
    """Run a command line.

    Returns: 128 plus the number of the signal that ended it; 1 on failure, 2 for an invalid command
    line.
    """
    if '-h' in args or '--help' in args:
        sys.stdout.write(USAGE)
        return 0
    try:
        command = parse(args)
    except Usage as error:
        sys.stderr.write('%s\npython -m kafka broker: %s\n' % (USAGE, error))
        return 2
    try:
        cluster = Cluster(
            command.brokers,
            command.version,
            host=command.host,
            port=command.port,
            topics=command.topics,
            data=command.data or None,
            fsync=command.fsync,
            **command.security.arguments(os.environ),
        )
    except (Usage, ValueError) as error:
        sys.stderr.write('%s\npython -m kafka broker: %s\n' % (USAGE, error))
        return 2
    return _serve(command, cluster)


def parse(args: List[str]) -> BrokerCommand:
    """Parse a command line.

    Raises: Usage for an unknown option or an invalid value.
    """
    rest = list(args)
    values: Dict[str, Any] = {}
    topics: Dict[str, int] = {}
    super_users: List[str] = []
    while rest:
        option, equals, value = rest.pop(0).partition('=')
        if option in FLAGS and not equals:
            values[FLAGS[option]] = True
            continue
        read = READ.get(option)
        if read is None and option not in ('--topic', '--super-user'):
            raise Usage('unknown option %s' % option)
        if not equals:
            if not rest:
                raise Usage('%s needs a value' % option)
            value = rest.pop(0)
        if option == '--super-user':
            super_users.append(_text(option, value))
        elif read is None:
            name, partitions = _topic(value)
            topics[name] = partitions
        else:
            values[option.lstrip('-').replace('-', '_')] = read(option, value)
    told = {key: values.pop(key) for key in SecurityOptions._fields if key in values}
    security = SecurityOptions(super_users=tuple(super_users), **told)
    command = BrokerCommand(topics=topics, security=security, **values)
    if command.fsync and not command.data:
        raise Usage('--fsync needs --data')
    return command


def _text(option: str, value: str) -> str:
    if not value:
        raise Usage('%s needs a value' % option)
    return value


def _port(option: str, value: str) -> int:
    port = _number(option, value)
    if port > 65535:
        raise Usage('%s must be a number up to 65535, not %r' % (option, value))
    return port


def _count(option: str, value: str) -> int:
    count = _number(option, value)
    if count < 1:
        raise Usage('%s must be a number >= 1, not %r' % (option, value))
    return count


def _number(option: str, value: str) -> int:
    if not (value.isdecimal() and value.isascii()):
        raise Usage('%s must be a number, not %r' % (option, value))
    return int(value)


def _topic(value: str) -> Tuple[str, int]:
    name, colon, partitions = value.partition(':')
    if not name:
        raise Usage('--topic must be NAME or NAME:PARTITIONS, not %r' % value)
    return name, _count(
        'the number of partitions in --topic %s:' % name, partitions
    ) if colon else 1


#: The parser of each option's value.
READ: Dict[str, Callable[[str, str], Any]] = {
    '--host': _text,
    '--port': _port,
    '--version': _text,
    '--brokers': _count,
    '--data': _text,
    '--users': _text,
    '--mechanisms': _text,
    '--certificate': _text,
    '--key': _text,
    '--client-ca': _text,
}
#: Options without a value, and what they set.
FLAGS = {'--fsync': 'fsync', '--tls': 'is_tls'}


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
