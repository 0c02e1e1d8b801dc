"""kafka.cli.python2: programs of Python 2, and what is said where they cannot be translated."""

from __future__ import annotations

import logging
import sys
import traceback

import pytest

from kafka.cli import old_source, python2

needs_fissix = pytest.mark.skipif(python2.refactor is None, reason='the extra py2 is not installed')


def run(source, **options):
    names = {}
    exec(old_source.compile_source(source, 'x.py', **options), names)
    return names


def error_of(source):
    with pytest.raises(SyntaxError) as caught:
        old_source.compile_source(source, 'x.py')
    return caught.value


# --- without the extra --------------------------------------------------------------------------

OLD_LINES = [
    'print "x"',
    'print "x" % 5, 6',
    'print >>f, "x",; print x',
    'if x: print "x"',
    'x = 1; print x',
    'exec "x" in y',
    'try: pass\nexcept ValueError, e: pass',
    'try: pass\nexcept (ValueError, KeyError), e: pass',
    'raise ValueError, "x"',
    'x = `y`',
    'x = 1 <> 2',
    'x = 0777',
    'x = 10L',
    'x = 0xFFL',
    "x = ur'x'",
    'def f((a, b)): pass',
    'def f(x, (a, b)=(1, 2)): pass',
    'f = lambda (a, b): a',
    'if 1:\n        x = 1\n\ty = 2',
]


@pytest.mark.parametrize('source', OLD_LINES)
def test_without_the_translator_the_error_names_the_extra(monkeypatch, source):
    monkeypatch.setattr(python2, 'refactor', None)
    error = error_of('x = 1\n' + source + '\n')
    assert 'pip install kafka-evergreen[py2]' in error.msg
    assert error.filename == 'x.py'
    assert error.lineno >= 2
    assert error.text.rstrip('\n') in source.split('\n')


@pytest.mark.parametrize(
    'source',
    [
        'x = = 1',
        'x = (1',
        'def f(:',
        'print(x',
        'x = "abc',
        'if x = 1: pass',
        'raise x y',
    ],
)
def test_a_mistake_in_python_3_is_no_python_2(monkeypatch, source):
    with pytest.raises(SyntaxError) as plain:
        compile(source, 'x.py', 'exec')
    assert error_of(source).args == plain.value.args
    monkeypatch.setattr(python2, 'refactor', None)
    assert error_of(source).args == plain.value.args


# --- with it ------------------------------------------------------------------------------------


@needs_fissix
@pytest.mark.parametrize('source', OLD_LINES)
def test_each_of_them_is_translated(source):
    old_source.compile_source('x = 1\n' + source + '\n', 'x.py')


@needs_fissix
def test_what_is_translated_means_the_same(capsys):
    names = run(
        '# -*- coding: utf-8 -*-\n'
        '"""The docstring."""\n'
        'import sys\n'
        'reload(sys)\n'
        'sys.setdefaultencoding("utf8")\n'
        'from StringIO import StringIO\n'
        'import ConfigParser, Queue, urllib2, cPickle\n'
        'd = {"a": 1}\n'
        'found = [d.has_key("a"), d.keys(), list(d.iteritems()), 7 / 2, 0777, 10L, 1 <> 2, `d`,\n'
        '         [x for x in xrange(2)], unichr(233), isinstance(u"x", unicode), ur"\\d",\n'
        '         reduce(lambda a, b: a + b, [1, 2]), map(str, [1]), sorted(d.items())]\n'
        'def f((a, b), async=3): return a, b, async\n'
        'found.append(f((1, 2), async=4))\n'
        'exec "y = 5" in d\n'
        'try:\n'
        '    raise ValueError, "text"\n'
        'except ValueError, e:\n'
        '    print "caught", e,\n'
        'print >>sys.stderr, "to stderr"\n'
    )
    assert names['found'] == [
        True, ['a'], [('a', 1)], 3, 511, 10, True, "{'a': 1}", [0, 1], 'é', True, '\\d',
        3, ['1'], [('a', 1)], (1, 2, 4),
    ]  # fmt: skip
    assert names['d']['y'] == 5
    assert names['__doc__'] == 'The docstring.'
    out, err = capsys.readouterr()
    assert (out, err) == ('caught text ', 'to stderr\n')


