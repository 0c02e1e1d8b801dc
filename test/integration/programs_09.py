"""The programs of test/programs that produce, or do by hand, with the interface of 0.9.5.

A table; programs.py says how to read it.
"""

from __future__ import annotations

from test.integration.programs import (
    AB,
    ANY,
    ASYNC,
    NO_ANSWER,
    STOP,
    Program,
    keys_stay_together,
    numbered,
    what_was_accepted,
)

CSV = 'key,from,to\nr1,here,there\nr2,north,south\nr3,up,down\n'
SAID = b'{"error": %s, "level": "%s", "logger": "shop.cart", "text": "%s"}'

PROGRAMS = [
    # --- 0.9.5: producers -----------------------------------------------------------------------
    Program(
        'log_handler.py',
        leaves={
            'topic': {
                0: [SAID % (b'null', b'INFO', b'added 2 of caf\\u00e9')]
                + [SAID % (b'"\'missing\'"', b'ERROR', b'no such item')],
                1: [SAID % (b'null', b'WARNING', b'stock is low')],
            }
        },
    ),
    Program(
        'keyed_prompt.py',
        stdin='red 1\ngreen 2 and more\nnothing\nblue 3\nred 4\n\nred 5\n',
        prints='> > > key and value, please\n> > > \n4 sent\n',
        logs=STOP,
        wrote=keys_stay_together,
    ),
    Program(
        'murmur_router.py',
        prints=(
            'a login -> 0 (hash 2731586172)\n'
            'ab login -> 0 (hash 316155434)\n'
            'abc login -> 1 (hash 479470107)\n'
            'test login -> 1 (hash 716234879)\n'
            'foo login -> 0 (hash 597841616)\n'
            '123456789 login -> 0 (hash 2472730214)\n'
            'a logout -> 0 (hash 2731586172)\n'
            'foo logout -> 0 (hash 597841616)\n'
            "partitioners for ['%(topic)s']\n"
        ),
        leaves={
            'topic': {
                0: [
                    (b'a', b'login'),
                    (b'ab', b'login'),
                    (b'foo', b'login'),
                    (b'123456789', b'login'),
                    (b'a', b'logout'),
                    (b'foo', b'logout'),
                ],
                1: [(b'abc', b'login'), (b'test', b'login')],
            }
        },
    ),
    Program(
        'csv_loader.py',
        '--brokers=%(hosts)s --topic %(topic)s --skip-header %(dir)s/rows.csv',
        files={'rows.csv': CSV},
        prints='partition 0: 2 rows\npartition 1: 1 rows\n',
        leaves={
            'topic': {
                0: [(b'r1', b'here|there'), (b'r3', b'up|down')],
                1: [(b'r2', b'north|south')],
            }
        },
    ),
    Program(
        'region_partitioner.py',
        '',
        environment={'KAFKA_BROKERS': '%(hosts)s', 'ORDERS_TOPIC': '%(topic)s'},
        prints='RegionPartitioner placed 7 orders on [0, 1]\n',
        leaves={
            'topic': {
                0: [
                    (b'de', b'order 0'),
                    (b'fr', b'order 2'),
                    (b'de', b'order 4'),
                    (b'se', b'order 6'),
                ],
                1: [(b'us', b'order 1'), (b'jp', b'order 3'), (b'br', b'order 5')],
            }
        },
    ),
    Program(
        'codec_matrix.py',
        prints=(
            'none   level None offset   0 end  25\n'
            'gzip   level None offset  25 end  50\n'
            'gzip   level 1    offset  50 end  75\n'
            'gzip   level 9    offset  75 end 100\n'
            'snappy level None offset 100 end 125\n'
            'refused: UnsupportedCodecError\n'
        ),
        leaves={'topic': {0: [b'line %03d ' % i * 4 for i in range(25)] * 5}},
    ),
    Program(
        'async_counter.py',
        '%(dir)s/counter.ini',
        files={
            'counter.ini': '[kafka]\nbrokers = %(hosts)s\ntopic = %(topic)s\n[job]\ncount = 100\n'
            '[producer]\nasync = yes\nbatch_size = 30\nbatch_seconds = 60\n'
        },
        prints='answers: 100, all empty: True\n',
        closes=False,
        logs=ASYNC,
        leaves={
            'topic': {
                0: [b'n=%d' % number for number in range(0, 100, 2)],
                1: [b'n=%d' % number for number in range(1, 100, 2)],
            }
        },
    ),
    Program('bounded_queue.py', prints='re:.*', logs=ASYNC, wrote=what_was_accepted),
    Program(
        'thread_pool.py',
        prints='400 rows sent by 4 threads\n',
        leaves={'topic': {ANY: [b'row %03d' % i for i in range(400)]}},
    ),
    Program(
        'metered_producer.py',
        prints='4 calls, took time: True, acks 1, timeout 3000\nconsecutive: [0, 1, 2], acks -1\n',
        leaves={
            'topic': {
                ANY: [
                    *[b'first %d' % i for i in range(3)],
                    *[b'metered %d' % i for i in range(4)],
                    (b'user:7', b'prefixed'),
                ]
            }
        },
    ),
    Program(
        'tombstones.py',
        prints="warned: ['DeprecationWarning']\none ['1']\nthree []\ntwo ['2']\n",
        leaves={
            'topic': {
                0: [(b'one', b'1'), (b'one', None)],
                1: [(b'two', b'2'), (b'three', None)],
            }
        },
    ),
    Program(
        'flush_timer.py',
        prints='2 flushes\n',
        leaves={'topic': {ANY: [b'early:1|c', b'late:2|c']}},
    ),
    Program(
        'preforked.py',
        prints='children ended with [0, 0, 0]\n',
        leaves={
            'topic': {
                ANY: [
                    *[b'worker %d item %d' % (n, i) for n in range(3) for i in range(5)],
                    *[b'parent ' + when for when in (b'before', b'beside', b'after')],
                ]
            }
        },
    ),
    # --- 0.9.5: by hand -------------------------------------------------------------------------
    Program(
        'raw_requests.py',
        '%(broker)s %(topic)s',
        prints=(
            'produced: [(0, 0, 0)]\n'
            'ends: [(0, 0, (3,)), (1, 0, (0,))]\n'
            'fetched: partition 0, error 0, high water mark 3\n'
            "  1 b'k' b'two'\n"
            "  2 None b'three'\n"
        ),
        leaves={'topic': {0: [b'one', (b'k', b'two'), b'three']}},
    ),
    Program(
        'raw_metadata.py',
        '%(hosts)s %(topic)s %(group)s',
        prints=(
            'broker 0 at %(broker)s\n'
            'topic %(topic)s, error 0\n'
            '  0: leader 0, replicas [0], in sync [0]\n'
            '  1: leader 0, replicas [0], in sync [0]\n'
            'coordinator 0 at %(broker)s\n'
        ),
        since='0.8.2',
    ),
    Program(
        'compressed_sets.py',
        prints=(
            'codecs [1]: written at 0\n'
            'codecs [2]: written at 5\n'
            'codecs [1]: written at 10\n'
            'codecs [0, 0]: written at 15\n'
            'codecs [0, 0]: written at 17\n'
            "['1/19', '0/0']\n"
        ),
        leaves={
            'topic': {
                0: [b'lone'],
                1: [
                    *numbered('gzip', 5),
                    *[(b's', event) for event in numbered('snappy', 5)],
                    *[(b'k', event) for event in numbered('set', 5)],
                    *numbered('plain', 2),
                    b'first of two',
                    (b'with a key', b'second of two'),
                    b'last',
                ],
            }
        },
    ),
    Program(
        'binary_frames.py',
        prints=(
            "2 b'b\\xc3\\xbccher' b'\\x00\\x01' [1, -2, 3]\n"
            "2 b'empty' b'' []\n"
            "2 b'none' None [7]\n"
            'BufferUnderflowError at offset 3\n'
            '[0, 1] True\n'
        ),
        leaves={
            'topic': {
                0: [
                    b'\0\2\0\7b\xc3\xbccher\0\0\0\2\0\1\0\3\0\0\0\1\xff\xff\xff\xfe\0\0\0\3',
                    b'\0\2\0\5empty\0\0\0\0\0\0',
                    b'\0\2\0\4none\xff\xff\xff\xff\0\1\0\0\0\7',
                    b'\0\2\0\3cut\0\0\0\3xyz\0\2\0\0\0\1\0',
                ]
            }
        },
    ),
    Program(
        'error_table.py',
        prints=(
            'check_error of a good answer: None\n'
            'code 1 is OffsetOutOfRangeError (OFFSET_OUT_OF_RANGE)\n'
            '  raised as OffsetOutOfRangeError, a KafkaError: True, holds the response: True\n'
            'or at once: errno 1\n'
            'code 10 is MessageSizeTooLargeError (MESSAGE_SIZE_TOO_LARGE)\n'
            '  raised as MessageSizeTooLargeError, a KafkaError: True, holds the response: True\n'
            'no such partition: errno 3\n'
            'not in the table: []\n'
        ),
        leaves={'topic': {0: [b'fine'], 1: []}},
    ),
    Program(
        'callbacks.py',
        prints=(
            '[0, 0]\n[]\n[3, 2]\n'
            'wrote 1 at 0\n'
            'wrote 0 at 0\n'
            "read 0: [b'p0 m0', b'p0 m1', b'unheard']\n"
            "read 1: [b'p1 m0', b'p1 m1']\n"
        ),
        leaves={'topic': {0: [b'p0 m0', b'p0 m1', b'unheard'], 1: [b'p1 m0', b'p1 m1']}},
    ),
    Program(
        'lag_checker.py',
        '-b %(hosts)s -g %(group)s --warn=3 %(topic)s',
        finds={'topic': AB},
        stored={'group': {0: 3, 1: 0}},
        prints=(
            '%(topic)s/0: log 0 to 4, group at 3, lag 1\n'
            '%(topic)s/1: log 0 to 3, group at 0, lag 3\n'
            'WARNING: 4 messages behind\n'
        ),
        code=1,
        since='0.8.1',
    ),
    Program(
        'migrate_offsets.py',
        '%(hosts)s %(topic)s %(group)s %(group2)s',
        finds={'topic': AB},
        stored={'group': {0: 3, 1: 1}},
        prints=(
            '%(group)s: [(0, 3), (1, 1)]\n'
            '%(group2)s before: []\n'
            '2 offsets written\n'
            '%(group2)s after: [(0, 3), (1, 1)]\n'
        ),
        again=(
            '%(group)s: [(0, 3), (1, 1)]\n'
            '%(group2)s before: [(0, 3), (1, 1)]\n'
            '2 offsets written\n'
            '%(group2)s after: [(0, 3), (1, 1)]\n'
        ),
        commits={'group2': {0: 3, 1: 1}},
        since='0.8.1',
    ),
    Program(
        'stored_in_kafka.py',
        '%(hosts)s %(topic)s %(group)s',
        finds={'topic': AB},
        stored={'group': {0: 2, 1: 1}},
        in_broker=True,
        prints='coordinator is a known broker: True\n0: 2\n1: 1\n',
        since='0.8.2',
    ),
    # --- 0.9.5: the client ----------------------------------------------------------------------
    Program(
        'health_check.py',
        '%(hosts)s %(topic)s %(other)s',
        prints='OK: 2 topics, 4 partitions|partitions=4\n',
    ),
    Program(
        'health_check.py',
        '%(hosts)s %(topic)s %(new)s',
        prints='CRITICAL: %(new)s is missing\n',
        name='health_check-missing',
        code=2,
        absent=('new',),
    ),
    Program(
        'health_check.py',
        '%(dead)s,%(dead)s %(topic)s',
        prints='UNKNOWN: no broker of 1 answers\n',
        name='health_check-dead',
        logs=NO_ANSWER * 2,
        code=3,
    ),
    Program(
        'wait_for_broker.py',
        '%(topic)s %(dead)s %(dead)s %(dead)s,%(hosts)s',
        prints=(
            'attempt 1: KafkaUnavailableError\n'
            'attempt 2: KafkaUnavailableError\n'
            'attempt 3: connected\n'
            '2 hosts known\n'
            'error 0\n'
        ),
        logs='(%s){2,4}' % NO_ANSWER,
        leaves={'topic': {ANY: [b'service is up']}},
    ),
    Program(
        'new_topics.py',
        '%(hosts)s %(new)s %(topic)s %(newer)s',
        prints='there already: 1 of 3\nnot there at once\n' + 3 * '2 partitions\n',
        leaves={name: {ANY: [b'hello']} for name in ('topic', 'new', 'newer')},
    ),
    Program(
        'metadata_cron.py',
        '%(hosts)s %(topic)s %(other)s',
        prints=(
            "at start    ['yes', 'yes']\n"
            "one reset   ['no', 'yes'] []\n"
            "loaded      ['yes', 'yes'] [0, 1]\n"
            "all reset   ['no', 'no'] 0 True\n"
            "both loaded ['yes', 'yes'] 2\n"
            "everything  ['yes', 'yes'] True\n"
            'True 0 0 True\n'
            'True True\n'
            '1 True\n'
        ),
    ),
]
