"""The programs of test/programs that consume with the interface of 0.9.5.

A table; programs.py says how to read it.
"""

from __future__ import annotations

from test.integration.programs import AB, ANY, NO_ANSWER, RUN, Program, numbered

WORKERS = (
    '2 processes for 2 partitions\nfull slices: True\n'
    '0 left 0\n0 left 1\n0 left 2\n0 left 3\n0 left 4\n1 right 0\n1 right 1\n1 right 2\n'
    '0 processes left\n'
)
OLD_NAME = r'[^\n]*metadata_broker_list[^\n]*\n'
WATCHED = (
    "%(topic)s:0:0: key=b'k' value=b'fire'\n"
    "%(topic)s:0:1: key=None value=b'water'\n"
    '2 alerts, committed: True\n'
)
OUT_OF_RANGE = r'topic=[^\n]*: offset out of range\n'

PROGRAMS = [
    # --- 0.9.5: SimpleConsumer ------------------------------------------------------------------
    Program(
        'tail.py',
        '-n 3 %(hosts)s %(topic)s',
        finds={'topic': AB},
        prints=(
            're:0:3 a3\n(0:3 a3\n)?1:1 b1\n1:2 b2\n(1:2 b2\n)?'
            '== 1 shown again besides 1\n== 3 shown\n'
        ),
        sort=True,
        since='0.8.1',
    ),
    Program(
        'tail.py',
        '-a %(hosts)s %(topic)s',
        name='tail-all',
        finds={'topic': {1: [b'lonely']}},
        prints='1:0 lonely\n== 0 shown again besides 1\n== 1 shown\n',
        logs=OUT_OF_RANGE,
        sort=True,
        since='0.8.1',
    ),
    Program(
        'batch_loader.py',
        '%(hosts)s %(group)s %(topic)s %(dir)s/lines.db',
        finds={'topic': {0: numbered('left', 60), 1: numbered('right', 30)}},
        prints='batches of [40, 40, 10, 0]\nrows: 90, places: [(0, 60), (1, 30)]\n',
        again='batches of [0]\nrows: 90, places: [(0, 60), (1, 30)]\n',
        commits={'group': {0: 60, 1: 30}},
        since='0.8.1',
    ),
    Program(
        'checkpoint_reader.py',
        '%(hosts)s %(topic)s %(dir)s/place.json',
        finds={'topic': AB},
        files={'place.json': '{"0": 2, "1": 1}'},
        prints='starting at [(0, 2), (1, 1)]\nsaw a2 a3 b1 b2\n',
        again='starting at [(0, 4), (1, 3)]\nsaw \n',
    ),
    Program(
        'partition_audit.py',
        finds={
            'topic': {
                0: [(b'k%d' % (i % 3), b'%d' % i) for i in range(40)],
                1: [(b'k%d' % (i % 2 * 2 + 2), b'%d' % i) for i in range(30)],
            }
        },
        prints=(
            'partition 0: 40 messages, holes before []\n'
            'partition 1: 30 messages, holes before []\n'
            '4 keys, moved: k2\n'
            'OffsetAndMessage tuple\n'
        ),
    ),
    Program(
        'queue_monitor.py',
        '',
        environment={
            'KAFKA_BROKERS': '%(hosts)s',
            'QUEUE': '%(topic)s',
            'WORKERS': '%(group)s',
        },
        finds={'topic': AB},
        stored={'group': {0: 1, 1: 0}},
        prints=(
            're:start      6 = 3 \\+ 3\n'
            '5 done     1 = (1 \\+ 0|0 \\+ 1)\n'
            '2 new      3 = (3 \\+ 0|2 \\+ 1)\n'
            'skipped    0 = 0 \\+ 0\n'
        ),
        leaves={'topic': {0: [*AB[0], b'new', b'newer'], 1: AB[1]}},
        commits={'group': {0: 1, 1: 0}},
        since='0.8.1',
    ),
    Program(
        'nightly_batch.py',
        '--brokers %(hosts)s %(dead)s --group %(group)s --every 10 %(topic)s',
        finds={'topic': {0: numbered('line', 8), 1: numbered('line', 9, 10)}},
        prints=(
            '17 messages, last in order: line 7\n'
            'uncommitted before stop: 7\n'
            'uncommitted after stop: 0\n'
        ),
        again=(
            '0 messages, last in order: none\n'
            'uncommitted before stop: 0\n'
            'uncommitted after stop: 0\n'
        ),
        logs='(%s)*' % NO_ANSWER,
        commits={'group': {0: 8, 1: 9}},
        since='0.8.1',
    ),
    Program(
        'timed_commits.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: numbered('line', 7), 1: numbered('line', 3)}},
        prints='7 read\n0 uncommitted\nsecond starts at the same place: True\nleft for it: 3\n',
        since='0.8.1',
    ),
    Program(
        'mirror.py',
        '%(hosts)s %(topic)s %(new)s',
        finds={'topic': {0: numbered('left', 120), 1: [(b'k%d' % i, b'v') for i in range(60)]}},
        prints='180 copied\n',
        leaves={'new': {0: numbered('left', 120), 1: [(b'k%d' % i, b'v') for i in range(60)]}},
        since='0.8.1',
    ),
    Program(
        'word_count.py',
        '%(hosts)s %(topic)s %(other)s',
        finds={'topic': {0: [b'To be, or not', b'to be'], 1: [b'that is the question']}},
        prints='10 words, 8 different\n',
        leaves={
            'other': {
                ANY: [
                    (b'be', b'2'),
                    (b'is', b'1'),
                    (b'not', b'1'),
                    (b'or', b'1'),
                    (b'question', b'1'),
                    (b'that', b'1'),
                    (b'the', b'1'),
                    (b'to', b'2'),
                ]
            }
        },
        since='0.8.1',
    ),
    Program(
        'sharded_reader.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': AB},
        prints='0 a0 a1 a2 a3 {0: 4}\n1 b0 b1 b2 {1: 3}\n',
        again='0  {0: 4}\n1  {1: 3}\n',
        commits={'group': {0: 4, 1: 3}},
        since='0.8.1',
    ),
    Program(
        'big_messages.py',
        finds={'topic': {0: [b'x' * size for size in (10, 3000, 5, 50000, 20)]}},
        prints=(
            'more than 8192 bytes, no limit from here on\n'
            '[10, 3000, 5, 50000, 20]\n'
            'next 5, buffer starts at 1024\n'
            'a buffer above its limit is refused\n'
        ),
    ),
    Program(
        'out_of_range.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: [b'a0', b'a1'], 1: [b'b0']}},
        stored={'group': {0: 900, 1: 800}},
        prints=(
            'fail from {0: 900, 1: 800}: OffsetOutOfRangeError\n'
            'largest from {0: 900, 1: 800}: nothing\n'
            'smallest from {0: 900, 1: 800}: a0 a1 b0\n'
            'by hand: 0\n'
            'by hand: 2\n'
        ),
        logs='(%s)+' % OUT_OF_RANGE,
        commits={'group': {0: 2, 1: 1}},
        since='0.8.1',
    ),
    Program(
        'console_consumer.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: [b'# who', b'a0', b'a1'], 1: [b'b0', b'# what', b'b1']}},
        prints='a0\na1\nb0\nb1\n2 skipped, 0 since the last commit\n',
        again='0 skipped, 0 since the last commit\n',
        commits={'group': {0: 3, 1: 3}},
        since='0.8.1',
    ),
    Program(
        'transactional_reader.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: [b'a', b'bad b', b'c', b'd', b'e'], 1: [b'unread']}},
        prints='back to 0 after bad b\nback to 0 after bad b\n2 failures, done: a bad b c d e\n',
        again='0 failures, done: \n',
        commits={'group': {0: 5}},
        since='0.8.1',
    ),
    Program(
        'consumer_daemon.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': AB},
        prints='ended by signal 1\na0 a1 a2 a3 b0 b1 b2\n',
        commits={'group': {0: 4, 1: 3}},
        since='0.8.1',
    ),
    # --- 0.9.5: MultiProcessConsumer ------------------------------------------------------------
    Program(
        'parallel_reader.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: numbered('left', 7), 1: numbered('right', 5)}},
        prints=(
            'script starts\n'
            '2 processes, 2 partitions\n'
            'left 0 left 1 left 2 left 3 left 4 left 5 left 6 '
            'right 0 right 1 right 2 right 3 right 4\n'
            '[(0, 7), (1, 5)]\n'
        ),
        commits={'group': {0: 7, 1: 5}},
        since='0.8.1',
    ),
    Program(
        'worker_pool.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: numbered('left', 5), 1: numbered('right', 3)}},
        prints=WORKERS,
        commits={'group': {0: 5, 1: 3}},
        since='0.8.1',
    ),
    Program(
        'worker_pool.py',
        '--spawn %(hosts)s %(group)s %(topic)s',
        name='worker_pool-spawn',
        finds={'topic': {0: numbered('left', 5), 1: numbered('right', 3)}},
        prints=WORKERS,
        commits={'group': {0: 5, 1: 3}},
        since='0.8.1',
    ),
    # --- 0.9.5: KafkaConsumer -------------------------------------------------------------------
    Program(
        'metrics_consumer.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: [b'load=3', b'disk=40', b'load=4'], 1: [b'disk=2']}},
        prints=(
            'quiet: committed something: True\n'
            'quiet: committed something: False\n'
            'disk: 42\nload: 7\n'
            'partition 0 committed at 3\npartition 1 committed at 1\n'
        ),
        again=(
            'quiet: committed something: False\n'
            'quiet: committed something: False\n'
            'partition 0 committed at 3\npartition 1 committed at 1\n'
        ),
        logs=OLD_NAME,
        commits={'group': {0: 3, 1: 1}},
        since='0.8.1',
    ),
    Program(
        'json_events.py',
        '',
        environment={
            'KAFKA_BROKERS': '%(hosts)s',
            'EVENTS_TOPIC': '%(topic)s',
            'EVENTS_GROUP': '%(group)s',
        },
        finds={
            'topic': {
                0: [b'{"user": "ada", "what": "%d"}' % i for i in range(4)],
                1: [b'{"user": "bob", "what": "%d"}' % i for i in range(3)],
            }
        },
        prints=(
            '7 events\nada: 0 1 2 3\nbob: 0 1 2\n'
            "KafkaMessage b'%(topic)s' ('topic', 'partition', 'offset', 'key', 'value')\n"
            'committed 5 of 7\n'
        ),
        since='0.8.1',
    ),
    Program(
        'assignments.py',
        '%(hosts)s %(topic)s %(other)s',
        finds={'topic': AB, 'other': {0: [b'o0'], 1: [b'o1']}},
        prints=(
            '0:a0 0:a1 0:a2 0:a3 1:b0 1:b1 1:b2\n'
            '1:b0 1:b1 1:b2\n'
            '0:a2 0:a3\n'
            '1:b0 1:b1 1:b2\n'
            '0:a0 0:a1 0:a2 0:a3 1:b0 1:b1 1:b2\n'
            '0:a0 0:a1 0:a2 0:a3\n'
            '0:a1 0:a2 0:a3 1:b2\n'
            '0:a0 0:a1 0:a2 0:a3 1:b0 1:b1 1:b2\n'
            '0:a0 0:a1 0:a2 0:a3 1:o1\n'
            '0:o0 1:b1 1:b2 1:o1\n'
            'KafkaConfigurationError\n'
            'UnknownTopicOrPartitionError\n'
            'KafkaConfigurationError\n'
        ),
        logs=OLD_NAME,
    ),
    Program(
        'offset_table.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: [b'a0', b'a1', b'a2', b'a3'], 1: [b'b0', b'b1']}},
        stored={'group': {0: 1, 1: 0}},
        prints=(
            '0: from [0] to [4]\n1: from [0] to [2]\n'
            'before\n'
            '  0: fetch 1, highwater None, commit 1, task_done None\n'
            '  1: fetch 0, highwater None, commit 0, task_done None\n'
            'after\n'
            '  0: fetch 4, highwater 4, commit 1, task_done None\n'
            '  1: fetch 2, highwater 2, commit 0, task_done 1\n'
            'committed: True, again: False\n'
            '  0: fetch 4, highwater 4, commit 1, task_done None\n'
            '  1: fetch 2, highwater 2, commit 2, task_done 1\n'
            'a copy: True\n'
        ),
        logs=OLD_NAME,
        commits={'group': {0: 1, 1: 2}},
        since='0.8.1',
    ),
    Program(
        'reconfigured.py',
        '%(dir)s/settings.json %(hosts)s %(topic)s',
        files={'settings.json': '{"fetch_min_bytes": 1, "client_id": "layers", "speed": 9}'},
        finds={'topic': AB},
        prints=(
            "unknown settings in the file: ['speed']\n"
            '7 messages\n'
            "refused: ['auto_commit_enable', 'bootstrap_servers']\n"
            "refused: ['bootstrap_servers', 'deserializer_class', 'no_such_setting']\n"
            "refused: ['auto_commit_enable', 'group_id']\n"
            'refused: []\n'
        ),
        logs=OLD_NAME,
    ),
    Program(
        'watch.py',
        '%(hosts)s %(group)s %(topic)s',
        environment={'KAFKA_LEGACY_DIALECT': '0.9.5'},
        finds={'topic': {0: [(b'k', b'fire'), b'water']}},
        prints=WATCHED,
        again='0 alerts, committed: False\n',
        commits={'group': {0: 2}},
        since='0.8.1',
    ),
    Program(
        'watch.py',
        '%(hosts)s %(group)s %(topic)s',
        name='watch-run',
        start=(*RUN, '--dialect', '0.9.5'),
        finds={'topic': {0: [(b'k', b'fire'), b'water']}},
        prints=WATCHED,
        commits={'group': {0: 2}},
        since='0.8.1',
    ),
]
