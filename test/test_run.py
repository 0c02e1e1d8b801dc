"""The verdict of the test command: its exit code, and a last line that hides nothing."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from test import environments, run
from test.sources import ROOT

OWN = '%d.%d' % sys.version_info[:2]


@pytest.fixture
def report(monkeypatch):
    monkeypatch.delenv('CI', raising=False)
    return run.Report()


def last_line(capsys):
    return capsys.readouterr().out.splitlines()[-1]


def test_all_passed(report, capsys):
    report.add('unit', 0)
    assert report.close() == 0
    assert last_line(capsys) == 'passed.'


def test_failure_decides_the_exit_code(report, capsys):
    report.add('unit', 1)
    report.add('brokers', 0)
    assert report.close() == 1
    assert last_line(capsys) == 'FAILED.'


def test_last_line_names_what_did_not_run_and_why(report, capsys):
    report.add('unit', 0)
    report.missing.append('real brokers (no Java)')
    assert report.close() == 0
    assert last_line(capsys) == 'passed. *** NOT RUN: real brokers (no Java) ***'


def test_skipped_tests_are_counted_with_their_reasons(report, capsys, monkeypatch):
    monkeypatch.setenv('CI', 'true')
    report.add('unit', 0)
    report.skipped.update({'0.8.0 stores no offsets': 3})
    assert report.close() == 0
    *_, reason, last = capsys.readouterr().out.splitlines()
    assert reason == 'skipped  3: 0.8.0 stores no offsets'
    assert last == 'passed. *** NOT RUN: 3 skipped (above) ***'


def test_what_the_caller_left_out_is_named_but_no_failure_under_ci(report, capsys, monkeypatch):
    monkeypatch.setenv('CI', 'true')
    report.add('unit', 0)
    report.left_out.append('real brokers (--no-brokers)')
    assert report.close() == 0
    assert last_line(capsys) == 'passed. *** NOT RUN: real brokers (--no-brokers) ***'


def test_what_passed_at_the_second_try_is_no_failure_and_in_the_last_line(report, capsys):
    report.add('brokers', 0)
    report.unsteady.append('test/integration/test_x.py::test_a')
    assert report.close() == 0
    *_, which, last = capsys.readouterr().out.splitlines()
    assert which.startswith('UNSTEADY test/integration/test_x.py::test_a')
    assert last == 'passed. *** UNSTEADY: 1 (above) ***'


def test_under_ci_what_did_not_run_is_a_failure(report, capsys, monkeypatch):
    monkeypatch.setenv('CI', 'true')
    report.add('unit', 0)
    report.missing.append('real brokers (no Java)')
    assert report.close() == 1
    assert last_line(capsys).startswith('FAILED.')


def test_nothing_selected_is_no_success(report, capsys):
    report.add('unit', run.NOTHING_SELECTED)
    assert report.close() == 1
    assert 'NOT RUN: unit: none selected' in last_line(capsys)


def test_arguments_after_two_dashes_are_pytests():
    options = run.parse(['--no-brokers', '--', '-k', 'codec', '--', '-x'])
    assert options.no_brokers
    assert options.pytest == ['-k', 'codec', '--', '-x']


def test_unsupported_python_is_refused(capsys):
    with pytest.raises(SystemExit):
        run.parse(['--python', '2.7'])


def test_own_interpreter_is_found():
    assert run.find_interpreter(OWN) == sys.executable


def test_interpreter_that_does_not_start_is_none(tmp_path):
    """pyenv's stand-ins for versions that are not selected are such programs."""
    (tmp_path / 'python').write_text('#!/bin/sh\nexit 127\n')
    (tmp_path / 'python').chmod(0o755)
    assert environments.version_of(str(tmp_path / 'python')) is None
    assert environments.version_of(str(tmp_path / 'missing')) is None


def test_interpreter_that_is_nowhere_is_reported(report, monkeypatch):
    monkeypatch.setattr(run, 'find_interpreter', lambda version: None)
    assert run.wanted_versions(run.parse(['--python', '3.8']), report) == []
    assert report.missing == ['Python 3.8 (none on PATH or in pyenv)']
    assert run.wanted_versions(run.parse(['--python', 'all']), report) == []
    assert len(report.left_out) == len(run.SUPPORTED)


