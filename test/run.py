"""Set up and run the tests, with nothing but Python 3.8 or later on the machine.

    python3 test/run.py                      everything that can run here
    python3 test/run.py --no-brokers         without the tests on brokers, embedded or real
    python3 test/run.py --python 3.8         with that Python (repeatable; "all"; "others" than
                                             this one, or of them the "ends", the oldest and the
                                             newest: without the tests marked "once"; the last
                                             of these runs under -bb -W error -X dev)
    python3 test/run.py --spark 4.0          the tests with that PySpark alone (repeatable; "all")
    python3 test/run.py --lint               format, rules and types in place of the tests
    python3 test/run.py --docs               the documentation in place of the tests
    python3 test/run.py --write-seconds      and write down what takes long: test/dealing.py
    python3 test/run.py -- -k codec -x       what follows -- goes to pytest
    KAFKA_VERSION=4.4.0 python3 test/run.py  on that release in place of the default set
    KAFKA_BROKER=embedded ...                on embedded brokers only; real: on real ones only

Owns the order of the steps and the verdict. Virtual environments are environments.py's, what the
tests are is pytest's business, which releases of Apache Kafka there are build_integration.sh's.
Uses the standard library alone, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == '__main__':
    sys.path[0] = ROOT  # run as a script: find the package servers

from servers.releases import EMBEDDED, REAL, chosen_kind, java_problem  # noqa: E402  (the path)
from test import dealing  # noqa: E402  (the path)
from test.environments import (  # noqa: E402
    SetUpError,
    call,
    environment,
    find_interpreter,
    say,
)

OLDEST, NEWEST, LINT_OLDEST = (3, 8), (3, 13), (3, 10)
SUPPORTED = ['3.%d' % minor for minor in range(OLDEST[1], NEWEST[1] + 1)]
SOME_FAILED, NOTHING_SELECTED = 1, 5  # exit codes of pytest
INTEGRATION = os.path.join('test', 'integration')
AT_A_TIME = 2  # runs of pytest; tests on brokers mostly wait
# In how many parts the tests run on brokers, in their order, and how many are at work at a time:
# beside four with real brokers, which mostly wait, a core is idle for one of the others.
PARTS = {REAL: 4, EMBEDDED: 3}
ON_BROKERS_AT_A_TIME = 5
# So many tests of a step on brokers may fail and run again alone, once: a machine that stands still
# for half a minute is no defect of the project. What passes then the verdict shows as unsteady.
MAY_FAIL_ONCE = 3
# And those without brokers: one part keeps one core busy.
PARTS_WITHOUT = 2
# Flags of the interpreter for the last of the other Pythons ("ends", "others"), so that all tests
# without brokers run under them once and no run is there for them alone. It is an error then to
# compare bytes with text or numbers, and so is each warning, as of files that were left open.
STRICT = ('-bb', '-W', 'error', '-X', 'dev')
# Byte code goes where all runs find it, even if the user wants none beside the sources: hundreds of
# programs that tests start import the package.
BYTE_CODE = {
    'PYTHONDONTWRITEBYTECODE': '',
    'PYTHONPYCACHEPREFIX': os.path.join(ROOT, '.cache', 'byte-code'),
}

TESTS = ['-r', 'test/requirements.txt', '-e', '.[all]']
LINT = [*TESTS, '-r', 'test/requirements-lint.txt']
DOCS = ['-r', 'docs/requirements.txt', '-e', '.[all]']
# PySpark is 400 MB, so its tests have an environment of their own, on a Python that it runs on.
SPARK = ['-r', 'test/requirements-spark.txt', '-e', '.[all,spark]']
# By the first two numbers of PySpark: the release, and the oldest Python that it runs on.
SPARKS = {
    '4.0': ('4.0.5', (3, 9)),
    '4.1': ('4.1.4', (3, 10)),
    '4.2': ('4.2.1', (3, 10)),
    '4.3': ('4.3.0', (3, 11)),
}
NEWEST_SPARK = '4.3'
SPARK_TESTS = os.path.join('test', 'spark')
SPARK_SECONDS = 3000  # no test begins later than that
SPARK_PARTS = 2  # one job at a time leaves a core idle


class Report:
    """What ran, what failed, and what did not run and why."""

    def __init__(self):
        self.started = time.monotonic()
        self.ran, self.failed, self.missing, self.left_out = [], [], [], []
        self.skipped = collections.Counter()
        self.unsteady = []
        self.seconds = []  # of each test, by its room

    def add(self, name, code, note=''):
        """Note the end of a step."""
        if code == NOTHING_SELECTED:
            self.missing.append('%s: none selected' % name)
        else:
            (self.failed if code else self.ran).append(name + note)

    def close(self):
        """Print the verdict and return the exit code of the whole."""
        print('\n=== %s, %d s' % (os.path.basename(sys.argv[0]), time.monotonic() - self.started))
        for name in self.ran:
            print('passed   %s' % name)
        for name in self.failed:
            print('FAILED   %s' % name)
        for name in self.missing + self.left_out:
            print('NOT RUN  %s' % name)
        for test in self.unsteady:
            print('UNSTEADY %s: failed, and passed when it ran again alone' % test)
        for reason, number in sorted(self.skipped.items()):
            print('skipped  %d: %s' % (number, reason))
        # Where nobody reads the last line, a gap is a failure.
        bad = self.failed or not self.ran or (self.missing and os.environ.get('CI'))
        gaps = self.missing + self.left_out
        gaps += ['%d skipped (above)' % n for n in [sum(self.skipped.values())] if n]
        gap = ' *** NOT RUN: %s ***' % '; '.join(gaps) if gaps else ''
        if self.unsteady:
            gap += ' *** UNSTEADY: %d (above) ***' % len(self.unsteady)
        print('%s.%s' % ('FAILED' if bad else 'passed', gap), flush=True)
        return 1 if bad else 0


class Pytest:
    """One run of pytest: what it is called, its arguments, and where its output goes."""

    started = itertools.count(1)

    def __init__(self, name, python, args, may_repeat=False, flags=(), **environ):
        self.name = name
        self.flags = flags  # the interpreter's
        self.command = [python, *flags, '-m', 'pytest', *args]
        self.environ = environ
        self.may_repeat = may_repeat
        self.process = self.output = self.results = None

    def again(self, tests):
        """Return a run of some tests of this one, by their ids, none left to other parts."""
        python, args = self.command[0], [*tests, '-p', 'no:randomly']
        environ = {**self.environ, 'KAFKA_TEST_PART': '1/1'}
        name = '%s, what failed once more' % self.name
        return Pytest(name, python, args, flags=self.flags, **environ)

    def start(self, in_sight):
        """Start it, with the output on ours or kept for wait()."""
        cache = os.path.join(ROOT, '.cache')
        os.makedirs(cache, exist_ok=True)
        name = '%d-%d' % (os.getpid(), next(self.started))  # another run.py may be at work
        self.results = os.path.join(cache, 'results-%s.xml' % name)
        to = None
        if in_sight:
            self.say()
        else:
            path = os.path.join(cache, 'output-%s.txt' % name)
            # Two openings: with one, reading here would move the place where pytest writes.
            to, self.output = open(path, 'wb'), open(path, 'rb')
        self.process = subprocess.Popen(
            [*self.command, '--junitxml', self.results],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=to and subprocess.STDOUT,
            env={**os.environ, **BYTE_CODE, **self.environ},
        )
        if to is not None:
            to.close()

    def say(self):
        """Print what it is."""
        say(self.name)
        print('$ %s' % ' '.join(self.command), flush=True)

    def wait(self, meanwhile=lambda: None):
        """Wait for its end, with its output shown from now on, and return the exit code."""
        if self.output is not None:
            self.say()
        is_over = False
        while not is_over:
            is_over = not self.is_running()
            if self.output is not None:
                print(self.output.read().decode('utf-8', 'replace'), end='', flush=True)
            meanwhile()
            time.sleep(0 if is_over else 0.2)
        self.close()
        return self.process.wait()

    def is_running(self):
        """Tell whether it has started and not ended."""
        return self.process.poll() is None

    def close(self):
        """Let go of the output."""
        if self.output is not None:
            self.output.close()
            os.remove(self.output.name)
            self.output = None


def run_side_by_side(runs, report, at_a_time=AT_A_TIME):
    """Run pytest several times, some at a time, and report each name: none fills two cores."""
    waiting, running, ended = collections.deque(runs), [], {}

    def start_some():
        while waiting and sum(run.is_running() for run in running) < at_a_time:
            waiting[0].start(in_sight=not running)
            running.append(waiting.popleft())

    try:
        start_some()
        while running:
            code = running[0].wait(meanwhile=start_some)
            run = running.pop(0)
            results = read_results(run.results, report.seconds)
            ended.setdefault(run.name, []).append((run, code, *results))
    finally:
        for run in running:  # what the user interrupted
            run.process.terminate()
            run.process.wait()
            run.close()
    for name, parts in ended.items():
        codes = [code for _, code, *_ in parts if code != NOTHING_SELECTED]
        for *_, skips, _ in parts:
            report.skipped.update(skips)
        tests = sum(number - sum(skips.values()) for _, _, number, skips, _ in parts)
        code = max(codes, key=abs) if codes else NOTHING_SELECTED
        if code == SOME_FAILED:
            code = run_again(name, parts, report)
        report.add(name, code, ' (%d tests)' % tests)


def run_again(name, parts, report):
    """Run the tests that failed again, if they may be and are few; return the exit code."""
    failed = [test for *_, tests in parts for test in tests]
    first = parts[0][0]
    if not first.may_repeat or not 0 < len(failed) <= MAY_FAIL_ONCE:
        return SOME_FAILED
    again = first.again(failed)
    again.start(in_sight=True)
    code = again.wait()
    os.path.exists(again.results) and os.remove(again.results)
    if not code:
        report.unsteady += failed
    return code


def read_results(path, seconds=None):
    """Return how many tests there were, by reason how many were skipped, and which failed.

    How long each took is added to `seconds`.
    """
    if not os.path.exists(path):  # pytest did not come so far
        return 0, collections.Counter(), []
    suite = next(xml.etree.ElementTree.parse(path).iter('testsuite'))
    os.remove(path)
    if seconds is not None:
        seconds += dealing.measured_in(suite)
    skips = collections.Counter(
        skip.get('message') for skip in suite.iter('skipped') if skip.get('type') == 'pytest.skip'
    )
    failed = [
        '%s.py::%s' % (case.get('classname').replace('.', '/'), case.get('name'))
        for case in suite.iter('testcase')
        if case.find('failure') is not None or case.find('error') is not None
    ]
    return int(suite.get('tests')), skips, failed


# --- brokers ------------------------------------------------------------------------------------


def missing_for_brokers():
    """Return what this machine lacks for real brokers, one text each."""
    lacking = []
    java = java_problem()
    if java:
        lacking.append('%s (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless)' % java)
    if not shutil.which('mvn'):
        lacking.append('Maven is missing (Debian, Ubuntu: apt-get install maven)')
    if not shutil.which('bash'):
        lacking.append('bash is missing')
    return lacking


def wanted_kinds(options):
    """Return which kinds of brokers are to be tested on: both unless one is asked for."""
    if options.no_brokers:
        return []
    try:
        return [chosen_kind()] if os.environ.get('KAFKA_BROKER') else [EMBEDDED, REAL]
    except ValueError as error:
        raise SetUpError('KAFKA_BROKER: %s' % error) from None


def wanted_releases(kind, kinds):
    """Return on which set of releases to test, of releases.txt: no release on both kinds."""
    if kind == REAL:
        return 'default'
    return 'embedded' if REAL in kinds else 'table'


def usable_kinds(python, options, report):
    """Fetch what tests read and real brokers run; return which kinds of brokers can be used."""
    kinds = wanted_kinds(options)
    if not fetch(python, kinds, report):
        return [kind for kind in kinds if kind != REAL]
    return kinds


def fetch(python, kinds, report):
    """Fetch what tests read and brokers run; return whether real brokers can be used."""
    lacking = missing_for_brokers()
    if not lacking:
        say('fetching the message descriptions of Apache Kafka')
        if call([python, '-m', 'test.protocol.upstream']):
            report.add('fetching the message descriptions', 1)
    if REAL not in kinds:
        why = 'KAFKA_BROKER' if kinds else '--no-brokers'
        report.left_out.append('the tests on real brokers (%s)' % why)
        return False
    if lacking:
        report.missing.append('the tests on real brokers: %s' % ', '.join(lacking))
        return False
    say('fetching releases of Apache Kafka')
    if call(['bash', 'build_integration.sh']):
        report.add('fetching releases of Apache Kafka', 1)
        return False
    return True


# --- the three things that can be asked for -----------------------------------------------------


def test(options, report):
    """Run the unit tests with each interpreter, then the tests on brokers, then those of Spark."""
    pythons = {version: environment(version, TESTS) for version in wanted_versions(options, report)}
    if not pythons:
        return
    kinds = usable_kinds(next(iter(pythons.values())), options, report)
    # Other Pythons leave out what would only say the same again.
    which = 'not integration and not spark'
    which += ' and not once' if is_second(options) else ''
    parts = PARTS_WITHOUT if len(pythons) == 1 else 1
    flags = dict.fromkeys(pythons, ())
    if is_second(options):
        flags[list(pythons)[-1]] = STRICT
    without = [
        Pytest(
            ' '.join(['tests without brokers, Python %s' % version, *flags[version]]),
            python,
            ['-m', which, *options.pytest],
            flags=flags[version],
            KAFKA_TEST_PART='%d/%d' % (part, parts),
        )
        for version, python in pythons.items()
        for part in range(1, parts + 1)
    ]
    run_side_by_side(without, report, options.at_a_time)
    on_brokers = runs_on_brokers(pythons, kinds, options)
    if not is_second(options):
        on_brokers += runs_with_spark(list(pythons), options, report)
    run_side_by_side(on_brokers, report, ON_BROKERS_AT_A_TIME)


def runs_on_brokers(pythons, kinds, options):
    """Return the runs of the tests on some kinds of brokers."""
    wanted = [kind for kind in PARTS if kind in kinds]
    return [
        Pytest(
            'tests on %s brokers, Python %s' % (kind, version),
            python,
            ['-m', 'integration', *with_place(options.pytest)],
            may_repeat=True,
            KAFKA_BROKER=kind,
            KAFKA_TEST_PART='%d/%d' % (part, PARTS[kind]),
            KAFKA_VERSION=os.environ.get('KAFKA_VERSION') or wanted_releases(kind, kinds),
        )
        for (version, python), kind in itertools.product(pythons.items(), wanted)
        for part in range(1, PARTS[kind] + 1)
    ]


def runs_with_spark(versions, options, report, spark=NEWEST_SPARK):
    """Return the runs of the tests with a PySpark on one of the versions; none reports why."""
    release, oldest = SPARKS[spark]
    name = 'the tests with Spark %s' % release
    if options.no_brokers:
        report.left_out.append('%s (--no-brokers)' % name)
        return []
    if places_in(options.pytest) and not any(SPARK_TESTS in each for each in options.pytest):
        report.left_out.append('%s (not in %s)' % (name, ' '.join(places_in(options.pytest))))
        return []
    version, lacking = version_for_spark(versions, oldest), java_problem()
    if version is None:
        lacking = 'Python %d.%d or later is needed' % oldest
    if lacking:
        report.missing.append('%s: %s' % (name, lacking))
        return []
    args = ['-m', 'spark', '--session-timeout', str(SPARK_SECONDS)]
    args += with_place(options.pytest, SPARK_TESTS)
    python = spark_environment(version, spark)
    name = 'tests with Spark %s, Python %s' % (release, version)
    return [
        Pytest(name, python, args, may_repeat=True, KAFKA_TEST_PART='%d/%d' % (part, SPARK_PARTS))
        for part in range(1, SPARK_PARTS + 1)
    ]


def test_sparks(options, report):
    """Run the tests with each PySpark that is asked for, and no others."""
    asked = sorted(SPARKS if 'all' in options.spark else set(options.spark))
    if options.python:
        versions = wanted_versions(options, report)
    else:
        versions = [each for each in SUPPORTED if find_interpreter(each)]
    able = version_for_spark(versions, SPARKS[asked[-1]][1])
    if able and not java_problem() and not options.no_brokers:
        usable_kinds(spark_environment(able, asked[-1]), options, report)
    for spark in asked:
        runs = runs_with_spark(versions, options, report, spark)
        run_side_by_side(runs, report, SPARK_PARTS)


def spark_environment(version, spark):
    """Return the python of the environment with a PySpark."""
    folder = '.venv-spark' if spark == NEWEST_SPARK else '.venv-spark-%s' % spark
    return environment(version, ['pyspark[connect]==%s' % SPARKS[spark][0], *SPARK], folder)


def version_for_spark(versions, oldest):
    """Return which of the versions to test a PySpark on: this Python, the newest, or None."""
    own = '%d.%d' % sys.version_info[:2]
    able = [each for each in SUPPORTED if each in versions and _numbers(each) >= oldest]
    return own if own in able else able[-1] if able else None


def _numbers(version):
    return tuple(map(int, version.split('.')))


def with_place(args, place=INTEGRATION):
    """Return the arguments of pytest with where tests on brokers are, unless they name a place.

    To collect the others takes half a minute.
    """
    return args if places_in(args) else [*args, place]


def places_in(args):
    """Return those of the arguments of pytest that name files or folders, or tests in them."""
    return [word for word in args if os.path.exists(os.path.join(ROOT, word.partition('::')[0]))]


def is_second(options):
    """Tell whether another run has had this Python, and what would only say the same again."""
    return 'others' in options.python or 'ends' in options.python


def wanted_versions(options, report):
    """Return the Python versions to test with: this one unless others are asked for."""
    own = '%d.%d' % sys.version_info[:2]
    every = 'all' in options.python or is_second(options)
    asked = SUPPORTED if every else options.python or [own]
    if 'ends' in options.python:
        asked = [SUPPORTED[0], SUPPORTED[-1]]
    versions = []
    for version in asked:
        if version == own and is_second(options):
            continue
        if find_interpreter(version) is None:
            # "all" are those that are there; a version asked for by name must be.
            gaps = report.left_out if every else report.missing
            gaps.append('Python %s (none on PATH or in pyenv)' % version)
        elif version not in versions:
            versions.append(version)
    return versions


def lint(options, report):
    """Check format, rules and types."""
    if sys.version_info < LINT_OLDEST:
        raise SetUpError('the type checker needs Python %d.%d or later' % LINT_OLDEST)
    python = sys.executable if options.here else environment('%d.%d' % sys.version_info[:2], LINT)
    for name, command in (
        ('format', ['ruff', 'format', '--check', '.']),
        ('rules', ['ruff', 'check', '.']),
        ('types', ['mypy']),
    ):
        say(name)
        report.add(name, call([python, '-m', *command]))


def docs(options, report):
    """Build the documentation, where every warning is an error."""
    python = sys.executable if options.here else environment('%d.%d' % sys.version_info[:2], DOCS)
    for name, command in (
        ('readme', ['docutils', '--halt=2', 'README.rst', os.devnull]),
        ('documentation', ['sphinx', '-E', '-W', '--keep-going', '-q', 'docs', 'docs/_build/html']),
    ):
        say(name)
        report.add(name, call([python, '-m', *command]))


def parse(arguments):
    """Return the options; what follows -- is pytest's."""
    before, after = arguments, []
    if '--' in arguments:
        cut = arguments.index('--')
        before, after = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--no-brokers', action='store_true', help='leave out tests on brokers')
    parser.add_argument(
        '--python',
        action='append',
        default=[],
        metavar='3.8',
        choices=[*SUPPORTED, 'all', 'others', 'ends'],
        help='test with this Python; "all": each one found; "others": those but this one;'
        ' "ends": of those the oldest and the newest',
    )
    parser.add_argument(
        '--at-a-time',
        type=int,
        choices=[1, 2, 3, 4],
        default=AT_A_TIME,
        help='how many runs of tests without brokers at a time (default %(default)s)',
    )
    parser.add_argument(
        '--spark',
        action='append',
        default=[],
        metavar=NEWEST_SPARK,
        choices=[*SPARKS, 'all'],
        help='the tests with this PySpark alone; "all": with each',
    )
    parser.add_argument(
        '--write-seconds',
        action='store_true',
        help='write to test/seconds.txt what takes long, by which tests are dealt out to the parts',
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument('--lint', action='store_true', help='format, rules, types; no tests')
    instead.add_argument('--docs', action='store_true', help='build the documentation; no tests')
    parser.add_argument(
        '--here', action='store_true', help='with --lint or --docs: use this Python as it is'
    )
    options = parser.parse_args(before)
    options.pytest = after
    if options.write_seconds and after:
        parser.error('--write-seconds is for whole steps: leave out what follows --')
    return options


def main(arguments):
    """Do what is asked for and return the exit code."""
    options = parse(arguments)
    if sys.version_info < OLDEST:
        print('Python %d.%d or later is needed, this is %s' % (*OLDEST, sys.version.split()[0]))
        return 2
    report = Report()
    try:
        chosen_test = test_sparks if options.spark else test
        (lint if options.lint else docs if options.docs else chosen_test)(options, report)
    except SetUpError as error:
        report.failed.append('set-up: %s' % error)
    if options.write_seconds:
        dealing.write(report.seconds)
    return report.close()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
