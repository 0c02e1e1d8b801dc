"""A program of 2015 writes and reads messages on a Kafka: the first thing to try.

    python3 servers/run.py                          on a real Apache Kafka, 4.4.0
    python3 servers/run.py --release 0.8.0          on that release of servers/releases.txt
    python3 servers/run.py --all                    on one release after the other, oldest first
    python3 servers/run.py --embedded               on an embedded Kafka, in pure Python
    python3 servers/run.py --embedded 0.8.2         as that release; "all": as each there is
    python3 servers/run.py --bootstrap HOST:PORT    on the brokers that are there

Needs Python 3.8 or later; real brokers need Java 17 and Maven too. Makes the virtual environment
.venv and installs the package there, starts brokers on 127.0.0.1 (those of Apache Kafka are fetched
first), runs examples/simple_0_9_5.py against them, unchanged, and stops them. Uses the standard
library alone, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # run as a script: find the packages servers and test

from servers.cluster import Cluster, ClusterError, stop_on_signals  # noqa: E402  (after the path)
from servers.releases import chosen, java_problem, problem  # noqa: E402
from test.run import SetUpError, call, environment, say  # noqa: E402

NEWEST = '4.4.0'
PROGRAM = ROOT / 'examples' / 'simple_0_9_5.py'
PROGRAM_SECONDS = 120
REACHED_AT = 'Clients start with: '  # what `python -m kafka broker` says
# Only what is installed knows this.
ASK_VERSIONS = 'from kafka.testing.releases import RELEASES; print(*RELEASES)'


class Kafka(NamedTuple):
    """What the program runs on: its name, and where it is reached."""

    name: str
    bootstrap: str


def fetch(releases) -> None:
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


@contextlib.contextmanager
def embedded(python, *options: str) -> Iterator[Kafka]:
    """Run an embedded broker. SetUpError when it does not start."""
    say('starting an embedded Kafka')
    command = [str(python), '-m', 'kafka', 'broker', '--port', '0', *options]
    print('$ %s' % ' '.join(command), flush=True)
    broker = subprocess.Popen(
        command, cwd=str(ROOT), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert broker.stdout is not None
    try:
        for line in broker.stdout:
            text = line.decode(errors='replace').rstrip()
            print(text, flush=True)
            if text.startswith(REACHED_AT):
                yield Kafka(' '.join(['an embedded Kafka', *options[1:]]), text[len(REACHED_AT) :])
                return
        raise SetUpError('the embedded broker did not start (see above)')
    finally:
        broker.terminate()
        broker.wait()
        broker.stdout.close()


@contextlib.contextmanager
def real(release) -> Iterator[Kafka]:
    """Run a broker of Apache Kafka. ClusterError when it does not start."""
    say('starting Apache Kafka %s' % release.name)
    with Cluster(release) as cluster:
        yield Kafka('Apache Kafka %s' % release.name, cluster.bootstrap)


def show(python, kafka: Kafka) -> str:
    """Run the program; return on what. SetUpError when it did not read what it wrote."""
    command = [str(python), str(PROGRAM), kafka.bootstrap, 'greetings']
    print('$ %s' % ' '.join(command), flush=True)
    try:
        done = subprocess.run(
            command,
            cwd=str(ROOT),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=PROGRAM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetUpError('the program did not end within %d s' % PROGRAM_SECONDS) from None
    text = done.stdout.decode(errors='replace')
    print(text, end='', flush=True)
    lines = text.splitlines()
    wrote = sorted(line[len('wrote ') :] for line in lines if line.startswith('wrote '))
    read = sorted(line[len('read ') :] for line in lines if line.startswith('read '))
    if done.returncode or not wrote or wrote != read:
        raise SetUpError('on %s the program did not read what it wrote' % kafka.name)
    return kafka.name


def versions(python, options) -> List[List[str]]:
    """Return the options of each embedded broker that was asked for."""
    if options.embedded == 'all':
        said = subprocess.check_output([str(python), '-c', ASK_VERSIONS], cwd=str(ROOT))
        return [['--version', version] for version in said.decode().split()]
    return [['--version', options.embedded] if options.embedded else []]


def run_all(options) -> List[str]:
    """Run the program on what was asked for; return the names of that."""
    releases = []
    if options.embedded is None and options.bootstrap is None:
        releases = chosen('table' if options.all else options.release)
        fetch(releases)
    python = environment('%d.%d' % sys.version_info[:2], ['-e', '.[all]'])
    if options.bootstrap is not None:
        return [show(python, Kafka(options.bootstrap, options.bootstrap))]
    names = []
    for release in releases:
        with real(release) as kafka:
            names.append(show(python, kafka))
    for wanted in [] if releases else versions(python, options):
        with embedded(python, *wanted) as kafka:
            names.append(show(python, kafka))
    return names


def main(arguments) -> int:
    """Do what is asked for and return the exit code; the last line says how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument('--release', default=NEWEST, help='default: %s' % NEWEST)
    which.add_argument('--all', action='store_true', help='every release of the releases table')
    which.add_argument(
        '--embedded', nargs='?', const='', metavar='VERSION', help='in pure Python; or "all"'
    )
    which.add_argument('--bootstrap', help='brokers that run already, host:port')
    options = parser.parse_args(arguments)
    stop_on_signals()
    try:
        names = run_all(options)
    except (SetUpError, ClusterError, ValueError) as error:
        print('NOT DONE: %s' % error, flush=True)
        return 1
    except KeyboardInterrupt:
        print('NOT DONE: interrupted', flush=True)
        return 130
    print('done: a program of 2015 wrote and read messages on %s.' % ', '.join(names))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