def test_others_are_all_but_this_one(report, monkeypatch):
    monkeypatch.setattr(run, 'find_interpreter', lambda version: 'python')
    found = run.wanted_versions(run.parse(['--python', 'others']), report)
    assert found == [version for version in run.SUPPORTED if version != OWN]


def test_ends_are_the_oldest_and_the_newest_but_this_one(report, monkeypatch):
    monkeypatch.setattr(run, 'find_interpreter', lambda version: version)
    found = run.wanted_versions(run.parse(['--python', 'ends']), report)
    assert found == [version for version in ('3.8', '3.13') if version != OWN]


@pytest.mark.parametrize(
    'words, asked, kinds',
    [
        ([], None, ['embedded', 'real']),
        ([], '', ['embedded', 'real']),
        ([], 'embedded', ['embedded']),
        ([], 'real', ['real']),
        (['--no-brokers'], 'real', []),
    ],
)
def test_tests_run_on_both_kinds_of_brokers_unless_one_is_asked_for(
    monkeypatch, words, asked, kinds
):
    monkeypatch.delenv('KAFKA_BROKER', raising=False)
    if asked is not None:
        monkeypatch.setenv('KAFKA_BROKER', asked)
    assert run.wanted_kinds(run.parse(words)) == kinds


def test_a_place_that_is_named_is_not_dealt_out():
    options = run.parse(['--', '-x', 'test/test_run.py::test_x'])
    assert run.dealt(['test/test_a.py'], 'without', run.BUSY, options) == [[]]
    options = run.parse(['--', '-k', 'codec', '-x'])
    assert run.dealt(['test/test_run.py'], 'without', run.BUSY, options) == [['test/test_run.py']]


def test_tests_on_brokers_are_in_one_folder():
    mark = 'pytest.mark.' + 'integration'
    marked = {path for path in Path(ROOT, 'test').rglob('*.py') if mark in path.read_text('utf-8')}
    assert marked
    assert all(Path(ROOT, 'test', 'integration') in path.parents for path in marked)


def test_tests_with_spark_are_in_one_folder():
    mark = 'pytest.mark.' + 'spark'
    marked = {path for path in Path(ROOT, 'test').rglob('*.py') if mark in path.read_text('utf-8')}
    assert marked
    assert all(Path(ROOT, 'test', 'spark') in path.parents for path in marked)


@pytest.fixture
def with_spark(report, monkeypatch):
    """Return a function that runs the tests with Spark, but for what they do.

    It takes versions and the words of the command, and returns the arguments of pytest and the
    files of each run.
    """
    monkeypatch.setattr(run, 'java_problem', lambda: None)
    monkeypatch.setattr(run, 'environment', lambda version, wanted, name: name + version)
    started = []
    monkeypatch.setattr(run, 'run_side_by_side', lambda runs, to: started.extend(runs))

    def ask(*versions, words=()):
        started.extend(run.runs_with_spark(list(versions), run.parse(list(words)), report))
        return [(each.shown[3:], each.files) for each in started]

    ask.started = started
    return ask


def test_tests_with_spark_run_in_an_environment_of_their_own(with_spark, report):
    runs = with_spark('3.12')
    assert {tuple(args) for args, _ in runs} == {
        ('-m', 'spark and not thorough', '--session-timeout', str(run.SPARK_SECONDS))
    }
    assert 'test/spark/test_sink.py' in [file for _, files in runs for file in files]
    assert all(file.startswith('test/spark/') for _, files in runs for file in files)
    assert report.missing == report.left_out == []


SPARK_OLDEST = run.SPARKS[run.NEWEST_SPARK][1]


@pytest.mark.parametrize(
    'versions, chosen',
    [
        (['3.8', OWN, '3.13'], OWN if run._numbers(OWN) >= SPARK_OLDEST else '3.13'),
        (['3.8', '3.11'], '3.11'),
        (['3.8', '3.10'], None),
    ],
)
def test_spark_is_tested_on_this_python_else_on_the_newest(versions, chosen):
    assert run.version_for_spark(versions, SPARK_OLDEST) == chosen


