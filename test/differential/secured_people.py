"""Several people, each with other rights, who all ask a secured broker the same.

Owns the people, their rights, what is left out for whom, and what an administrator prepares. What
is asked is in secured_asks.py and secured_asks_admin.py, logins are in secured_logins.py.
"""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from kafka.protocol.api import ApiKey
from kafka.testing.releases import BrokerRelease
from kafka.testing.security import acls
from kafka.testing.security.scram import ScramCredential
from test.differential.answers import plain
from test.differential.runner import (
    AGAIN_SECONDS,
    AGAIN_TIMES,
    GROUP_KEY,
    NOT_YET,
    TRANSACTION_KEY,
    Context,
    Patience,
    Recording,
    Wire,
    error_codes,
)
from test.differential.script import is_wanted, request_of, served_versions
from test.differential.secured_asks import (
    GROUP_REQUESTS,
    GROUPS,
    IDS,
    RECORDS,
    THERE,
    TOPIC_DELETIONS,
    TOPIC_REQUESTS,
    Ask,
)
from test.differential.secured_asks_admin import CLUSTER_REQUESTS, TRANSACTION_REQUESTS
from test.differential.secured_brokers import ADMIN, greeting
from test.differential.secured_logins import SCRAM_PASSWORD, SCRAM_USER

TOPIC, GROUP, CLUSTER, TRANSACTION = acls.TOPIC, acls.GROUP, acls.CLUSTER, acls.TRANSACTIONAL_ID
_ABSENT = (acls.READ, acls.WRITE, acls.DELETE, acls.ALTER, acls.ALTER_CONFIGS)
#: (who, kind, name, operations); a name that ends in an asterisk is a prefix.
RIGHTS: List[Tuple[str, int, str, Sequence[int]]] = [
    ('alice', TOPIC, 'full', [acls.ALL]),
    ('alice', TOPIC, 'seen', [acls.DESCRIBE]),
    ('alice', TOPIC, 'absent-full', _ABSENT),
    ('alice', TOPIC, 'made-*', [acls.CREATE]),
    ('alice', GROUP, 'g-full', [acls.ALL]),
    ('alice', GROUP, 'g-seen', [acls.DESCRIBE]),
    ('alice', GROUP, 'g-new', [acls.READ]),
    ('alice', TRANSACTION, 'x-full', [acls.ALL]),
    ('alice', TRANSACTION, 'x-seen', [acls.DESCRIBE]),
    ('carol', CLUSTER, acls.CLUSTER_NAME, [acls.DESCRIBE, acls.ALTER, acls.DESCRIBE_CONFIGS]),
    ('carol', TOPIC, 'hidden', [acls.DELETE]),
    ('dave', CLUSTER, acls.CLUSTER_NAME, [acls.IDEMPOTENT_WRITE, acls.CLUSTER_ACTION]),
    ('dave', CLUSTER, acls.CLUSTER_NAME, [acls.ALTER_CONFIGS]),
    ('dave', TOPIC, 'seen', [acls.ALTER, acls.DESCRIBE_CONFIGS]),
]
#: What everybody asks. Topics are deleted last of all: the last to ask may do so.
ASKS: List[Ask] = [
    *RECORDS,
    *TOPIC_REQUESTS,
    *GROUP_REQUESTS,
    *TRANSACTION_REQUESTS,
    *CLUSTER_REQUESTS,
    *TOPIC_DELETIONS,
]
#: Who asks, in this order, and whether in all versions or in the newest alone.
PEOPLE: List[Tuple[str, bool]] = [
    ('alice', True),
    ('bob', False),
    ('dave', False),
    ('carol', False),
]


class LeftOut(NamedTuple):
    """What somebody is not asked for, by its name, and why."""

    who: str
    ask: str
    reason: str


LEFT_OUT: List[LeftOut] = [
    LeftOut(
        'carol',
        'delete topics by id',
        'she has just deleted one of them by its name: how long a broker still knows the id is'
        ' chance',
    ),
]


