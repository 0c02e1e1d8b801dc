"""kafka.cli.old_source: what is tried with sources that do not compile, and which error stays."""

from __future__ import annotations

import traceback

import pytest

from kafka.cli import old_source


def run(source, **options):
    names = {}
    exec(old_source.compile_source(source, 'x.py', **options), names)
    return names


def test_a_source_of_today_is_compiled_as_it_is(monkeypatch):
    monkeypatch.setattr(old_source, 'rescue', None)
    assert run('x = 1')['x'] == 1


@pytest.mark.parametrize(
    'source',
    [
        b'async = "\xc3\xa9"\n',
        b'\xef\xbb\xbfasync = "\xc3\xa9"\n',
        b'# coding: latin-1\nasync = "\xe9"\n',
        b'#!/usr/bin/python\n# -*- coding: utf8 -*-\nasync = "\xc3\xa9"\n',
        'async = "é"\n',
        '# coding: latin-1\nasync = "é"\n',
        b'async = "\xc3\xa9"\r\nx = 1\r\n',
        b'async = "\xc3\xa9"',
    ],
)
def test_encodings_and_line_ends_are_read_as_by_the_compiler(source):
    assert run(source)['async'] == 'é'


def test_future_statements_hold_and_those_of_this_package_do_not():
    source = 'async = 1\ndef f(x: int): pass\nfound = f.__annotations__'
    assert run(source)['found'] == {'x': int}
    assert run('from __future__ import annotations\n' + source)['found'] == {'x': 'int'}


def test_optimization_is_handed_on():
    source = 'async = 1\ndef f():\n    "doc"\n    assert 0\nfound = f.__doc__'
    assert run(source, optimize=2)['found'] is None
    assert run(source, optimize=0)['found'] == 'doc'


@pytest.mark.parametrize(
    'source',
    ['x = = 1', b'async = "\xff"\n', b'# coding: klingon\nasync = 1\n', 'x = (1', 'if 1:\nx', 'x?'],
)
def test_what_is_no_older_python_either_keeps_its_error(source):
    with pytest.raises(SyntaxError) as expected:
        compile(source, 'x.py', 'exec')
    with pytest.raises(SyntaxError) as caught:
        old_source.compile_source(source, 'x.py')
    assert caught.value.args == expected.value.args
    assert caught.value.__context__ is None
    # Nothing of what was tried: this test, compile_source.
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2


def test_null_bytes_are_refused_as_by_the_compiler():
    with pytest.raises((ValueError, SyntaxError), match='null bytes'):
        old_source.compile_source('async = "\0"', 'x.py')


def test_the_error_is_about_what_today_cannot_be_meant():
    """Not about the names, which are none any more to the one who runs this."""
    with pytest.raises(SyntaxError) as caught:
        old_source.compile_source('f(async=1)\nx = = 1\n', 'x.py')
    assert (caught.value.lineno, caught.value.filename) == (2, 'x.py')
    assert caught.value.__cause__ is caught.value.__context__ is None