def test_sparks_that_are_asked_for_are_tested_alone_each_in_its_environment(
    with_spark, report, monkeypatch
):
    monkeypatch.setattr(run, 'usable_kinds', lambda *arguments: [])
    monkeypatch.setattr(run, 'find_interpreter', lambda version: version in ('3.9', '3.11'))
    run.test_sparks(run.parse(['--spark', '4.3', '--spark', '4.0']), report)
    assert {each.name: each.command[0] for each in with_spark.started} == {
        'tests with Spark 4.0.5, Python 3.11': '.venv-spark-4.03.11',
        'tests with Spark 4.3.0, Python 3.11': '.venv-spark3.11',
    }
    assert all(each.may_repeat for each in with_spark.started)
    assert report.missing == report.left_out == []


def test_a_spark_that_no_python_runs_is_a_gap_of_that_one(with_spark, report, monkeypatch):
    monkeypatch.setattr(run, 'usable_kinds', lambda *arguments: [])
    monkeypatch.setattr(run, 'find_interpreter', lambda version: version == '3.9')
    run.test_sparks(run.parse(['--spark', 'all']), report)
    assert {each.name for each in with_spark.started} == {'tests with Spark 4.0.5, Python 3.9'}
    assert report.missing == [
        'the tests with Spark %s: Python %s or later is needed' % each
        for each in (('4.1.4', '3.10'), ('4.2.1', '3.10'), ('4.3.0', '3.11'))
    ]


def test_factors_of_tox_are_the_releases_of_this_command():
    text = Path(ROOT, 'tox.ini').read_text('utf-8')
    factors = re.findall(r'spark(\d)(\d): pyspark\[connect\]==(\S+)', text)
    assert {'%s.%s' % (major, minor): release for major, minor, release in factors} == {
        name: release for name, (release, _) in run.SPARKS.items()
    }


def test_spark_without_java_is_a_gap(with_spark, report, monkeypatch):
    monkeypatch.setattr(run, 'java_problem', lambda: 'Java is missing')
    assert with_spark('3.11') == []
    assert report.missing == ['the tests with Spark 4.3.0: Java is missing']


def test_spark_on_an_old_python_is_a_gap(with_spark, report):
    assert with_spark('3.8') == []
    assert report.missing == ['the tests with Spark 4.3.0: Python 3.11 or later is needed']


@pytest.mark.parametrize(
    'words, reason',
    [
        (['--no-brokers'], '--no-brokers'),
        (['--', '-x', 'test/test_run.py'], 'not in test/test_run.py'),
    ],
)
def test_spark_that_was_left_out_is_no_gap(with_spark, report, words, reason):
    assert with_spark('3.11', words=words) == []
    assert report.missing == []
    assert report.left_out == ['the tests with Spark 4.3.0 (%s)' % reason]


def test_tests_with_spark_that_are_named_run_alone(with_spark):
    (((*_, place), files),) = with_spark('3.11', words=['--', 'test/spark/test_conftest.py'])
    assert (place, files) == ('test/spark/test_conftest.py', [])


def test_spark_is_left_to_the_run_of_the_main_python(monkeypatch):
    """The other Pythons run the tests without brokers."""
    asked = []
    monkeypatch.setattr(run, 'runs_with_spark', lambda *arguments: asked.append(arguments) or [])
    monkeypatch.setattr(run, 'environment', lambda *arguments: 'python')
    monkeypatch.setattr(run, 'usable_kinds', lambda *arguments: [])
    monkeypatch.setattr(run, 'run_side_by_side', lambda *arguments: None)
    monkeypatch.setattr(run, 'find_interpreter', lambda version: 'python')
    run.test(run.parse(['--python', 'ends']), run.Report())
    assert asked == []
    run.test(run.parse([]), run.Report())
    assert [versions for versions, *_ in asked] == [[OWN]]


@pytest.fixture
def planned(monkeypatch):
    """Return a function that gives the runs of a command, which do not begin."""
    monkeypatch.setattr(run, 'environment', lambda version, *arguments: 'python%s' % version)
    monkeypatch.setattr(run, 'usable_kinds', lambda *arguments: ['embedded', 'real'])
    monkeypatch.setattr(run, 'java_problem', lambda: None)
    monkeypatch.delenv('KAFKA_VERSION', raising=False)
    monkeypatch.setattr(run, 'wanted_versions', lambda options, report: ['3.11'])
    found = []
    monkeypatch.setattr(run, 'run_side_by_side', lambda runs, *arguments: found.extend(runs))

    def plan(*words):
        found.clear()
        run.test(run.parse(words), run.Report())
        return list(found)

    return plan


