"""The Spark session and the brokers of the tests with Spark, and what they may leave behind.

A test that needs a session carries the marker ``spark`` and takes the fixture ``spark``: one for
all, because it takes seconds to start. ``python3 test/run.py`` runs these tests in an environment
of their own, where PySpark is; elsewhere they are skipped with the reason. On which brokers:
``broker`` is an embedded one, ``real_broker`` Apache Kafka (``KAFKA_VERSION``, else 4.4.0), unless
``KAFKA_BROKER=embedded``. Owns: these, and that a test finds the session as it was.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import re
import sys
from pathlib import Path

import pytest

from servers.cluster import IMPATIENT, Cluster
from servers.embedded import EmbeddedCluster
from servers.releases import EMBEDDED, chosen, java_problem, problem
from test.leaks import leaked_since, take_stock
from test.spark import oracle as oracles
from test.spark import topics

ROOT = Path(__file__).resolve().parents[2]
RELEASE = '4.4.0'

#: What PySpark itself says, and what its sockets to the JVM make the interpreter say.
TOLERATED_WARNINGS = (
    'ignore:PySpark does not yet fully support pandas:FutureWarning',
    'ignore:unclosed <socket:ResourceWarning',
    'ignore::DeprecationWarning:pyspark.*',
)
#: Some tests start Spark several times, each of which takes a minute beside much other work.
TEST_SECONDS = 600
SETTINGS = {
    # Programs are short: what the JVM's second compiler does for them costs as much as all else.
    'spark.driver.extraJavaOptions': '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC',
    'spark.driver.bindAddress': '127.0.0.1',
    'spark.driver.host': '127.0.0.1',
    'spark.driver.memory': '1g',
    'spark.log.level': 'ERROR',
    'spark.sql.session.timeZone': 'UTC',
    'spark.sql.shuffle.partitions': '2',
    'spark.sql.streaming.metricsEnabled': 'false',
    'spark.ui.enabled': 'false',
    'spark.ui.showConsoleProgress': 'false',
}
MADE = pytest.StashKey()  # the session that is up


def missing():
    """Return why no session can be had here, in one line, or None."""
    if importlib.util.find_spec('pyspark') is None:
        return 'PySpark is not installed (python3 test/run.py makes an environment that has it)'
    return java_problem()


def environment():
    """Return what the workers of Spark need to find this Python and this tree."""
    places = [str(ROOT), *filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep))]
    return {
        'PYSPARK_PYTHON': sys.executable,
        'PYSPARK_DRIVER_PYTHON': sys.executable,
        'PYTHONPATH': os.pathsep.join(dict.fromkeys(places)),
    }


@contextlib.contextmanager
def session(folder, settings=None):
    """Make a session with its files in a folder, and end it."""
    from pyspark.sql import SparkSession  # late: the other tests here do without

    builder = SparkSession.builder.appName('kafka-evergreen')
    own = {'spark.sql.warehouse.dir': str(folder), 'spark.local.dir': str(folder)}
    place = {} if 'spark.remote' in (settings or {}) else {'spark.master': 'local[2]'}
    for name, value in {**SETTINGS, **place, **own, **(settings or {})}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    try:
        yield made
    finally:
        made.stop()


def pytest_collection_modifyitems(items):
    reason = None
    if any(item.get_closest_marker('spark') for item in items):
        reason = missing()
    for item in items:
        if item.get_closest_marker('spark') is None:
            continue
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
        if item.get_closest_marker('timeout') is None:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))
        for each in TOLERATED_WARNINGS:
            item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(scope='session')
def spark(request, tmp_path_factory):
    """The session of all tests: two cores, no window, this Python and this tree in the workers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        with session(tmp_path_factory.mktemp('spark')) as made:
            request.config.stash[MADE] = made
            yield made
            del request.config.stash[MADE]