@needs_fissix
def test_a_print_that_goes_on_leaves_its_blank_at_the_end_of_a_line_too(capsys):
    run('for i in range(2):\n    print i,\nprint\n')
    assert capsys.readouterr().out == '0 1 \n'


@needs_fissix
def test_tabs_are_eight_spaces_but_not_in_texts():
    names = run(
        'x = """\n\ttext\n        text"""\n'
        'if 1:\n        y = 1\n\tz = 2\n\tif z:\n\t        print "x"\n'
    )
    assert names['x'] == '\n\ttext\n        text'
    assert (names['y'], names['z']) == (1, 2)


MOVED = """\
import os
x = reduce(max, [1, 2])
def f((a, b), c):
    '''A text
    of lines'''
    print a, \\
        b
    return (a /
            c)
class C:
    def g(self, (a, b)):
        return f((a, b), 0)
# comment

print "before"
C().g((1, 2))
"""


@needs_fissix
def test_lines_are_those_of_the_file_where_the_translation_has_more(capsys):
    """One import and two unpacked parameters stand in it besides."""
    with pytest.raises(ZeroDivisionError) as caught:
        run(MOVED)
    frames = [(f.name, f.lineno) for f in traceback.extract_tb(caught.value.__traceback__)[2:]]
    assert frames[:2] == [('<module>', 16), ('g', 12)]
    assert frames[2] == ('f', 8)
    assert capsys.readouterr().out == 'before\n1 2\n'


@needs_fissix
@pytest.mark.parametrize('mark', ['\x0c', '\x0b', '\x1c', '\x85', '\u2028'])
def test_lines_end_with_newlines_only(mark):
    with pytest.raises(ZeroDivisionError) as caught:
        run('# %s a\nx = u"%s"\nprint 1 / 0\n' % (mark, mark))
    assert traceback.extract_tb(caught.value.__traceback__)[2].lineno == 3
    error = error_of('# %s a\nx = u"%s"\nprint "a"\ny = = 1\n' % (mark, mark))
    assert error.text in ('print "a"\n', 'y = = 1\n')


@needs_fissix
@pytest.mark.skipif(sys.version_info < (3, 11), reason='code has columns since Python 3.11')
def test_columns_are_those_of_the_file_or_none():
    source = 'import os; x = 0\nprint "a", 1 \ny = (1 % x)\n'
    code = old_source.compile_source(source, 'x.py')
    columns = {}
    for line, _, column, _ in code.co_positions():
        columns.setdefault(line, set()).add(column)
    assert columns[2] == {None}
    assert {5, 9} <= columns[3]


@needs_fissix
@pytest.mark.parametrize(
    'source, line, reason',
    [
        ('x = 1\nprint "a"\nif x == print: pass\n', 3, 'Python 2 that cannot be translated'),
        ('print "a"\nx = 1\ny = = 1\n', 1, 'Python 2 that cannot be translated'),
        ('print "a"\nx = (1\n', 1, ''),
        ('print "a"\nnonlocal x\n', 2, 'nonlocal'),
        ('print "a"\ndef f():\n    return = 1\n', 1, ''),
    ],
)
def test_what_cannot_be_translated_is_told_by_line_and_reason(source, line, reason):
    error = error_of(source)
    assert error.filename == 'x.py'
    assert reason in error.msg
    assert error.text.rstrip('\n') == source.split('\n')[error.lineno - 1]


@needs_fissix
def test_a_fault_of_the_translator_is_told_as_one(monkeypatch):
    def fail(*args):
        raise IndexError('pop from empty list')

    monkeypatch.setattr(python2.refactor.RefactoringTool, 'refactor_string', fail)
    error = error_of('x = 1\nprint "a"\n')
    assert 'IndexError in the translator: pop from empty list' in error.msg
    assert error.filename == 'x.py'