def test_the_last_of_the_other_pythons_is_strict(planned, monkeypatch):
    """Bytes compared with text are errors there, as are warnings; the main Python has no flags."""
    monkeypatch.setattr(run, 'usable_kinds', lambda *arguments: [])
    monkeypatch.setattr(run, 'wanted_versions', lambda *arguments: ['3.8', '3.13'])
    found = planned('--python', 'ends')
    strict, relaxed = found[-1], found[0]
    assert relaxed.command[:3] == ['python3.8', '-m', 'pytest']
    assert strict.command[:7] == ['python3.13', '-bb', '-W', 'error', '-X', 'dev', '-m']
    assert strict.name == 'tests without brokers, Python 3.13 -bb -W error -X dev'
    assert strict.again(['test/test_util.py']).command[:2] == ['python3.13', '-bb']
    assert not any(each.flags for each in planned())


def selected(runs):
    """Return what runs select: (kind of brokers or tool, release, file, thorough or not)."""
    found = []
    for each in runs:
        kind = each.environ.get('KAFKA_BROKER') or each.name.split()[1]
        release = each.environ.get('KAFKA_TEST_RELEASES', '').rstrip(',')
        marker = each.shown[each.shown.index('-m', 4) + 1 if '-m' in each.shown[4:] else 4]
        only, never = 'and thorough' in marker, 'and not thorough' in marker
        for file in each.files:
            found += [(kind, release, file, True)] if not never else []
            found += [(kind, release, file, False)] if not only else []
    return found


def test_the_rest_and_the_ordinary_run_are_all_and_nothing_is_run_twice(planned):
    """But for tests that there are none of: with the marker thorough in a file without it."""
    ordinary, rest, every = (selected(planned(*words)) for words in ([], ['--rest'], ['--all']))
    files = sorted({file for _, _, file, _ in every})
    marked = set(run.dealing.marked(files, 'thorough'))
    assert len(set(every)) == len(every)
    assert not set(ordinary) & set(rest)
    for each in set(every) ^ (set(ordinary) | set(rest)):
        assert each[3] and each[2] not in marked


def test_failing_tests_may_run_again_on_brokers_and_with_spark_and_never_without(planned):
    for words in ([], ['--all']):
        runs = planned(*words)
        assert {each.keeps for each in runs} == {run.BUSY, run.ON_BROKERS, run.WITH_SPARK}
        assert all(each.may_repeat == (each.keeps != run.BUSY) for each in runs)


def test_the_ordinary_run_has_the_first_and_the_newest_release(planned):
    found = {each[:2] for each in selected(planned())}
    assert found == {
        ('real', '0.8.2.2'), ('real', '4.4.0'), ('embedded', '4.3.1'),
        ('without', ''), ('with', ''),
    }  # fmt: skip


def test_tests_of_no_release_run_once_for_each_kind_of_brokers(planned):
    for words in ([], ['--all']):
        for kind in ('real', 'embedded'):
            files = [
                file
                for each in planned(*words)
                if each.environ.get('KAFKA_BROKER') == kind
                and each.environ['KAFKA_TEST_RELEASES'].endswith(',')
                for file in each.files
            ]
            assert sorted(files) == run.dealing.test_files('test/integration')


class Begun:
    """What may_start() looks at of a run."""

    def __init__(self, keeps, process=None):
        self.keeps = keeps
        self.process = process

    def is_running(self):
        return True


@pytest.mark.parametrize(
    'keeps, running, waiting, may',
    [
        (run.BUSY, [], [], True),
        (run.BUSY, [run.BUSY], [], True),
        (run.BUSY, [run.BUSY] * 2, [], False),
        (run.BUSY, [run.BUSY], [run.WITH_SPARK], False),
        (run.BUSY, [run.BUSY, run.ON_BROKERS], [], False),
        (run.ON_BROKERS, [run.BUSY, *[run.ON_BROKERS] * 3], [], True),
        (run.ON_BROKERS, [run.ON_BROKERS] * 4, [], False),
        (run.WITH_SPARK, [run.ON_BROKERS] * 4, [], True),
    ],
)
def test_runs_that_keep_a_core_busy_leave_the_other_one_to_those_that_wait(
    keeps, running, waiting, may
):
    others = [Begun(each, True) for each in running] + [Begun(each) for each in waiting]
    assert run.may_start(Begun(keeps), others, None) is may


