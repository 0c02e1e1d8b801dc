"""What holds for every test: nothing stays behind, and how many examples hypothesis tries.

Random order is pytest-randomly's, warnings become errors and hangs end by the settings in
``pyproject.toml``.
"""

from __future__ import annotations

import atexit
import os
import signal
import weakref

import hypothesis
import pytest

from test import dealing
from test.leaks import leaked_since, take_stock

# A shell lets what it starts in the background ignore Ctrl-C, and so would the programs that tests
# start and interrupt. A handler is not passed on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# dev: quick, for work at a desk. ci: more, and the same ones in every run of one commit, so that a
# red run can be repeated. thorough: what the declarations of the protocol were accepted with.
for name, examples, same in (('dev', 20, False), ('ci', 50, True), ('thorough', 10000, False)):
    hypothesis.settings.register_profile(
        name,
        max_examples=examples,
        derandomize=same,
        deadline=None,
        database=None if same else hypothesis.settings.default.database,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile(
    os.environ.get('HYPOTHESIS_PROFILE', 'ci' if os.environ.get('CI') else 'dev')
)


def pytest_collection_modifyitems(items):
    """Have the results say what a test counts as; test/integration/conftest.py does for its own."""
    for item in items:
        if item.get_closest_marker('integration') is None:
            is_with_spark = item.get_closest_marker('spark') is not None
            dealing.name_room(item, dealing.SPARK if is_with_spark else dealing.WITHOUT)


def pytest_sessionfinish(session):
    """Tell that a limit cut it short: that what failed passes when it runs again is not enough."""
    if session.shouldfail:
        session.exitstatus = pytest.ExitCode.INTERRUPTED


@pytest.fixture
def other_children():
    """Return a function that tells process ids which a test may leave: none, unless overridden."""
    return set


@pytest.fixture
def exit_hooks(monkeypatch):
    """A list of what the test registered with atexit, and has not unregistered since.

    What other tests left behind may be collected meanwhile, and unregister hooks of its own.
    """
    weakref.finalize(monkeypatch, int).detach()  # the first of a process registers a hook
    hooks, unregister = [], atexit.unregister

    def drop(hook):
        if hook in hooks:
            hooks.remove(hook)
        else:
            unregister(hook)

    monkeypatch.setattr(atexit, 'register', hooks.append)
    monkeypatch.setattr(atexit, 'unregister', drop)
    return hooks


@pytest.fixture(autouse=True)
def nothing_leaks(other_children):
    """Fail a test that leaves a thread, a socket or a child process behind."""
    before = take_stock()
    yield
    leaked = leaked_since(before)
    leaked.children.difference_update(other_children())
    if any(leaked):
        pytest.fail(
            'left behind: '
            + ', '.join(
                '%s %s' % (kind, sorted(map(str, things)))
                for kind, things in zip(leaked._fields, leaked)
                if things
            )
        )