@needs_fissix
def test_what_the_translator_is_unsure_of_is_logged_with_its_line(caplog):
    with caplog.at_level(logging.WARNING, logger='kafka.cli.python2'):
        run('print "a"\n\ndef f():\n    raise "text"\n')
    (record,) = caplog.records
    assert record.getMessage().startswith('x.py, line 4: translated from Python 2: could not')
    assert 'string exceptions' in record.getMessage()


@needs_fissix
def test_names_that_are_gone_are_logged_with_their_lines(caplog):
    """Where the module has them from elsewhere they are its own business."""
    with caplog.at_level(logging.WARNING, logger='kafka.cli.python2'):
        old_source.compile_source(
            'import sys\n'
            'print reduce(max, [1])\n'
            'ask = raw_input\n'
            'lines.sort(cmp)\n'
            'from x import file\n'
            'def buffer(long): return file, long, buffer\n',
            'x.py',
        )
    assert [r.getMessage() for r in caplog.records] == [
        'x.py, line 3: translated from Python 2: raw_input does not exist in Python 3',
        'x.py, line 4: translated from Python 2: cmp does not exist in Python 3',
    ]


@needs_fissix
def test_imports_beside_the_file_are_meant_in_packages_only(programs):
    """Python 2 looks there first in a package; at the top level there is only one place."""
    part = 'print "part", __name__\n'
    programs.write(
        {
            '__init__.py': '',
            'pack/__init__.py': 'import part\nprint "pack"\n',
            'pack/part.py': part,
        },
        program='import part\nimport pack\nprint "program"\n',
        part=part,
    )
    ended = programs.ours('program.py')
    assert (ended.out, ended.err) == ('part part\npart pack.part\npack\nprogram\n', '')


TOLD = (
    'str keys and values of messages are encoded as utf-8: text mode is on '
    '(KAFKA_LEGACY_TEXT, kafka.util.set_text_mode; kafka run --no-text)\n'
)


@needs_fissix
def test_a_user_without_a_cache_directory_is_served(programs):
    """The user of a daemon, for one."""
    programs.write({'file': ''}, program='print "x"\n')
    env = {'XDG_CACHE_HOME': str(programs.directory / 'file'), 'HOME': '/dev/null'}
    assert programs.ours('program.py', env=env) == (0, 'x\n', '')