def test_how_many_runs_are_busy_at_a_time_may_be_said():
    others = [Begun(run.BUSY, True), Begun(run.ON_BROKERS, True)]
    assert run.may_start(Begun(run.BUSY), others, 2)
    assert not run.may_start(Begun(run.BUSY), others[:1], 1)


@pytest.mark.parametrize('words, most', [([], 2), (['--rest'], 1), (['--all'], 1)])
def test_beside_thorough_tests_one_run_is_with_spark_at_a_time(planned, monkeypatch, words, most):
    limits = []
    monkeypatch.setattr(run, 'run_side_by_side', lambda runs, to, busy, most: limits.append(most))
    run.test(run.parse(words), run.Report())
    (limits,) = limits
    others = [Begun(run.WITH_SPARK, True)] * most
    assert not run.may_start(Begun(run.WITH_SPARK), others, None, limits)
    assert run.may_start(Begun(run.WITH_SPARK), others[1:], None, limits)


def test_what_takes_long_is_written_down_of_whole_steps_alone(monkeypatch, tmp_path, capsys):
    for words in (['--all', '--write-seconds', '--', '-k', 'codec'], ['--write-seconds']):
        with pytest.raises(SystemExit):
            run.parse(words)
    table = tmp_path / 'seconds.txt'
    table.touch()
    monkeypatch.setattr(run.dealing, 'TABLE', str(table))
    monkeypatch.setattr(
        run, 'test', lambda options, report: report.seconds.append(('real t/a.py 4.4.0', 12.0))
    )
    run.main(['--all', '--write-seconds'])
    assert table.read_text('utf-8').splitlines()[-1].split() == ['real', '12', 't/a.py', '4.4.0']


def test_each_release_is_tested_on_one_kind_of_brokers(monkeypatch):
    monkeypatch.delenv('KAFKA_VERSION', raising=False)
    every = run.parse(['--all'])
    real = run.wanted_releases('real', ['embedded', 'real'], every)
    embedded = run.wanted_releases('embedded', ['embedded', 'real'], every)
    assert real and embedded and not set(real) & set(embedded)
    assert set(run.wanted_releases('embedded', ['embedded'], every)) == {*real, *embedded}


@pytest.mark.parametrize(
    'words, expression',
    [
        ([], 'integration and not thorough'),
        (['--all'], 'integration'),
        (['--rest'], 'integration and thorough'),
        (['--', 'test/test_run.py'], 'integration'),
        (['--', '-k', 'kafka'], 'integration and not thorough'),
    ],
    ids=lambda value: ' '.join(value) if isinstance(value, list) else value,
)
def test_how_much_is_tested_on_a_release_that_is_asked_for(monkeypatch, words, expression):
    monkeypatch.setenv('KAFKA_VERSION', '2.8.2')
    assert run.wanted_releases('real', ['real'], run.parse(words)) == {'2.8.2': expression}


def test_a_release_that_there_is_not_is_told(monkeypatch):
    monkeypatch.setenv('KAFKA_VERSION', '9.9')
    with pytest.raises(run.SetUpError, match='KAFKA_VERSION: no release .9.9.'):
        run.wanted_releases('real', ['real'], run.parse([]))


def test_a_kind_of_broker_that_there_is_not_is_told(monkeypatch):
    monkeypatch.setenv('KAFKA_BROKER', 'imbedded')
    with pytest.raises(run.SetUpError, match='imbedded'):
        run.wanted_kinds(run.parse([]))


