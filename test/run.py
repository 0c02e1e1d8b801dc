"""Set up and run the tests, with nothing but Python 3.8 or later on the machine.

    python3 test/run.py                      what a change is checked by, within 15 minutes
    python3 test/run.py --all                all tests: more releases, seeds, chaos, all of Spark
    python3 test/run.py --rest               what --all has and the first line has not
    python3 test/run.py --no-brokers         without the tests on brokers, embedded or real
    python3 test/run.py --python 3.8         with that Python (repeatable; "all"; "others" than
                                             this one, or of them the "ends", the oldest and the
                                             newest: without the tests marked "once"; the last
                                             of these runs under -bb -W error -X dev)
    python3 test/run.py --spark 4.0          the tests with that PySpark alone (repeatable; "all")
    python3 test/run.py --lint               format, rules and types in place of the tests
    python3 test/run.py --docs               the documentation in place of the tests
    python3 test/run.py --all --write-seconds   and write down what takes long: test/dealing.py
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
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == '__main__':
    sys.path[0] = ROOT  # run as a script: find the package servers

from servers.releases import EMBEDDED, REAL, chosen, chosen_kind, java_problem  # noqa: E402  (the path)
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
FOLDER_ON_BROKERS, FOLDER_WITH_SPARK = 'test/integration', 'test/spark'
# The releases that the ordinary run has, the first and the newest message format; --all has those
# of releases.txt, on real or on embedded brokers.
ORDINARY = {REAL: ('0.8.2.2', '4.4.0'), EMBEDDED: ('4.3.1',)}
# Runs of pytest at a time, by what they keep busy: one without brokers keeps a core busy; those on
# brokers mostly wait; two jobs of Spark keep a core busy. Without any of the others there is a core
# for one more without brokers.
BUSY, ON_BROKERS, WITH_SPARK = 'busy', 'on brokers', 'with Spark'
AT_A_TIME = {BUSY: 1, ON_BROKERS: 4, WITH_SPARK: 2}
# Thorough tests start three brokers at a time, which depose each other for ever if they get too
# little of a processor; Spark then gives up a Python worker that has not connected within 10 s.
AT_A_TIME_THOROUGH = {BUSY: 1, ON_BROKERS: 2, WITH_SPARK: 1}
CORES = 2
# How long a run of pytest gets at most, in seconds of test/seconds.txt: files are dealt out by it.
# Each run collects its own files, and starts the brokers that they need.
MOST_SECONDS = {BUSY: 150.0, ON_BROKERS: 200.0, WITH_SPARK: 400.0}
# After so many seconds a run of pytest whose files were dealt out is ended: four times what the
# longest takes. pytest-timeout ends no run that hangs in its exit hooks, and no test that uses the
# timer of signals itself.
RUN_SECONDS = 2400.0
# The interpreter prints where its threads are when it is ended so, also before and after pytest.
STACKS = {'PYTHONFAULTHANDLER': '1'}
# So many tests of a step on brokers may fail and run again alone, once: a machine that stands still
# for half a minute is no defect of the project. What passes then the verdict shows as unsteady.
MAY_FAIL_ONCE = 3
# Options of pytest whose values may look like places.
WITH_VALUE = ('-k', '-m', '-p', '-W', '-o')
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
SPARK_SECONDS = 3000  # no test begins later than that


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
    """One run of pytest: what it is called, its arguments, and where its output goes.

    Arguments: files: what is collected, after `args`; keeps: BUSY, ON_BROKERS or WITH_SPARK; flags:
    the interpreter's.
    """

    started = itertools.count(1)

    def __init__(
        self, name, python, args, files=(), keeps=BUSY, may_repeat=False, flags=(), **environ
    ):
        self.name = name
        self.flags = flags
        self.shown = [python, *flags, '-m', 'pytest', *args]
        self.command = [*self.shown, *files]
        self.files = files
        self.is_bounded = bool(files)  # whoever names the tests may have patience
        self.keeps = keeps
        self.environ = environ
        self.may_repeat = may_repeat
        self.process = self.output = self.results = self.ends_at = None

    def again(self, tests):
        """Return a run of some tests of this one, by their ids."""
        python, args = self.command[0], [*tests, '-p', 'no:randomly']
        name = '%s, what failed once more' % self.name
        run = Pytest(name, python, args, flags=self.flags, **self.environ)
        run.is_bounded = True
        return run

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
            env={**os.environ, **BYTE_CODE, **STACKS, **self.environ},
        )
        if self.is_bounded:
            self.ends_at = time.monotonic() + RUN_SECONDS
        if to is not None:
            to.close()

    def say(self):
        """Print what it is."""
        say(self.name)
        files = ['(%d files)' % len(self.files)] if len(self.files) > 3 else self.files
        print('$ %s' % ' '.join([*self.shown, *files]), flush=True)

    def wait(self, meanwhile=lambda: None):
        """Wait for its end, with its output shown from now on, and return the exit code."""
        if self.output is not None:
            self.say()
        is_over = False
        while not is_over:
            is_over = not self.is_running()
            if self.output is not None:
                print(self.output.read().decode('utf-8', 'replace'), end='', flush=True)
            if not is_over and self.ends_at and time.monotonic() > self.ends_at:
                self.end()
            meanwhile()
            time.sleep(0 if is_over else 0.2)
        self.close()
        return self.process.wait()

    def end(self):
        """End it, which has run too long, with the stacks of its threads in the output."""
        print('\n%s: has not ended after %d s' % (self.name, RUN_SECONDS), flush=True)
        self.process.send_signal(signal.SIGABRT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_running(self):
        """Tell whether it has started and not ended."""
        return self.process.poll() is None

    def close(self):
        """Let go of the output."""
        if self.output is not None:
            self.output.close()
            os.remove(self.output.name)
            self.output = None


def may_start(run, others, busy_at_a_time, at_a_time=AT_A_TIME):
    """Return True if a run may begin.

    Arguments: others: what runs, and what waits to; busy_at_a_time: of those without brokers beside
    others, None: as many as keep the cores busy; at_a_time: of all.
    """
    running = [each for each in others if each.process is not None and each.is_running()]
    most = at_a_time[run.keeps]
    if run.keeps == BUSY:
        is_alone = all(each.keeps == BUSY for each in others)
        most = busy_at_a_time or (CORES if is_alone else most)
    return sum(each.keeps == run.keeps for each in running) < most


def run_side_by_side(runs, report, busy_at_a_time=None, at_a_time=AT_A_TIME):
    """Run pytest several times, some at a time, and report each name."""
    waiting, running, ended = list(runs), [], {}

    def start_some():
        for run in list(waiting):
            alive = [each for each in running if each.is_running()]
            if may_start(run, [*alive, *waiting], busy_at_a_time, at_a_time):
                waiting.remove(run)
                run.start(in_sight=not running)
                running.append(run)

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
            code = run_again(parts, report)
        report.add(name, code, ' (%d tests)' % tests)


def run_again(parts, report):
    """Run the tests that failed again, if they may be and are few; return the exit code.

    Each as its own run did: what is selected there may not be elsewhere.
    """
    failed = [test for *_, tests in parts for test in tests]
    if not parts[0][0].may_repeat or not 0 < len(failed) <= MAY_FAIL_ONCE:
        return SOME_FAILED
    for run, *_, tests in parts:
        if tests:
            again = run.again(tests)
            again.start(in_sight=True)
            code = again.wait()
            number, *_ = read_results(again.results)
            if code or number < len(tests):
                return SOME_FAILED
    report.unsteady += failed
    return 0


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
    failed = {
        '%s.py::%s' % (case.get('classname').replace('.', '/'), case.get('name')): None
        for case in suite.iter('testcase')
        if case.find('failure') is not None or case.find('error') is not None
    }
    # Each once: a test that fails and whose fixtures then fail as well has two entries.
    return int(suite.get('tests')), skips, list(failed)


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


def wanted_releases(kind, kinds, options):
    """Return the releases to test on some kind of brokers, by name: none of them on both kinds.

    Returns: {name: marker expression}, as --rest has of some releases only what takes long.
    """
    asked = os.environ.get('KAFKA_VERSION')
    try:
        names = [each.name for each in chosen(asked or default_set(kind, kinds))]
    except ValueError as error:
        raise SetUpError('KAFKA_VERSION: %s' % error) from None
    every = 'integration'
    if asked or scope(options) == '':
        return dict.fromkeys(names, every + scope(options))
    ordinary = ORDINARY[kind] if REAL in kinds else [n for each in ORDINARY.values() for n in each]
    if options.rest:
        rest = '%s and thorough' % every
        return {name: rest if name in ordinary else every for name in names}
    return {name: '%s and not thorough' % every for name in names if name in ordinary}


def default_set(kind, kinds):
    """Return the set of releases.txt that is tested on some kind of brokers."""
    if kind == REAL:
        return 'default'
    return 'embedded' if REAL in kinds else 'table'


def usable_kinds(python, options, report):
    """Fetch what tests read and real brokers run; return which kinds of brokers can be used."""
    kinds = wanted_kinds(options)
    names = list(wanted_releases(REAL, kinds, options)) if REAL in kinds else []
    if not fetch(python, kinds, names, report):
        return [kind for kind in kinds if kind != REAL]
    return kinds


def fetch(python, kinds, names, report):
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
    if call(['bash', 'build_integration.sh', *names]):
        report.add('fetching releases of Apache Kafka', 1)
        return False
    return True


# --- the three things that can be asked for -----------------------------------------------------


def test(options, report):
    """Run the tests: those without brokers with each interpreter, on brokers, and with Spark."""
    pythons = {version: environment(version, TESTS) for version in wanted_versions(options, report)}
    if not pythons:
        return
    kinds = usable_kinds(next(iter(pythons.values())), options, report)
    runs = runs_on_brokers(pythons, kinds, options)
    if not is_second(options):
        runs += runs_with_spark(list(pythons), options, report)
    runs += runs_without(pythons, options)
    is_thorough = options.all or options.rest
    at_a_time = AT_A_TIME_THOROUGH if is_thorough else AT_A_TIME
    run_side_by_side(runs, report, options.at_a_time, at_a_time)


def runs_without(pythons, options):
    """Return the runs of the tests without brokers, which are here all but those marked."""
    which = 'not integration and not spark' + scope(options)
    # Other Pythons leave out what would only say the same again.
    which += ' and not once' if is_second(options) else ''
    flags = dict.fromkeys(pythons, ())
    if is_second(options):
        flags[list(pythons)[-1]] = STRICT
    found = dealing.test_files('test', but=[FOLDER_ON_BROKERS])
    found += dealing.with_units(dealing.test_files(FOLDER_ON_BROKERS))
    return [
        Pytest(
            ' '.join(['tests without brokers, Python %s' % version, *flags[version]]),
            python,
            ['-m', which, *options.pytest],
            files,
            BUSY,
            flags=flags[version],
        )
        for version, python in pythons.items()
        for files in dealt(found, dealing.WITHOUT, BUSY, options)
    ]


def scope(options):
    """Return what is added to the expression of markers by how much is asked for.

    Of a place that the user has named nothing is left out.
    """
    if options.rest:
        return ' and thorough'
    return '' if options.all or places_in(options.pytest) else ' and not thorough'


def dealt(files, kind, keeps, options, release='', which=''):
    """Return lists of files, each for one run; an empty one where the user has named a place.

    Arguments: which: an expression of markers beside that of the scope.
    """
    if places_in(options.pytest):
        return [[]]
    which = which or scope(options)
    kinds = [kind, kind + dealing.THOROUGH]
    if 'and thorough' in which:
        files, kinds = dealing.marked(files, 'thorough'), kinds[1:]
    elif 'and not thorough' in which:
        kinds = kinds[:1]
    if not files:
        return []
    return dealing.deal(files, kinds, MOST_SECONDS[keeps], dealing.read(), release)


def runs_on_brokers(pythons, kinds, options):
    """Return the runs of the tests on some kinds of brokers, the longest first.

    Each is on one release. The last release, which is in each run, has the tests of no release.
    """
    found = dealing.test_files(FOLDER_ON_BROKERS)
    runs = []
    for kind in [each for each in (REAL, EMBEDDED) if each in kinds]:
        wanted = wanted_releases(kind, kinds, options)
        newest = list(wanted)[-1]
        for (version, python), (release, which) in itertools.product(
            pythons.items(), reversed(list(wanted.items()))
        ):
            runs += [
                Pytest(
                    'tests on %s brokers, Python %s' % (kind, version),
                    python,
                    ['-m', which, *options.pytest],
                    files,
                    ON_BROKERS,
                    may_repeat=True,
                    KAFKA_BROKER=kind,
                    KAFKA_VERSION=os.environ.get('KAFKA_VERSION') or default_set(kind, kinds),
                    KAFKA_TEST_RELEASES=release + (',' if release == newest else ''),
                )
                for files in dealt(found, kind, ON_BROKERS, options, release, which)
            ]
    return runs


def runs_with_spark(versions, options, report, spark=NEWEST_SPARK):
    """Return the runs of the tests with a PySpark on one of the versions; none reports why."""
    release, oldest = SPARKS[spark]
    name = 'the tests with Spark %s' % release
    if options.no_brokers:
        report.left_out.append('%s (--no-brokers)' % name)
        return []
    if places_in(options.pytest) and not any(FOLDER_WITH_SPARK in each for each in options.pytest):
        report.left_out.append('%s (not in %s)' % (name, ' '.join(places_in(options.pytest))))
        return []
    version, lacking = version_for_spark(versions, oldest), java_problem()
    if version is None:
        lacking = 'Python %d.%d or later is needed' % oldest
    if lacking:
        report.missing.append('%s: %s' % (name, lacking))
        return []
    which = 'spark' + scope(options)
    args = ['-m', which, '--session-timeout', str(SPARK_SECONDS), *options.pytest]
    python = spark_environment(version, spark)
    name = 'tests with Spark %s, Python %s' % (release, version)
    found = dealing.marked(dealing.test_files(FOLDER_WITH_SPARK), 'spark')
    return [
        Pytest(name, python, args, files, WITH_SPARK, may_repeat=True)
        for files in dealt(found, dealing.SPARK, WITH_SPARK, options)
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
        run_side_by_side(runs_with_spark(versions, options, report, spark), report)


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


def places_in(args):
    """Return those of the arguments of pytest that name files or folders, or tests in them."""
    return [
        word
        for before, word in zip(['', *args], args)
        if before not in WITH_VALUE and os.path.exists(os.path.join(ROOT, word.partition('::')[0]))
    ]


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
        help='how many runs of tests without brokers at a time (default: 1 beside others, else 2)',
    )
    more = parser.add_mutually_exclusive_group()
    more.add_argument('--all', action='store_true', help='all tests: the ordinary and the rest')
    more.add_argument('--rest', action='store_true', help='what --all has and the ordinary run not')
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
    if options.write_seconds and (after or not options.all):
        parser.error('--write-seconds needs --all, and nothing behind --')
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
