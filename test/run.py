"""Set up and run the tests, with nothing but Python 3.8 or later on the machine.

    python3 test/run.py                      everything that can run here
    python3 test/run.py --no-brokers         without the tests on brokers, embedded or real
    python3 test/run.py --python 3.8         with that Python (repeatable; "all"; "others" than
                                             this one, or of them the "ends", the oldest and the
                                             newest: without the tests marked "once")
    python3 test/run.py --lint               format, rules and types in place of the tests
    python3 test/run.py --docs               the documentation in place of the tests
    python3 test/run.py -- -k codec -x       what follows -- goes to pytest
    KAFKA_VERSION=4.4.0 python3 test/run.py  on that release in place of the default set
    KAFKA_BROKER=embedded ...                on embedded brokers only; real: on real ones only

Owns the virtual environments (.venv, .venv-3.8, .venv-spark ...), the order of the steps and the
verdict. What the tests are is pytest's business, which releases of Apache Kafka there are
build_integration.sh's.
Uses the standard library alone, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import collections
import glob
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if __name__ == '__main__':
    sys.path[0] = ROOT  # run as a script: find the package servers

from servers.releases import EMBEDDED, REAL, chosen_kind, java_problem  # noqa: E402  (the path)

OLDEST, NEWEST, LINT_OLDEST = (3, 8), (3, 13), (3, 10)
SUPPORTED = ['3.%d' % minor for minor in range(OLDEST[1], NEWEST[1] + 1)]
SOME_FAILED, NOTHING_SELECTED = 1, 5  # exit codes of pytest
INTEGRATION = os.path.join('test', 'integration')
AT_A_TIME = 2  # runs of pytest; tests on brokers mostly wait
# In how many parts the tests run on brokers, all at a time: no JVM is busy beside embedded ones.
PARTS = {EMBEDDED: 4, REAL: 3}
# So many tests on real brokers may fail and run again alone, once: a machine that stands still for
# half a minute is no defect of the project. What passes then is shown as unsteady in the verdict.
MAY_FAIL_ONCE = 3
# And those without brokers: one part keeps one core busy.
PARTS_WITHOUT = 2
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
SPARK = ['-r', 'test/requirements-spark.txt', 'pyspark[connect]==4.3.0', '-e', '.[all,spark]']
SPARK_OLDEST, SPARK_TESTS = (3, 11), os.path.join('test', 'spark')
SPARK_SECONDS = 1800  # no test begins later than that
SPARK_PARTS = 2  # one job at a time leaves a core idle


class SetUpError(Exception):
    """Something that only the user can put right; the text says what."""


class Report:
    """What ran, what failed, and what did not run and why."""

    def __init__(self):
        self.started = time.monotonic()
        self.ran, self.failed, self.missing, self.left_out = [], [], [], []
        self.skipped = collections.Counter()
        self.unsteady = []

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
        print('%s.%s' % ('FAILED' if bad else 'passed', gap), flush=True)
        return 1 if bad else 0


# --- steps --------------------------------------------------------------------------------------


def say(text):
    """Print a heading at once, so that it stands above the output of what it starts."""
    print('\n=== %s' % text, flush=True)


def call(command, **more):
    """Run a command with its output on ours and return its exit code."""
    print('$ %s' % ' '.join(command), flush=True)
    return subprocess.call(command, cwd=ROOT, stdin=subprocess.DEVNULL, **more)


def version_of(python):
    """Return the version of an interpreter as '3.11', or None when it cannot be started."""
    program = 'import sys; print("%d.%d" % sys.version_info[:2])'
    try:
        shown = subprocess.run(
            [python, '-c', program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return shown.stdout.decode().strip()


def find_interpreter(version):
    """Return an interpreter of `version` ('3.8'): this one, one on PATH, or pyenv's newest."""
    pyenv = os.environ.get('PYENV_ROOT') or os.path.expanduser('~/.pyenv')
    installed = glob.glob(os.path.join(pyenv, 'versions', version + '.*', 'bin', 'python'))
    installed.sort(key=lambda path: [int(number) for number in re.findall(r'\d+', path)])
    for python in [sys.executable, shutil.which('python' + version), *reversed(installed)]:
        if python and version_of(python) == version:
            return python
    return None


def environment(version, wanted, name='.venv'):
    """Return the python of the environment for `version`, made or completed as needed."""
    own = version == '%d.%d' % sys.version_info[:2]
    # The first Python that comes gets the plain name; one that comes later does not take it away.
    first = own and version_of(_python_of(name)) in (None, version)
    name = name if first else '%s-%s' % (name, version)
    folder, python = os.path.join(ROOT, name), _python_of(name)
    if version_of(python) != version:
        say('making %s with Python %s' % (name, version))
        base = sys.executable if own else find_interpreter(version)
        if subprocess.call([base, '-c', 'import ensurepip'], stderr=subprocess.DEVNULL):
            raise SetUpError(
                'Python %s cannot make virtual environments: its module ensurepip is missing.'
                ' Install it (Debian, Ubuntu: apt-get install python%s-venv)' % (version, version)
            )
        if call([base, '-m', 'venv', '--clear', folder]):
            raise SetUpError('could not make %s (see above)' % name)
    stamp = os.path.join(folder, 'installed-%s' % _fingerprint(wanted))
    if not os.path.exists(stamp):
        say('installing the package and its tools into %s' % name)
        pip = [python, '-m', 'pip', '--disable-pip-version-check', '--no-input', 'install']
        if call(pip + wanted):
            raise SetUpError('pip could not install what is needed (see above)')
        open(stamp, 'w').close()
    return python


def _python_of(name):
    inside = ['Scripts', 'python.exe'] if os.name == 'nt' else ['bin', 'python']
    return os.path.join(ROOT, name, *inside)