def test_without_java_the_tests_run_on_embedded_brokers(report, monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.delenv('KAFKA_BROKER', raising=False)
    assert run.usable_kinds('python', run.parse([]), report) == ['embedded']
    (missing,) = report.missing
    assert missing.startswith('the tests on real brokers: Java is missing')


@pytest.mark.parametrize('words, kinds', [([], ['embedded']), (['--no-brokers'], [])])
def test_real_brokers_that_were_left_out_are_no_gap(report, monkeypatch, tmp_path, words, kinds):
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.setenv('KAFKA_BROKER', 'embedded')
    assert run.usable_kinds('python', run.parse(words), report) == kinds
    assert (report.missing, len(report.left_out)) == ([], 1)


def test_missing_java_and_maven_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', str(tmp_path))
    lacking = ' '.join(run.missing_for_brokers())
    assert 'Java is missing' in lacking
    assert 'Maven is missing' in lacking


def test_python_without_ensurepip_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, 'ROOT', str(tmp_path))
    monkeypatch.setattr(environments.subprocess, 'call', lambda command, **more: 1)
    with pytest.raises(run.SetUpError, match='apt-get install python%s-venv' % OWN):
        environments.environment(OWN, [])


def test_environment_of_another_python_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, 'ROOT', str(tmp_path))
    monkeypatch.setattr(environments, 'version_of', lambda python: '3.7')
    made = []
    monkeypatch.setattr(
        environments.subprocess, 'call', lambda command, **more: made.append(command[-1])
    )
    monkeypatch.setattr(environments, '_fingerprint', lambda wanted: 'x')
    for name in ('.venv', '.venv-' + OWN):
        (tmp_path / name).mkdir()
    assert environments.environment(OWN, []) == environments._python_of('.venv-' + OWN)
    assert str(tmp_path / '.venv') not in made


def test_counts_are_read_from_the_results(tmp_path):
    results = tmp_path / 'results.xml'
    results.write_text(
        '<testsuites><testsuite tests="7">'
        '<testcase><skipped type="pytest.skip" message="old"/></testcase>'
        '<testcase><skipped type="pytest.skip" message="old"/></testcase>'
        '<testcase><skipped type="pytest.xfail" message="known"/></testcase>'
        '<testcase classname="test.integration.test_x" name="test_a[1-b]"><failure/></testcase>'
        # Of the same test: its fixture failed as well.
        '<testcase classname="test.integration.test_x" name="test_a[1-b]"><error/></testcase>'
        '</testsuite></testsuites>'
    )
    failed = ['test/integration/test_x.py::test_a[1-b]']
    assert run.read_results(str(results)) == (7, {'old': 2}, failed)
    assert run.read_results(str(tmp_path / 'none.xml')) == (0, {}, [])


@pytest.fixture
def pytest_on(tmp_path):
    """Return a function that makes a run of pytest on a file with this text."""

    def make(name, text):
        file = tmp_path / ('test_%d.py' % len(list(tmp_path.iterdir())))
        file.write_text(text)
        args = ['-p', 'no:cacheprovider']
        environ = {'KAFKA_TEST_WORD': 'a word', 'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1'}
        return run.Pytest(name, sys.executable, args, [str(file)], **environ)

    return make


def test_runs_of_one_name_are_reported_as_one(report, pytest_on, capfd):
    """Both outputs are shown, each whole; a part that has no tests is no gap."""
    good = "import os\ndef test_here(): assert os.environ['KAFKA_TEST_WORD'] == 'a word'\n"
    bad = "def test_here(): assert 'this' == 'that'\n"
    runs = [pytest_on('brokers', good), pytest_on('brokers', bad), pytest_on('brokers', '')]
    run.run_side_by_side([*runs, pytest_on('none', '')], report)
    assert report.failed == ['brokers (2 tests)']
    assert report.missing == ['none: none selected']
    shown = capfd.readouterr().out
    assert shown.index('1 passed') < shown.index("assert 'this' == 'that'")
    assert shown.count('=== brokers') == 3


def test_a_run_begins_when_any_has_ended(report, pytest_on, tmp_path, capfd):
    """Not when the one whose output is shown has: here that one waits for the third."""
    there = tmp_path / 'there'
    waits = (
        'import os, time\n'
        'def test_here():\n'
        '    ends_at = time.monotonic() + 60\n'
        '    while not os.path.exists(%r):\n'
        '        assert time.monotonic() < ends_at\n'
        '        time.sleep(0.05)\n'
    ) % str(there)
    comes = "def test_here(): open(%r, 'w').close()\n" % str(there)
    good = 'def test_here(): pass\n'
    runs = [pytest_on('brokers', text) for text in (waits, good, comes)]
    run.run_side_by_side(runs, report, 2)
    assert (report.ran, report.failed) == (['brokers (3 tests)'], [])
    assert capfd.readouterr().out.count('1 passed') == 3


