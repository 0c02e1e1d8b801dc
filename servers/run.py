"""A program of 2015 writes and reads messages on a real Apache Kafka: the first thing to try.

    python3 servers/run.py                    on 4.4.0
    python3 servers/run.py --release 0.8.0    on that release of servers/releases.txt
    python3 servers/run.py --all              on one release after the other, oldest first

Needs Python 3.8 or later, and for the brokers Java 17 and Maven. Makes the virtual environment
.venv and installs the package there, fetches the release, starts a broker on 127.0.0.1, runs
examples/simple_0_9_5.py against it, unchanged, and stops the broker. Uses the standard library
alone, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # run as a script: find the packages servers and test

from servers.cluster import Cluster, ClusterError, stop_on_signals  # noqa: E402  (after the path)
from servers.releases import chosen, java_problem, problem  # noqa: E402
from test.run import SetUpError, call, environment, say  # noqa: E402

NEWEST = '4.4.0'
PROGRAM = ROOT / 'examples' / 'simple_0_9_5.py'
PROGRAM_SECONDS = 120


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


def show(python, release) -> None:
    """Run the program on a fresh broker. SetUpError when it did not read what it wrote."""
    say('starting Apache Kafka %s' % release.name)
    with Cluster(release) as cluster:
        command = [str(python), str(PROGRAM), cluster.bootstrap, 'greetings']
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
        raise SetUpError('on Apache Kafka %s the program did not read what it wrote' % release.name)


def main(arguments) -> int:
    """Do what is asked for and return the exit code; the last line says how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument('--release', default=NEWEST, help='default: %s' % NEWEST)
    which.add_argument('--all', action='store_true', help='every release of the releases table')
    options = parser.parse_args(arguments)
    stop_on_signals()
    try:
        releases = chosen('table' if options.all else options.release)
        fetch(releases)
        python = environment('%d.%d' % sys.version_info[:2], ['-e', '.[all]'])
        for release in releases:
            show(python, release)
    except (SetUpError, ClusterError, ValueError) as error:
        print('NOT DONE: %s' % error, flush=True)
        return 1
    except KeyboardInterrupt:
        print('NOT DONE: interrupted', flush=True)
        return 130
    print(
        'done: a program of 2015 wrote and read messages on Apache Kafka %s.'
        % (', '.join(release.name for release in releases))
    )
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
