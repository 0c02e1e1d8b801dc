"""The programs in the README, and in the page about reading, do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka import KafkaConsumer, KafkaProducer, SimpleClient, SimpleConsumer, TopicPartition
from kafka.consumer.bounded.reader import BoundedReader

pytestmark = [pytest.mark.integration, pytest.mark.releases(some=('4.4.0',), since='0.8.1')]

ROOT = Path(__file__).resolve().parents[2]
CONSUMING = 'docs/consuming.rst'


def run(cluster, name, page='README.rst', more='import .*', logged=rb''):
    """Run the program of a page that imports a name; return what it prints.

    Arguments: logged: a pattern of all that it may write to stderr.
    """
    text = (ROOT / page).read_text(encoding='utf-8')
    blocks = re.findall(r'\.\. code:: python\n\n((?:    .*\n|\n)+)', text)
    (code,) = [block for block in blocks if re.search(r'%s\b%s\b' % (more, name), block)]
    program = re.sub(r'(?m)^    ', '', code)
    assert '127.0.0.1:9092' in program
    done = subprocess.run(
        [sys.executable, '-W', 'error', '-'],
        input=program.replace('127.0.0.1:9092', cluster.bootstrap).encode(),
        cwd=str(ROOT),
        env={'PYTHONPATH': str(ROOT)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, re.sub(logged, b'', done.stderr)) == (0, b'')
    return done.stdout


def test_the_program_of_2015_reads_what_it_wrote(cluster):
    printed = run(cluster, 'SimpleProducer')
    assert re.findall(rb"b'(\w+)'", printed) in ([b'hello', b'world'], [b'world', b'hello'])


def test_the_consumer_reads_what_the_producer_wrote(cluster):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        stored = producer.send('numbers', b'told', key=b'first').get(timeout=30)
    line = b"%d %d b'first' b'told'" % (stored.partition, stored.offset)
    assert line in run(cluster, 'KafkaConsumer').splitlines()


def test_the_records_of_the_producer_are_stored(cluster):
    printed = run(cluster, 'KafkaProducer')
    assert re.fullmatch(rb'partition \d, offset \d+\n998 more are stored\n', printed)
    client = SimpleClient(cluster.bootstrap)
    consumer = SimpleConsumer(client, None, 'numbers', auto_commit=False, iter_timeout=2)
    found = {each.message.value for each in consumer}
    client.close()
    assert found >= {b'one', *(b'%d' % number for number in range(2, 1000))}


@pytest.fixture
def numbers(cluster):
    """Write five records and return how many the topic has now."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_many('numbers', [b'%d' % number for number in range(5)]).get(timeout=30)
    with BoundedReader('numbers', bootstrap_servers=cluster.bootstrap) as reader:
        return sum(each.length for each in reader.ranges())


def test_lists_bring_every_record(cluster, numbers):
    printed = run(cluster, 'max_records', CONSUMING, more='')
    assert len(re.findall(rb"b'\w+'", printed)) == numbers
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id='lists') as consumer:
        places = [TopicPartition('numbers', n) for n in consumer.partitions_for_topic('numbers')]
        assert sum(consumer.committed(each) or 0 for each in places) == numbers


def handed_out(printed):
    """Return the sum of what stands last in each line: how many records a partition brought."""
    return sum(int(line.split()[-1]) for line in printed.splitlines())


@pytest.mark.releases(since='0.9')
def test_an_assignor_of_the_page_is_chosen(cluster, numbers):
    got, *shares = run(cluster, 'WholeTopics', CONSUMING, more='').splitlines()
    assert got.startswith(b"got [TopicPartition(topic='numbers', partition=0)")
    assert 0 < handed_out(b'\n'.join(shares)) <= numbers


@pytest.mark.releases(since='0.9')
def test_a_listener_commits_what_was_handled(cluster, numbers):
    printed = run(cluster, 'ConsumerRebalanceListener', CONSUMING)
    assert b'begins with 0 at 0' in printed.splitlines()
    assert len(re.findall(rb"(?m)^b'\w+'$", printed)) == numbers
    with KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id='handled') as consumer:
        places = [TopicPartition('numbers', n) for n in consumer.partitions_for_topic('numbers')]
        assert sum(consumer.committed(each) or 0 for each in places) == numbers


@pytest.mark.releases(since='0.9')
def test_a_long_handler_gets_every_record(cluster, numbers):
    printed = run(cluster, 'ThreadPoolExecutor', CONSUMING)
    assert sum(map(int, re.findall(rb'(\d+) handled', printed))) == numbers


def test_a_commit_tells_its_callback(cluster, numbers):
    printed = run(cluster, 'commit_async', CONSUMING, more='')
    lines = re.findall(rb'(?m)^(\d+) (\d+) by host-1 is stored$', printed)
    assert len(lines) == len(printed.splitlines())
    assert sum({partition: int(offset) for partition, offset in lines}.values()) == numbers


@pytest.mark.releases(since='0.10.1')
def test_the_last_hour_is_everything_here(cluster, numbers):
    assert handed_out(run(cluster, 'an_hour_ago', CONSUMING, more='')) == numbers


@pytest.mark.releases(since='0.9')
def test_what_is_no_number_is_named_and_stepped_over(cluster, numbers):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        stored = producer.send('numbers', b'none').get(timeout=30)
        producer.send('numbers', b'1000', partition=stored.partition).get(timeout=30)
    logged = rb'ValueError was raised for the record at offset .*\n'
    lines = run(cluster, 'CorruptRecordError', CONSUMING, logged=logged).splitlines()
    assert b'no number: %d %d' % (stored.partition, stored.offset) in lines
    sums = [int(line) for line in lines if not line.startswith(b'no number')]
    options = {'bootstrap_servers': cluster.bootstrap, 'isolation_level': 'read_committed'}
    with BoundedReader('numbers', **options) as reader:
        assert sum(sums) == sum(int(each.value) for each in reader if each.value.isdigit())


@pytest.mark.releases(since='2.5')
def test_records_are_transformed_once(cluster, numbers):
    assert re.fullmatch(rb'[1-9]\d* transactions\n', run(cluster, 'ExactlyOnce', CONSUMING))
    options = {'bootstrap_servers': cluster.bootstrap, 'isolation_level': 'read_committed'}
    with BoundedReader('doubled', **options) as doubled, BoundedReader('numbers', **options) as of:
        assert sorted(each.value for each in doubled) == sorted(each.value * 2 for each in of)


def test_ranges_are_read_to_their_ends(cluster, numbers):
    pytest.importorskip('pyarrow')
    printed = run(cluster, 'BoundedReader', CONSUMING)
    assert printed.endswith(b'%d records\n%d rows\n' % (numbers, numbers))
