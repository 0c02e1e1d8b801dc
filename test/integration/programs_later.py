"""The programs of test/programs that are written for SimpleClient, for ``kafka run``, or with text.

A table; programs.py says how to read it.
"""

from __future__ import annotations

from test.integration.programs import (
    AB,
    ANY,
    ASYNC,
    MODULE,
    NO_ANSWER,
    RUN,
    STOP,
    Program,
    numbered,
)

# Said once, whatever is sent.
TEXT = r'[^\n]*encoded[^\n]*\n'

PROGRAMS = [
    # --- SimpleClient of 1.x --------------------------------------------------------------------
    Program(
        'lag_2016.py',
        finds={'topic': AB},
        prints='partition = 0, offset = 4\npartition = 1, offset = 3\n7 messages ever\n',
    ),
    Program(
        'payload_sender.py',
        prints='True\nTrue\nTrue 1 0 1\n',
        leaves={
            'topic': {0: [(b'k1', b'packed one'), (b'k2', b'packed two')], 1: [b'plain', b'plain']}
        },
    ),
    Program(
        'payload_fetcher.py',
        '%(hosts)s %(topic)s %(dir)s/out.txt --start 7',
        finds={'topic': AB},
        prints="4 messages below 4, problems: ['OffsetOutOfRangeError']\na0\na1\na2\na3\n",
    ),
    Program(
        'str_topics.py',
        prints=(
            'str 0 0 0\nstr 1 0 0\nstr 1 0 1\nTrue\n'
            "1 b'test' b'four'\n0 None b'one'\n0 None b'three'\n1 None b'two'\n"
            'str str 0\nTrue\nstr 3 True\n'
        ),
        leaves={'topic': {0: [b'one', b'two'], 1: [b'three', (b'test', b'four')]}},
        since='0.8.1',
    ),
    Program(
        'offset_admin.py',
        '%(hosts)s show %(group)s %(topic)s',
        finds={'topic': AB},
        stored={'group': {0: 3, 1: 2}},
        prints="0: 3 (metadata '')\n1: 2 (metadata '')\n",
        since='0.8.1',
    ),
    Program(
        'offset_admin.py',
        '%(hosts)s to-end %(group)s %(topic)s',
        name='offset_admin-set',
        finds={'topic': AB},
        prints="2 partitions set\n0: 4 (metadata '')\n1: 3 (metadata '')\n",
        commits={'group': {0: 4, 1: 3}},
        since='0.8.1',
    ),
    Program(
        'errors_1x.py',
        prints=(
            'FailedPayloadsError holds the payload: True\n'
            'or hands it back: FailedPayloadsError\n'
            'OffsetOutOfRangeError 1\n'
            'same classes: True\n'
            'check_error raises by code\n'
            'KafkaUnavailableError\n'
        ),
        logs=r'(no leader for [^\n]*\n){2}' + NO_ANSWER,
        leaves={'topic': {0: [], 1: []}},
    ),
    Program(
        'client_1x.py',
        prints=(
            '5 sent by billing\n5 to read\n'
            "['invoice 0', 'invoice 1', 'invoice 2', 'invoice 3', 'invoice 4']\n"
            'ServiceClient True\n'
        ),
        leaves={'topic': {ANY: numbered('invoice', 5)}},
    ),
    Program(
        'workers_1x.py',
        '%(hosts)s %(group)s %(topic)s',
        finds={'topic': {0: numbered('left', 6), 1: numbered('right', 4)}},
        prints=(
            '5 and 5\n'
            "['left 0', 'left 1', 'left 2', 'left 3', 'left 4', 'left 5', "
            "'right 0', 'right 1', 'right 2', 'right 3']\n"
            'True None\n'
        ),
        commits={'group': {0: 6, 1: 4}},
        since='0.8.1',
    ),
    Program(
        'reset_1x.py',
        '%(hosts)s %(group)s %(topic)s 2',
        finds={'topic': AB},
        stored={'group': {0: 4, 1: 1}},
        prints=(
            'was at [(0, 4), (1, 1)]\nnow at [(0, 2), (1, 2)]\na2\na3\nb2\n'
            'committed: True, [(0, 1), (1, 3)]\n'
        ),
        commits={'group': {0: 1, 1: 1}},
        since='0.8.1',
    ),
    # --- async as a name, Python 2 --------------------------------------------------------------
    Program(
        'fire_and_forget.py',
        '%(hosts)s %(topic)s one two three',
        start=RUN,
        prints='<SimpleProducer batch=True> fire_and_forget.py __main__ 6\n',
        closes=False,
        logs=ASYNC,
        leaves={'topic': {ANY: [b'one', b'three', b'two']}},
    ),
    Program(
        'async_attribute.py',
        '%(hosts)s %(topic)s --async',
        name='async_attribute-set',
        start=RUN,
        prints="['queued', 'queued', 'queued']\nTrue {'async': True} async=True in a text\n",
        logs=ASYNC,
        code=3,
        leaves={
            'topic': {
                0: [(b'key', b'async message 0'), (b'key', b'async message 2')],
                1: [(b'key', b'async message 1')],
            }
        },
    ),
    Program(
        'async_attribute.py',
        '%(hosts)s %(topic)s',
        start=RUN,
        prints="[0, 0, 0]\nTrue {'async': False} async=True in a text\n",
        logs=ASYNC + STOP,
        leaves={'topic': {ANY: [(b'key', b'async message %d' % i) for i in range(3)]}},
    ),
    Program(
        'reporter.daily',
        start=MODULE,
        prints=(
            '3 by __main__, async=True\n'
            "['reporter', 'reporter.settings', 'reporter.transports', "
            "'reporter.transports.kafka_transport']\n"
        ),
        logs=ASYNC,
        leaves={'topic': {0: [b'visits=120', b'refunds=1'], 1: [b'orders=7']}},
    ),
    Program(
        'reporter.daily',
        '%(hosts)s %(topic)s no',
        name='reporter.daily-sync',
        start=MODULE,
        prints='re:3 by __main__, async=False\n.*\n',
        logs=ASYNC + STOP,
        leaves={'topic': {0: [b'visits=120', b'refunds=1'], 1: [b'orders=7']}},
    ),
    Program(
        'sensors_py2.py',
        start=RUN,
        prints='odd 1\nsent 2\ndone 2\n',
        logs='(%s)?skipped bad: ValueError\n' % ASYNC,
        leaves={'topic': {ANY: [b'cellar=11', 'k\xfcche=21'.encode()]}},
    ),
    Program(
        'copier_py2.py',
        '%(dir)s/copier.cfg',
        start=RUN,
        files={
            'copier.cfg': '[copier]\nbrokers = %(hosts)s\nsource = %(topic)s\ntarget = %(other)s\n'
        },
        finds={'topic': {0: [b'1', b'20', b'x', b'300'], 1: [b'minus']}},
        prints='0 1 2 \n3 copied a%%20b\n',
        again='0 1 2 \n3 copied a%%20b\n',
        logs='(%s)?%s' % (ASYNC, TEXT),
        code=2,
        leaves={'other': {ANY: 2 * [(b'n0', b'2')] + 2 * [(b'n1', b'40')] + 2 * [(b'n2', b'600')]}},
    ),
    # --- text -----------------------------------------------------------------------------------
    Program(
        'chat.py',
        '%(hosts)s %(topic)s ada',
        start=RUN,
        stdin='hello\n',
        prints="None: b'* ada joins'\nNone: b'says hello'\nb'ada': b'hello'\n",
        logs='(%s)?%s' % (ASYNC, TEXT),
        leaves={'topic': {0: [b'* ada joins', b'says hello', (b'ada', b'hello')], 1: []}},
    ),
    Program(
        'sms_gateway.py',
        '',
        environment={
            'KAFKA_BROKERS': '%(hosts)s',
            'SMS_TOPIC': '%(topic)s',
            'KAFKA_LEGACY_TEXT': 'utf-8',
        },
        prints='0 0 0\nTrue\n',
        logs=r'kafka[\w.]* WARNING\n',
        leaves={
            'topic': {
                ANY: [
                    '5 €'.encode(),
                    b'end of audit',
                    (b'4711', '{"text": "grüße", "to": 4711}'.encode()),
                    (b'4712', b'{"text": "ok", "to": 4712}'),
                ]
            }
        },
    ),
    Program(
        'both_pythons.py',
        prints=(
            'SimpleProducer as it is 0\n'
            'SimpleProducer encoded 0\n'
            'SimpleProducer encoded 0\n'
            'KeyedProducer encoded 0\n'
            'KeyedProducer encoded 0\n'
            'refused: NoneType\nrefused: int\nrefused: list\nrefused: dict\n'
        ),
        leaves={
            'topic': {
                ANY: [
                    b'both',
                    b'both',
                    b'bytes',
                    b'text',
                    (b'key', b'bytes'),
                    (b'key', b'text'),
                ]
            }
        },
    ),
]