@pytest.fixture(autouse=True)
def session_as_it_was(request):
    """Stop the queries that a test started, and forget its views and settings."""
    if request.node.get_closest_marker('spark') is None or 'spark' not in request.fixturenames:
        yield
        return
    made = request.getfixturevalue('spark')
    before = settings_of(made)
    yield
    for query in made.streams.active:
        query.stop()
    for table in made.catalog.listTables():
        if table.isTemporary:
            made.catalog.dropTempView(table.name)
    put_back(made, before)


def settings_of(made):
    """Return the settings of a session that programs can change."""
    return {row.key: row.value for row in made.sql('SET').collect()}


def put_back(made, before):
    """Give a session the settings that it had."""
    for name, value in settings_of(made).items():
        if name not in before:
            made.conf.unset(name)
        elif before[name] != value:
            made.conf.set(name, before[name])


@pytest.fixture(autouse=True)
def nothing_leaks(request, other_children):
    """As for all tests; one with a session may leave what is PySpark's, but no thread of ours."""
    before = take_stock()
    yield
    leaked = leaked_since(before)
    if request.node.get_closest_marker('spark') is not None:
        ours = [thread.name for thread in leaked.threads if 'kafka' in thread.name]
        assert not ours, 'threads left behind: %s' % ours
        return
    leaked.children.difference_update(other_children())
    assert not any(leaked), 'left behind: %s' % (leaked,)


@pytest.fixture(scope='session')
def broker():
    """Embedded brokers of 4.4.0 in a process of their own: one, at ``broker.bootstrap``."""
    (release,) = chosen(RELEASE)
    with EmbeddedCluster(release) as running:
        yield running


def real_release():
    """Return which Apache Kafka is started for a test, or skip it with the reason."""
    if os.environ.get('KAFKA_BROKER') == EMBEDDED:
        pytest.skip('KAFKA_BROKER=embedded')
    release = chosen(os.environ.get('KAFKA_VERSION') or RELEASE)[-1]
    reason = problem(release)
    if reason:
        pytest.skip(reason)
    return release


@pytest.fixture(scope='session')
def real_broker():
    """A broker of Apache Kafka, at ``real_broker.bootstrap``."""
    with Cluster(real_release(), settings={**IMPATIENT, **topics.SETTINGS}) as running:
        yield running


@pytest.fixture(scope='session')
def oracle():
    """Both connectors in one session of another process."""
    reason = oracles.problem()
    if reason:
        pytest.skip(reason)
    with oracles.Oracle() as running:
        yield running


@pytest.fixture(scope='session')
def kinds(real_broker):
    """A broker with all kinds of topics."""
    topics.make_all(real_broker)
    return real_broker


_numbers = itertools.count(1)


@pytest.fixture
def new_name(request):
    """Return a function that gives a name of a topic, group or view nobody used before."""
    test = re.sub(r'\W', '_', request.node.originalname)

    def give():
        return '%s_%d' % (test, next(_numbers))

    return give


@pytest.fixture
def pyspark_as_it_was(monkeypatch):
    """Undo afterwards what takeover() and register() change in PySpark."""
    from pyspark.sql import readwriter
    from pyspark.sql.streaming import readwriter as streaming

    classes = [readwriter.DataFrameReader, readwriter.DataFrameWriter]
    for cls in [*classes, streaming.DataStreamReader, streaming.DataStreamWriter]:
        for name, method in list(vars(cls).items()):
            if not name.startswith('_') and callable(method):
                monkeypatch.setattr(cls, name, method)


@pytest.fixture
def topic(broker, new_name):
    """The name of a new topic with two partitions on the embedded broker."""
    name = new_name()
    broker.create_topic(name, 2)
    return name


@pytest.fixture
def real_topic(real_broker, new_name):
    """The name of a new topic with two partitions on the real broker, whose records stay."""
    name = new_name()
    real_broker.create_topic(name, 2, config={'retention.ms': '-1'})
    return name


@pytest.fixture
def checkpoint(tmp_path):
    """A folder for what a streaming query remembers, as Spark takes it."""
    return str(tmp_path / 'checkpoint')
