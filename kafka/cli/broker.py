"""``python -m kafka broker``: run embedded brokers in the foreground.

Owns the command line, what it says, and its end by Ctrl-C or SIGTERM. The brokers themselves are
``kafka.testing``'s.
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

--host HOST          where it listens, and what it calls itself (127.0.0.1)
--port PORT          of the first broker, the others follow; 0 takes free ones (9092)
--version VERSION    the release of Apache Kafka that it is, from 0.8.0 on ({NEWEST})
--brokers N          how many (1)
--topic NAME[:N]     create a topic with N partitions (1); may be repeated
--data DIR           keep everything there, and find it again at the next start; without it
                     everything is in memory
--fsync              have on the disk what is acknowledged: it survives a power cut too
{broker_security.USAGE}-h, --help           show this
"""
PORT = 9092
#: How often it is looked whether to stop: waiting for ever could not be interrupted everywhere.
LOOK_SECONDS = 0.5
SIGNALLED = 128  # what a shell adds to the number of a signal


class BrokerCommand(NamedTuple):
    """A command line taken apart."""

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

    Returns: 128 and the number of the signal that ended it; 1 if it cannot be done, 2 for a command
    line that is none.
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
    """Take a command line apart.

    Raises: Usage for an option or value that there is not.
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
            raise Usage('there is no option %s' % option)
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
        raise Usage('--fsync is for what is kept in --data')
    return command


def _text(option: str, value: str) -> str:
    if not value:
        raise Usage('%s needs a value' % option)
    return value


def _port(option: str, value: str) -> int:
    port = _number(option, value)
    if port > 65535:
        raise Usage('%s is a number up to 65535, not %r' % (option, value))
    return port


def _count(option: str, value: str) -> int:
    count = _number(option, value)
    if count < 1:
        raise Usage('%s is a number from 1 on, not %r' % (option, value))
    return count


def _number(option: str, value: str) -> int:
    if not (value.isdecimal() and value.isascii()):
        raise Usage('%s is a number, not %r' % (option, value))
    return int(value)


def _topic(value: str) -> Tuple[str, int]:
    name, colon, partitions = value.partition(':')
    if not name:
        raise Usage('--topic is a name, or a name, a colon and a number, not %r' % value)
    return name, _count('the number behind --topic %s:' % name, partitions) if colon else 1


#: How the value of each option is read.
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
    # No Event: its set() would wait for ever where the signal comes in the middle of its wait().
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
    """Show text, unless nobody is there to read it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        pass
