"""The programs of test/programs that are written for KafkaProducer and the evented client.

A table; programs.py says how to read it.
"""

from __future__ import annotations

from test.integration.programs import ANY, Program

SOME = ('0.9.0.1', '4.4.0')

LOG = ''.join('%s line %d of it\n' % (('web', 'db')[n % 2], n) for n in range(1, 41))
SHIPPED = [
    (
        ('web', 'db')[n % 2].encode(),
        ('{"n": %d, "text": "line %d of it"}' % (n, n)).encode(),
    )
    for n in range(1, 41)
]

PROGRAMS = [
    Program(
        'log_shipper.py',
        '%(hosts)s %(topic)s %(dir)s/app.log',
        files={'app.log': LOG},
        prints='last at offset >= 0: True\n40 shipped, 0 failed\n',
        leaves={'topic': {ANY: SHIPPED}},
        since='0.9',
        some=SOME,
    ),
    Program(
        'cluster_report.py',
        prints=(
            're:bootstrapped True\n1 broker\\(s\\)\nnode \\d+ connected True port True\n'
            'topic: partitions \\[0, 1\\]\navailable \\[0, 1\\] version True\n'
            'least loaded known: True\nin flight 0 0\n'
        ),
        since='0.9',
        some=SOME,
    ),
    Program(
        'lag_structs.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: [b'a', b'b', b'c', b'd'], 1: [b'e', b'f']}},
        stored={'group': {0: 3, 1: 1}},
        in_broker=True,
        prints=(
            'partition 0: committed 3 of 4, lag 1\npartition 1: committed 1 of 2, lag 1\ntotal 2\n'
        ),
        since='0.9',
        some=SOME,
    ),
    Program(
        'broker_probe.py',
        '%(hosts)s %(topic)s %(dead)s',
        prints=(
            'True False\nTrue\nTrue\n15 bytes of header\n3 in flight, more: True\n'
            'topic error 0, partitions [0, 1]\nat least 0.9: True\nTrue True\n'
            'refused, blacked out: True\n'
        ),
        logs=r'node 0 cannot be reached: 127\.0\.0\.1:\d+ .*Connection refused.*\n',
        since='0.9',
        some=SOME,
    ),
    Program(
        'statsd_reporter.py',
        prints=(
            "send rate above 0: True\nerrors: 0\ntags: {'client-id': 'shop'}\n"
            'latency known: True\ntopics: 1, True\nclosed reporters: 1\n30 60 42\n'
        ),
        leaves={'topic': {0: [b'order %d' % n for n in range(50)]}},
        since='0.9',
        some=SOME,
    ),
    Program(
        'client_statsd.py',
        prints=(
            '30 60 42\nconnections: 1\nlatency known: True\nof the node: True\n'
            "tags: {'client-id': 'shop'}\nin the table: True\nconnections: 0\nclosed: True\n"
        ),
        since='0.9',
        some=SOME,
    ),
    Program(
        'sync_writer.py',
        '%(hosts)s %(topic)s %(dead)s',
        prints=(
            'no brokers: True\n[0, 1]\nTrue 1 0\nTrue\ntoo large\n1 -1\n2 1 3\n'
            'refused\nrefused\nrefused\nrefused\nno metadata, True\nclosed\n'
        ),
        logs=r'[^\n]*\n*',
        leaves={'topic': {0: [], 1: [b'one', (b'gone', None), (b'k', b'old')]}},
        since='0.9',
        some=SOME,
    ),
    Program(
        'raw_structs.py',
        prints=(
            "True Audit(version=1, who='auditor', rows=[3, 5, 8])\n"
            "[(0, b'k0', True), (1, b'k1', True)]\n1 whole, then True\nTrue 1\nTrue\n"
            'produced: error 0 at 0\nfetched: error 0, highwater 2\n'
            "0 b'k0' 0\n1 b'k1' 0\nauditor\n"
        ),
        since='0.9',
        some=SOME,
    ),
    Program(
        'sharding.py',
        prints='[1, 0, 0, 1]\n2\n[524, 566, 681]\n584102524\n',
        leaves={
            'topic': {
                0: [(b'fr-1', b'paris'), b'atlantis', (b'fr-2', b'with headers')],
                1: [(b'de-1', b'berlin'), (b'de-2', b'hamburg')],
            }
        },
        since='0.9',
        some=SOME,
    ),
    Program(
        'make_topics.py',
        '%(hosts)s %(new)s',
        # Brokers before 1.0 delete no topics unless told to: the request times out, which is 7.
        prints='re:NoError\nexists\n\\[0, 1, 2\\]\n\\[[07]\\]\n',
        since='0.10.1',
        some=('0.10.2.2', '4.4.0'),
    ),
]