def test_a_run_that_does_not_end_is_ended_and_shows_where_it_was(
    report, pytest_on, monkeypatch, capfd
):
    monkeypatch.setattr(run, 'RUN_SECONDS', 3.0)
    hangs = 'import atexit, time\natexit.register(time.sleep, 60)\ndef test_here(): pass\n'
    good = 'def test_here(): pass\n'
    begun = time.monotonic()
    run.run_side_by_side([pytest_on('brokers', hangs), pytest_on('others', good)], report)
    assert time.monotonic() - begun < 30
    assert (report.ran, report.failed) == (['others (1 tests)'], ['brokers (1 tests)'])
    shown = capfd.readouterr()
    assert 'brokers: has not ended after 3 s' in shown.out
    assert 'Fatal Python error: Aborted' in shown.out + shown.err


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Return a function that makes a run whose tests fail, so many times each, before they pass."""
    monkeypatch.setattr(run, 'ROOT', str(tmp_path))

    def make(times, tests=1, **more):
        text = (
            'import os, pytest\n'
            '@pytest.mark.parametrize("number", range(%d))\n'
            'def test_it(number):\n'
            '    path = "tries-%%d" %% number\n'
            '    tries = open(path).read() if os.path.exists(path) else ""\n'
            '    open(path, "w").write(tries + ".")\n'
            '    assert len(tries) >= %d\n'
        )
        (tmp_path / 'test_unsteady.py').write_text(text % (tests, times))
        args = ['-p', 'no:cacheprovider', 'test_unsteady.py']
        return run.Pytest('brokers', sys.executable, args, **more)

    return make


def test_what_was_cut_short_is_a_failure_whatever_runs_again(report, failing, tmp_path):
    """Here by -x, with Spark by the seconds of a session: not all tests have run."""
    (tmp_path / 'conftest.py').write_text(
        'import importlib.util\n'
        'spec = importlib.util.spec_from_file_location("of_all", %r)\n'
        'of_all = importlib.util.module_from_spec(spec)\n'
        'spec.loader.exec_module(of_all)\n'
        'pytest_sessionfinish = of_all.pytest_sessionfinish\n' % str(Path(ROOT, 'test/conftest.py'))
    )
    made = failing(1, tests=2, may_repeat=True, PYTHONPATH=str(ROOT))
    made.command.append('-x')
    run.run_side_by_side([made], report)
    assert report.failed == ['brokers (1 tests)']
    assert report.unsteady == []


def test_what_failed_on_brokers_runs_again_once(report, failing):
    run.run_side_by_side([failing(1, may_repeat=True)], report)
    assert report.ran == ['brokers (1 tests)']
    assert report.unsteady == ['test_unsteady.py::test_it[0]']


def test_each_test_runs_again_as_its_own_run_did(report, tmp_path, monkeypatch):
    """What a run selects by its environment, another one of that name would leave out."""
    monkeypatch.setattr(run, 'ROOT', str(tmp_path))
    (tmp_path / 'conftest.py').write_text(
        'import os\n'
        'def pytest_collection_modifyitems(items):\n'
        '    items[:] = [each for each in items if os.environ["OWN"] in each.name]\n'
    )
    (tmp_path / 'test_own.py').write_text(
        'import pytest\n'
        '@pytest.mark.parametrize("own", ["first", "last"])\n'
        'def test_it(own):\n'
        '    assert own == "first"\n'
    )
    args = ['-p', 'no:cacheprovider', 'test_own.py']
    runs = [
        run.Pytest('brokers', sys.executable, args, may_repeat=True, OWN=own)
        for own in ('first', 'last')
    ]
    run.run_side_by_side(runs, report)
    assert report.failed == ['brokers (2 tests)']
    assert report.unsteady == []


@pytest.mark.parametrize(
    'times, tests, may_repeat',
    [(2, 1, True), (1, 1, False), (1, run.MAY_FAIL_ONCE + 1, True)],
    ids=['fails twice', 'may not', 'too many'],
)
def test_what_fails_is_a_failure(report, failing, times, tests, may_repeat):
    run.run_side_by_side([failing(times, tests, may_repeat=may_repeat)], report)
    assert report.failed == ['brokers (%d tests)' % tests]
    assert report.unsteady == []