def _fingerprint(wanted):
    """Return a name for a set of requirements: it changes with any file that they are read from."""
    digest = hashlib.sha256(' '.join(wanted).encode())
    for path in ['setup.py', *(word for word in wanted if word.endswith('.txt'))]:
        with open(os.path.join(ROOT, path), 'rb') as file:
            digest.update(file.read())
    return digest.hexdigest()[:12]


class Pytest:
    """One run of pytest: what it is called, its arguments, and where its output goes."""

    started = itertools.count(1)

    def __init__(self, name, python, args, may_repeat=False, **environ):
        self.name = name
        self.command = [python, '-m', 'pytest', *args]
        self.environ = environ
        self.may_repeat = may_repeat
        self.process = self.output = self.results = None

    def again(self, tests):
        """Return a run of some tests of this one, by their ids, none left to other parts."""
        python, args = self.command[0], [*tests, '-p', 'no:randomly']
        environ = {**self.environ, 'KAFKA_TEST_PART': '1/1'}
        return Pytest('%s, what failed once more' % self.name, python, args, **environ)

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

    def wait(self):
        """Wait for its end, with its output shown from now on, and return the exit code."""
        if self.output is None:
            return self.process.wait()
        self.say()
        is_over = False
        while not is_over:
            is_over = self.process.poll() is not None
            print(self.output.read().decode('utf-8', 'replace'), end='', flush=True)
            time.sleep(0 if is_over else 0.2)
        self.close()
        return self.process.wait()

    def close(self):
        """Let go of the output."""
        if self.output is not None:
            self.output.close()
            os.remove(self.output.name)
            self.output = None


def run_side_by_side(runs, report, at_a_time=AT_A_TIME):
    """Run pytest several times, some at a time, and report each name: none fills two cores."""
    waiting, running, ended = collections.deque(runs), [], {}
    try:
        while waiting or running:
            while waiting and len(running) < at_a_time:
                running.append(waiting.popleft())
                running[-1].start(in_sight=len(running) == 1)
            run = running[0]
            ended.setdefault(run.name, []).append((run, run.wait(), *read_results(run.results)))
            del running[0]
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


def read_results(path):
    """Return how many tests there were, by reason how many were skipped, and which failed."""
    if not os.path.exists(path):  # pytest did not come so far
        return 0, collections.Counter(), []
    suite = next(xml.etree.ElementTree.parse(path).iter('testsuite'))
    os.remove(path)
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
    without = [
        Pytest(
            'tests without brokers, Python %s' % version,
            python,
            ['-m', which, *options.pytest],
            KAFKA_TEST_PART='%d/%d' % (part, parts),
        )
        for version, python in pythons.items()
        for part in range(1, parts + 1)
    ]
    run_side_by_side(without, report, options.at_a_time)
    for (version, python), kind in itertools.product(pythons.items(), kinds):
        name, count = 'tests on %s brokers, Python %s' % (kind, version), PARTS[kind]
        parts = [
            Pytest(
                name,
                python,
                ['-m', 'integration', *with_place(options.pytest)],
                may_repeat=kind == REAL,
                KAFKA_BROKER=kind,
                KAFKA_TEST_PART='%d/%d' % (part, count),
                KAFKA_VERSION=os.environ.get('KAFKA_VERSION') or wanted_releases(kind, kinds),
            )
            for part in range(1, count + 1)
        ]
        run_side_by_side(parts, report, count)
    if not is_second(options):
        test_with_spark(list(pythons), options, report)


def test_with_spark(versions, options, report):
    """Run the tests with Spark on one of the versions, or report why they cannot run."""
    name = 'the tests with Spark'
    if options.no_brokers:
        report.left_out.append('%s (--no-brokers)' % name)
        return
    if places_in(options.pytest) and not any(SPARK_TESTS in each for each in options.pytest):
        report.left_out.append('%s (not in %s)' % (name, ' '.join(places_in(options.pytest))))
        return
    version, lacking = spark_version(versions), java_problem()
    if version is None:
        lacking = 'Python %d.%d or later is needed' % SPARK_OLDEST
    if lacking:
        report.missing.append('%s: %s' % (name, lacking))
        return
    args = ['-m', 'spark', '--session-timeout', str(SPARK_SECONDS)]
    args += with_place(options.pytest, SPARK_TESTS)
    python = environment(version, SPARK, '.venv-spark')
    name = 'tests with Spark, Python %s' % version
    parts = [
        Pytest(name, python, args, KAFKA_TEST_PART='%d/%d' % (part, SPARK_PARTS))
        for part in range(1, SPARK_PARTS + 1)
    ]
    run_side_by_side(parts, report, SPARK_PARTS)


def spark_version(versions):
    """Return which of the versions Spark is tested on: this Python's, else the newest, or None."""
    own = '%d.%d' % sys.version_info[:2]
    able = [each for each in SUPPORTED if each in versions and _numbers(each) >= SPARK_OLDEST]
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
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument('--lint', action='store_true', help='format, rules, types; no tests')
    instead.add_argument('--docs', action='store_true', help='build the documentation; no tests')
    parser.add_argument(
        '--here', action='store_true', help='with --lint or --docs: use this Python as it is'
    )
    options = parser.parse_args(before)
    options.pytest = after
    return options


def main(arguments):
    """Do what is asked for and return the exit code."""
    options = parse(arguments)
    if sys.version_info < OLDEST:
        print('Python %d.%d or later is needed, this is %s' % (*OLDEST, sys.version.split()[0]))
        return 2
    report = Report()
    try:
        (lint if options.lint else docs if options.docs else test)(options, report)
    except SetUpError as error:
        report.failed.append('set-up: %s' % error)
    return report.close()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
