"""A program of 2015 writes and reads messages on a Kafka: the first thing to try.

    python3 servers/run.py                          on an embedded Kafka, in pure Python
    python3 servers/run.py --embedded 0.8.2         as that release; "all": as each there is
    python3 servers/run.py --real                   on a real Apache Kafka, 4.4.0
    python3 servers/run.py --real 0.8.0             on that release of servers/releases.txt; "all"
                                                    (--release 0.8.0 and --all say the same)
    python3 servers/run.py --bootstrap HOST:PORT    on the brokers that are there

Needs Python 3.8 or later, and installs nothing; --real needs Java 17 and Maven too, which fetch
Apache Kafka. Starts brokers on 127.0.0.1, runs examples/simple_0_9_5.py against them, unchanged,
and stops them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # run as a script: find the packages servers and test

from kafka.testing.releases import NEWEST, RELEASES, broker_release  # noqa: E402  (after the path)
from servers.cluster import Cluster, ClusterError, stop_on_signals  # noqa: E402
from servers.releases import Release, chosen, java_problem, problem  # noqa: E402
from test.environments import SetUpError, call, say  # noqa: E402

NEWEST_REAL = '4.4.0'
ALL = 'all'
PROGRAM = os.path.join('examples', 'simple_0_9_5.py')
TOPIC = 'greetings'
PROGRAM_SECONDS = 120
REACHED_AT = 'Clients start with: '  # what `python -m kafka broker` says
# The program finds the package as if it were installed.
ENVIRONMENT = {**os.environ, 'PYTHONPATH': str(ROOT)}


class Kafka(NamedTuple):
    """What the program runs on: its name, and where it is reached."""

    name: str
    bootstrap: str


def fetch(releases: Sequence[Release]) -> None:
    """Fetch the jars of the releases with Maven, as far as they are not there."""
    reason = java_problem()
    if reason:
        raise SetUpError('%s. Debian, Ubuntu: apt-get install openjdk-17-jdk-headless' % reason)
    wanted = [release.name for release in releases if problem(release)]
    if wanted:
        for program in ('mvn', 'bash'):
            if shutil.which(program) is None:
                raise SetUpError(
                    '%s is missing: it fetches Apache Kafka. Debian, Ubuntu: apt-get install %s'
                    % (program, {'mvn': 'maven'}.get(program, program))
                )
        say('fetching Apache Kafka %s' % ', '.join(wanted))
        if call(['bash', 'build_integration.sh', *wanted]):
            raise SetUpError('Apache Kafka could not be fetched (see above)')


def show_command(words: Sequence[str]) -> List[str]:
    """Print a command of this Python as one would type it, and return it as it is run."""
    print('$ PYTHONPATH=. python3 %s' % ' '.join(words), flush=True)
    return [sys.executable, *words]


@contextlib.contextmanager
def embedded(version: str) -> Iterator[Kafka]:
    """Run an embedded broker as that release. SetUpError when it does not start."""
    say('an embedded Kafka %s starts' % version)
    broker = subprocess.Popen(
        show_command(['-m', 'kafka', 'broker', '--version', version, '--port', '0']),
        cwd=str(ROOT),
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert broker.stdout is not None
    try:
        for line in broker.stdout:
            text = line.decode(errors='replace').rstrip()
            print(text, flush=True)
            if text.startswith(REACHED_AT):
                yield Kafka('an embedded Kafka %s' % version, text[len(REACHED_AT) :])
                return
        raise SetUpError('the embedded broker did not start (see above)')
    finally:
        broker.terminate()
        broker.wait()
        broker.stdout.close()


@contextlib.contextmanager
def real(release: Release) -> Iterator[Kafka]:
    """Run a broker of Apache Kafka. ClusterError when it does not start."""
    say('Apache Kafka %s starts' % release.name)
    with Cluster(release) as cluster:
        print('It listens at %s' % cluster.bootstrap, flush=True)
        yield Kafka('Apache Kafka %s' % release.name, cluster.bootstrap)


def show(kafka: Kafka) -> str:
    """Run the program; return on what. SetUpError when it did not read what it wrote."""
    say('a program of 2015 writes and reads, through %s' % kafka.name)
    try:
        done = subprocess.run(
            show_command([PROGRAM, kafka.bootstrap, TOPIC]),
            cwd=str(ROOT),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=PROGRAM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetUpError('the program did not end within %d s' % PROGRAM_SECONDS) from None
    text = done.stdout.decode(errors='replace')
    print(text, end='', flush=True)
    wrote, read = (told(text, verb) for verb in ('wrote ', 'read '))
    # The topic of a broker that was there may hold more.
    if done.returncode or not wrote or wrote - read:
        raise SetUpError('on %s the program did not read what it wrote' % kafka.name)
    return kafka.name


def told(text: str, verb: str) -> Counter[str]:
    """Return what follows a verb in the lines that begin with it."""
    return Counter(line[len(verb) :] for line in text.splitlines() if line.startswith(verb))


def embedded_versions(word: str) -> List[str]:
    """Return the releases that an embedded broker is to be. ValueError where it cannot."""
    if word == ALL:
        return list(RELEASES)
    broker_release(word)
    return [word]


def run_all(options: argparse.Namespace) -> List[str]:
    """Run the program on what was asked for; return the names of that."""
    if options.bootstrap is not None:
        return [show(Kafka(options.bootstrap, options.bootstrap))]
    names = []
    if options.real is not None:
        releases = chosen('table' if options.real == ALL else options.real)
        fetch(releases)
        for release in releases:
            with real(release) as kafka:
                names.append(show(kafka))
    else:
        for version in embedded_versions(options.embedded):
            with embedded(version) as kafka:
                names.append(show(kafka))
    return names


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        '--embedded',
        nargs='?',
        default=NEWEST,
        const=NEWEST,
        metavar='VERSION',
        help='the default; %s, or all' % NEWEST,
    )
    which.add_argument(
        '--real', nargs='?', const=NEWEST_REAL, metavar='RELEASE', help='%s, or all' % NEWEST_REAL
    )
    which.add_argument('--release', dest='real', help='the same as --real RELEASE')
    which.add_argument(
        '--all', dest='real', action='store_const', const=ALL, help='the same as --real all'
    )
    which.add_argument('--bootstrap', help='brokers that run already, host:port')
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Do what is asked for and return the exit code; the last line says how it went."""
    options = parse(arguments)
    stop_on_signals()
    try:
        names = run_all(options)
    except (SetUpError, ClusterError, ValueError) as error:
        print('NOT DONE: %s' % error, flush=True)
        return 1
    except KeyboardInterrupt:
        print('NOT DONE: interrupted', flush=True)
        return 130
    print('\ndone: a program of 2015 wrote messages and read them, on %s.' % ', '.join(names))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
