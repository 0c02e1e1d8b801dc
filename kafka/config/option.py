"""The rows of the option table, the faces (public classes that take options), and the dialects.

A dialect is a range of earlier releases, named after one of them. The rows themselves are in
``shared_table.py``, ``producer_table.py`` and so on.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Union

from kafka.config.kinds import Kind

#: The dialects, oldest first. The defaults without a dialect suit programs of all of them.
DIALECTS = ('0.9.5', '1.2', '1.4', '2.0', '2.3', '3.0')


class Face(NamedTuple):
    """A public class that takes options. letter: used in the table; is_lenient: whether it ignores
    options that it does not have, as the connection and the evented client always did."""

    letter: str
    title: str
    is_lenient: bool = False


PRODUCER = Face('P', 'KafkaProducer')
CONSUMER = Face('C', 'KafkaConsumer')
ADMIN = Face('A', 'KafkaAdminClient')
CLIENT = Face('K', 'KafkaClient', is_lenient=True)
CONNECTION = Face('N', 'BrokerConnection', is_lenient=True)
TOWER = Face('T', 'KafkaConsumer of 0.9.5')
FACES = (PRODUCER, CONSUMER, ADMIN, CLIENT, CONNECTION, TOWER)

#: (last dialect with this default, letters of the faces, default), in the order of dialects.
Earlier = Tuple[str, str, Any]


class Option(NamedTuple):
    """A row of the table.

    name: the keyword argument. kind: of its values. default: with the present release. faces:
    letters of its faces, or defaults by letter. doc: its purpose. until: the defaults
    of earlier dialects. java: its dotted name in Java, '' for the same words with dots, None if it
    does not exist there. dotted: other dotted names, those of librdkafka. old: deprecated names,
    still accepted. is_ignored: accepted without effect. since: the first release with it, '' for
    this package.
    """

    name: str
    kind: Kind
    default: Any
    faces: Union[str, Mapping[str, Any]]
    doc: str
    until: Tuple[Earlier, ...] = ()
    java: Optional[str] = ''
    dotted: Tuple[str, ...] = ()
    old: Tuple[str, ...] = ()
    is_ignored: bool = False
    since: str = '1.0'

    @property
    def java_name(self) -> Optional[str]:
        """The dotted name in Java, or None."""
        return self.name.replace('_', '.') if self.java == '' else self.java

    def default_for(self, face: Face, dialect: Optional[str] = None) -> Any:
        """Return the default.

        dialect: one of DIALECTS; None for the usual defaults. 0.9.5, which had none of these
        clients, means the same.
        """
        if dialect not in (None, DIALECTS[0]):
            at = DIALECTS.index(dialect)
            for last, letters, value in self.until:
                if face.letter in letters and at <= DIALECTS.index(last):
                    return _own(value)
        if isinstance(self.faces, str):
            return _own(self.default)
        return _own(self.faces[face.letter])


def _own(value: Any) -> Any:
    """Return a copy of a default that is mutable, so that the table stays as it is."""
    return list(value) if isinstance(value, list) else value


def dialect_of(release: str) -> Optional[str]:
    """Return the dialect that a release such as ``2.0.2`` belongs to, None if there is none."""
    found = re.match(r'(\d{1,3})\.(\d{1,3})(\.\d{1,3})*$', release)
    if not found:
        return None
    number = int(found.group(1)), int(found.group(2))
    if number[0] == 0:
        return '0.9.5' if number[1] == 9 else None
    for last, dialect in _LAST:
        if number <= last:
            return dialect
    return None


_LAST = (((1, 2), '1.2'), ((1, 99), '1.4'), ((2, 0), '2.0'), ((2, 99), '2.3'), ((3, 99), '3.0'))

Table = Dict[str, Option]


def table(*options: Option) -> Table:
    """Return rows by name; no name may occur twice."""
    found = {option.name: option for option in options}
    assert len(found) == len(options)
    return found