class Person(Context):
    """Asks as somebody. ``ids`` are those of the topics that there are."""

    def __init__(
        self, address: Tuple[str, int], release: BrokerRelease, who: str, ids: Dict[str, bytes]
    ) -> None:
        super().__init__(Wire(address, greeting(release, who)), release, Patience())
        self.who = who
        self.ids = ids

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def asked(self, ask: Ask, version: int) -> Dict[str, Any]:
        """Ask something; return what is written down."""
        fields = ask.fields(version, self)
        for _ in range(AGAIN_TIMES):
            frames = self.frame(request_of(ask.api, fields, version), version)
            outcome, answer = self.exchange(ask.api, version, frames)
            if answer is None:
                return {'outcome': outcome}
            shown = _tidied(plain(answer, version, self.now_ms))
            if NOT_YET.isdisjoint(error_codes(shown)):
                break
            time.sleep(AGAIN_SECONDS)
        return {'outcome': outcome, 'answer': shown}


def _tidied(value: Any) -> Any:
    """Return an answer without texts, and lists of what has no name of its own in an order."""
    if isinstance(value, dict):
        return {
            key: '<text>' if key == 'error_message' and each else _tidied(each)
            for key, each in value.items()
        }
    if not isinstance(value, list):
        return value
    found = [_tidied(each) for each in value]
    if any(
        isinstance(each, dict) and (each.get('topic_id') == '<id>' or 'resource_type' in each)
        for each in found
    ):
        found.sort(key=lambda each: json.dumps(each, sort_keys=True))
    return found


# ---------------------------------------------------------------- preparations


def prepare(address: Tuple[str, int], release: BrokerRelease) -> Dict[str, bytes]:
    """Make users, topics, rights and offsets as an administrator; return the ids of the topics."""
    admin = Person(address, release, ADMIN, {})
    if release.version >= (2, 7):
        for number, name in ((1, 'SCRAM-SHA-256'), (2, 'SCRAM-SHA-512')):
            made = {'name': SCRAM_USER, 'mechanism': number, **_credential(name)._asdict()}
            fields = {'deletions': [], 'upsertions': [made]}
            assert not admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, fields).results[0].error_code
    ids = {name: admin.topic_id(name) for name in THERE}
    creations = [
        {
            'resource_type': kind,
            'resource_name': name.rstrip('*'),
            'resource_pattern_type': acls.PREFIXED if name.endswith('*') else acls.LITERAL,
            'principal': 'User:' + who,
            'host': '*',
            'operation': operation,
            'permission_type': acls.ALLOW,
        }
        for who, kind, name, operations in RIGHTS
        for operation in operations
    ]
    admin.ask(ApiKey.CREATE_ACLS, {'creations': creations})
    parts = [{'partition_index': 0, 'committed_offset': 7, 'committed_metadata': ''}]
    topics = [{'name': name, 'partitions': parts} for name in THERE]
    for group in GROUPS:
        admin.find_coordinator(group, GROUP_KEY)
        fields = {'group_id': group, 'generation_id_or_member_epoch': -1, 'topics': topics}
        admin.ask(ApiKey.OFFSET_COMMIT, fields, 2)
    for name in IDS:
        admin.find_coordinator(name, TRANSACTION_KEY)
    admin.close()
    return ids


def _credential(mechanism: str) -> ScramCredential:
    return ScramCredential.of(mechanism, SCRAM_PASSWORD, b'salt of twenty bytes')


def of_people(
    address: Tuple[str, int], release: BrokerRelease, ids: Dict[str, bytes], only: str = ''
) -> Recording:
    """Let everybody ask; return what they were told.

    Arguments: ids: of topics, from ``prepare``; only: parts of the names of what is wanted, with
        commas between.
    """
    recording: Recording = {}
    for who, in_all_versions in PEOPLE:
        person = Person(address, release, who, ids)
        for label, ask, version in asked_by(who, in_all_versions, release):
            if is_wanted(label, only):
                recording[label + '/ask'] = person.asked(ask, version)
        person.close()
    return recording


def asked_by(
    who: str, in_all_versions: bool, release: BrokerRelease
) -> Iterator[Tuple[str, Ask, int]]:
    """Yield what somebody asks of a release: what recordings call it, and the version."""
    left_out = {each.ask for each in LEFT_OUT if each.who == who}
    for ask in ASKS:
        first, last = ask.versions
        versions = [v for v in served_versions(ask.api, release) if first <= v <= last]
        if ask.name not in left_out:
            for version in versions if in_all_versions else versions[-1:]:
                yield '%s: %s-%d-v%d' % (who, ask.name, ask.api, version), ask, version