PRODUCER = """\
#!/usr/bin/env python
# -*- coding: utf-8 -*-
import sys, time
import Queue
from optparse import OptionParser

class Producer(object):
    def __init__(self, async=False, batch_send_every_n=20):
        self.async = async
        self.sent = []
    def send_messages(self, topic, *msg):
        self.sent.extend(msg)

def main(argv):
    parser = OptionParser()
    parser.add_option('-n', '--number', type='int', default=2)
    options, args = parser.parse_args(argv)
    producer = Producer(async=True)
    for i in xrange(options.number):
        try:
            producer.send_messages('topic', "message %d at %s" % (i, time.time() > 0))
        except Exception, e:
            print >>sys.stderr, "failed:", e
            raise
    print "sent %d messages, async: %s" % (len(producer.sent), producer.async)
    print "half of it:", options.number / 2
    return args[0]

if __name__ == '__main__':
    sys.exit(int(main(sys.argv[1:])))
"""
LAG_CHECKER = """\
import json, urllib2
offsets = {'a': {0: 10L, 1: 20L}, 'b': {0: 5}}
committed = {'a': {0: 7}, 'b': {}}
total = 0
for topic, partitions in sorted(offsets.iteritems()):
    for partition in sorted(partitions.keys()):
        if not committed[topic].has_key(partition):
            print 'no commit for %s:%d' % (topic, partition)
            continue
        lag = partitions[partition] - committed[topic][partition]
        total += lag
        print topic, partition, lag
print json.dumps({'lag': total, 'average': total / len(offsets)}, sort_keys=True)
assert total <> 0, `total`
"""
PIPE = """\
import sys
from StringIO import StringIO
import ConfigParser
config = ConfigParser.ConfigParser()
config.add_section('kafka')
config.set('kafka', 'hosts', 'a:1, b:2')
hosts = map(lambda h: h.strip(), config.get('kafka', 'hosts').split(','))
print hosts, filter(None, ['', 'x']), zip([1], [2])
line = raw_input()
print unicode(line).upper(), line.encode('utf-8').decode('utf-8') == line
for number, line in enumerate(sys.stdin.readlines()):
    sys.stdout.write("%2d %s" % (number, line))
"""
MESSAGES = """\
# Hand-made messages in native strings.
import kafka, sys
from kafka.common import KafkaUnavailableError, ProduceRequest
from kafka.protocol import KafkaProtocol, create_message
def encoded(values):
    messages = map(create_message, values)
    request = ProduceRequest('topic', 0, messages)
    return KafkaProtocol.encode_produce_request('client', 1, [request])
try:
    print len(encoded(['one', b'two', u'drei']))
    raise KafkaUnavailableError, "no broker"
except KafkaUnavailableError, e:
    print >>sys.stderr, "unavailable: %s" % e
    sys.exit(len(encoded([])) / 10)
"""
THREADS = """\
import Queue, threading, time
class Worker(threading.Thread):
    daemon = True
    def __init__(self, queue, async=False):
        threading.Thread.__init__(self)
        self.queue, self.async, self.seen = queue, async, {}
    def run(self):
        while True:
            (topic, value) = self.queue.get()
            if value is None: break
            self.seen.setdefault(topic, []).append(value)
            if not self.async: time.sleep(0)
queue = Queue.Queue()
workers = [Worker(queue, async=i % 2 == 0) for i in range(2)]
for w in workers: w.start()
for value in xrange(10): queue.put(('t%d' % (value % 2), value))
for w in workers: queue.put((None, None))
for w in workers: w.join()
total = {}
for w in workers:
    for topic, values in w.seen.iteritems():
        total[topic] = total.get(topic, 0) + sum(values)
print sorted(total.items(), key=lambda (topic, n): -n), sum(total.values()) / 2
"""


@needs_fissix
@pytest.mark.parametrize(
    'source, args, stdin, status, out, err',
    [
        (
            PRODUCER,
            ['-n', '5', '4'],
            b'',
            4,
            'sent 5 messages, async: True\nhalf of it: 2\n',
            '',
        ),
        (
            LAG_CHECKER,
            [],
            b'',
            0,
            'a 0 3\nno commit for a:1\nno commit for b:0\n{"average": 1, "lag": 3}\n',
            '',
        ),
        (
            PIPE,
            [],
            b'first\nsecond\n',
            0,
            "['a:1', 'b:2'] ['x'] [(1, 2)]\nFIRST True\n 0 second\n",
            '',
        ),
        (
            MESSAGES,
            ['topic'],
            b'',
            4,
            '137\n',
            TOLD + 'unavailable: KafkaUnavailableError: no broker\n',
        ),
        (THREADS, [], b'', 0, "[('t1', 25), ('t0', 20)] 22\n", ''),
    ],
    ids=['producer', 'lag checker', 'pipe', 'messages', 'threads'],
)
def test_programs_of_that_time_run(programs, source, args, stdin, status, out, err):
    programs.write(program=source)
    assert programs.ours('program.py', *args, stdin=stdin) == (status, out, err)


CONSUMER = """
    from kafka import SimpleConsumer
    from test.fake_client import FakeClient
    consumer = SimpleConsumer(FakeClient((0, 1)), None, "topic", auto_commit=False)
    for message in consumer.get_messages():
        print message.message.value,
        print message.message.value == "0"
"""


@needs_fissix
def test_what_is_consumed_is_bytes_and_lines_that_compare_it_with_text_are_named(programs):
    programs.write(program=CONSUMER)
    status, out, err = programs.ours('program.py', flags=['-b'])
    assert (status, out) == (0, "b'0' False\n")
    assert 'program.py:7: BytesWarning' in err
