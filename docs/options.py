"""Write ``options.rst``: every option of every client, from the option table.

    python3 docs/options.py

``test/config/test_option_documents.py`` fails while the page and the table differ.
"""

from __future__ import annotations

import math
import os
import sys

DOCS = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(DOCS, 'options.rst')
sys.path.insert(0, os.path.dirname(DOCS))

from kafka import config  # noqa: E402 - found once the path is set
from kafka.config.consumer_table import CONSUMING, OF_0_9_5  # noqa: E402
from kafka.config.producer_table import PRODUCING  # noqa: E402
from kafka.config.security_table import SECURITY  # noqa: E402
from kafka.config.shared_table import SHARED  # noqa: E402

INTRODUCTION = """\
Options
=======

..
    Written by docs/options.py: change kafka/config/ and run it.

What the constructors take as keyword arguments. Times are given in milliseconds, sizes in bytes.
An unknown name, a value of a wrong type or out of range, and options that contradict each other
raise ``InvalidOptionError``, which is a ``KafkaConfigurationError``, a ``ValueError`` and an
``AssertionError``; ``KafkaClient`` and ``BrokerConnection`` ignore unknown names.
Values that may be secrets are never shown.

Clients: P ``KafkaProducer``, C ``KafkaConsumer``, A ``KafkaAdminClient``, K the evented
``KafkaClient``, N ``BrokerConnection``. The clients of 0.9.5 take the options of `Security`_ too.

The defaults suit programs of all eras. ``dialect='2.0.2'``, the environment variable
``KAFKA_LEGACY_DIALECT=2.0.2``, or ``kafka.config.set_dialect('2.0.2')`` select those of a release
for programs that rely on them; earlier defaults are listed with each option.
"""

ROOMS = [
    ('Producer', PRODUCING),
    ('Consumer', CONSUMING),
    ('All clients', {name: row for name, row in SHARED.items() if not row.is_ignored}),
    ('Security', SECURITY),
    ('KafkaConsumer of 0.9.5', OF_0_9_5),
]


def wanted():
    """Return the page generated from the table."""
    parts = [INTRODUCTION]
    for title, rows in ROOMS:
        parts.append('\n\n%s\n%s\n' % (title, '-' * len(title)))
        parts += ['\n' + _entry(row) for row in rows.values()]
    ignored = [row.name for row in SHARED.values() if row.is_ignored]
    parts.append(
        '\n\nAccepted and ignored\n--------------------\n\n'
        '%s: no effect, because what they configure does not exist here.\n'
        % ', '.join('``%s``' % name for name in ignored)
    )
    return ''.join(parts)


def current():
    """Return the page as it is."""
    with open(PAGE, encoding='utf-8') as file:
        return file.read()


def _entry(row):
    letters = ''.join(row.faces).replace('T', '')
    lines = ['``%s``' % row.name]
    facts = ['clients %s' % letters] if letters else []
    facts.append('default %s' % _default(row))
    facts.append(row.kind.text)
    lines.append('    %s' % row.doc)
    lines.append('')
    lines.append('    *%s.*' % '; '.join(facts))
    earlier = [
        '%s up to %s%s' % (_shown(value), last, '' if len(row.faces) == 1 else ' (%s)' % who)
        for last, who, value in row.until
    ]
    remarks = [
        '%s: %s.' % (label, text)
        for label, text in [
            ('Earlier defaults', ', '.join(earlier)),
            ('Deprecated name', ', '.join(row.old)),
            ('In Java', row.java_name or ''),
            ('Elsewhere', ', '.join(row.dotted)),
            ('A secret', 'never shown' if row.kind.is_secret else ''),
        ]
        if text
    ]
    if remarks and 'T' != ''.join(row.faces):
        lines += ['', '    ' + ' '.join(remarks)]
    return '\n'.join(lines) + '\n'


def _default(row):
    found = {}
    for letter in row.faces:
        face = next(face for face in config.FACES if face.letter == letter)
        if letter != 'T' or len(row.faces) == 1:
            found.setdefault(_shown(row.default_for(face)), []).append(letter)
    if len(found) == 1:
        return next(iter(found))
    return ', '.join('%s (%s)' % (text, ''.join(who)) for text, who in found.items())


def _shown(value):
    if value == math.inf:
        return 'infinite'
    return 'a function' if callable(value) else repr(value)


def main():
    """Bring ``options.rst`` up to date."""
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(wanted())


if __name__ == '__main__':
    main()
