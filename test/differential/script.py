"""What a script is made of: scenarios, their steps, and requests built from plain values.

Owns: the data classes of a script, the choice of the versions in which a scenario runs, and the way
from nested dicts to messages and frames. Does not own: what is asked (steps_*.py) nor the sending
(runner.py).
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

from kafka.protocol.api import request_class
from kafka.protocol.schema import ListOf, StructMeta, zero_of
from kafka.protocol.wire import Message
from kafka.testing.releases import BrokerRelease

#: Gets the context (see runner.py); returns the fields of the request, as nested dicts.
Fields = Callable[[Any], Dict[str, Any]]

HIGH = 32767
REFUSED_ABOVE = 'above'
REFUSED_BELOW = 'below'
SETTLES = 'always'
KRAFT_SETTLES = 'with KRaft'
KRAFT_SETTLES_LATE = 'late with KRaft'


class Step(NamedTuple):
    """One request.

    ``name`` says what is asked; ``api`` is its key; ``fields`` gives the request. ``keep`` gets the
    context and the answer, to remember what later steps need. ``when`` says whether the step makes
    sense there. ``frame`` stands instead of ``fields`` for bytes that are no good request.
    ``version`` is the highest that a step takes whose API is not the one whose versions the
    scenario walks. ``is_silent``: no answer is expected (acks=0). ``settles``: what went before may
    reach a real broker's own view of the cluster a moment later, so that is waited for: SETTLES, or
    KRAFT_SETTLES where only those with KRaft are late, KRAFT_SETTLES_LATE where they learn it last
    of all. ``wire`` is
    the connection, by the names that a case gives to its own, '' for the one of all cases; after
    one whose answer is ``left`` there, the next step on that wire reads it, without ``fields``.
    ``user`` is who has logged in on it.
    """

    name: str
    api: int
    fields: Optional[Fields] = None
    keep: Optional[Callable[[Any, Any], None]] = None
    when: Optional[Callable[[Any], bool]] = None
    frame: Optional[Callable[[Any], bytes]] = None
    version: int = HIGH
    is_silent: bool = False
    settles: str = ''
    wire: str = ''
    left: bool = False
    user: str = ''


class Scenario(NamedTuple):
    """Steps that belong together, run for each version of each API in ``walks``.

    ``versions`` narrows that: '' for all that are served, 'high', 'above' and 'below' for versions
    that are refused, or '3+'. ``since`` and ``until`` are the first and the last release;
    ``is_slow`` tells that real brokers need seconds for each version.
    """

    name: str
    walks: Tuple[int, ...]
    steps: Sequence[Step]
    versions: str = ''
    since: Tuple[int, ...] = ()
    until: Tuple[int, ...] = (99,)
    kraft: Optional[bool] = None
    is_slow: bool = False


class Case(NamedTuple):
    """A scenario in one version of one API."""

    scenario: Scenario
    api: int
    version: int

    @property
    def label(self) -> str:
        """The name that topics and groups of the case begin with."""
        return '%s-%d-v%d' % (self.scenario.name.replace(' ', '-'), self.api, self.version)


#: Which cases of scenarios are asked of a release.
Choice = Callable[[Sequence[Scenario], BrokerRelease], Iterator[Case]]


def one(name: str, api: int, fields: Optional[Fields] = None, **options: Any) -> Scenario:
    """Return a scenario of one step that walks the versions of its own API."""
    about = {
        key: options.pop(key) for key in ('versions', 'since', 'until', 'kraft') if key in options
    }
    return Scenario(name, (api,), [Step('ask', api, fields, **options)], **about)


def cases(scenarios: Sequence[Scenario], release: BrokerRelease) -> Iterator[Case]:
    """Yield the cases that make sense for a release, in order."""
    for scenario in scenarios:
        if not scenario.since <= release.version <= scenario.until:
            continue
        if scenario.kraft is not None and scenario.kraft == release.has_zookeeper:
            continue
        for api in scenario.walks:
            for version in chosen_versions(scenario.versions, api, release):
                yield Case(scenario, api, version)


def end_cases(scenarios: Sequence[Scenario], release: BrokerRelease) -> Iterator[Case]:
    """Yield the cases in the first and in the last of the versions that their scenario walks.

    Of those that take real brokers long only in the last.
    """
    for case in cases(scenarios, release):
        versions = chosen_versions(case.scenario.versions, case.api, release)
        is_first = case.version == versions[0] and not case.scenario.is_slow
        if is_first or case.version == versions[-1]:
            yield case


def cases_named(only: str) -> Choice:
    """Return what yields the cases whose names have one of some words, with commas between."""

    def choose(scenarios: Sequence[Scenario], release: BrokerRelease) -> Iterator[Case]:
        return (each for each in cases(scenarios, release) if is_wanted(each.label, only))

    return choose


def is_wanted(name: str, only: str) -> bool:
    """Tell whether the name of a case has one of the words, with commas between; none: any has."""
    return any(word in name for word in only.split(','))


def served_versions(api: int, release: BrokerRelease) -> List[int]:
    """Return the versions that a release serves and the messages here have."""
    if api not in release.served:
        return []
    low, high = release.served[api]
    cls = request_class(api)
    return list(range(max(low, cls.min_version), min(high, cls.max_version) + 1))


def chosen_versions(words: str, api: int, release: BrokerRelease) -> List[int]:
    """Return the versions that ``Scenario.versions`` means."""
    if words == REFUSED_ABOVE:
        return [release.served[api][1] + 1] if api in release.served else []
    if words == REFUSED_BELOW:
        low = release.served.get(api, (0, 0))[0]
        return [low - 1] if low else []
    found = served_versions(api, release)
    if words == 'high':
        return found[-1:]
    if words.endswith('+'):
        return [version for version in found if version >= int(words[:-1])]
    if '-' in words:
        first, last = map(int, words.split('-'))
        return [version for version in found if first <= version <= last]
    return found


def framed(data: bytes, size: int = -1) -> bytes:
    """Return bytes with their length before them, or with another size."""
    return struct.pack('>i', len(data) if size < 0 else size) + data


def build(cls: Type[Any], values: Dict[str, Any], version: int) -> Any:
    """Make a message or a struct of it from nested dicts.

    What the version lacks is left out; what is not given is the default, or the type's zero.
    Raises TypeError for a name that no version has.
    """
    unknown = set(values) - {field.name for field in cls.fields}
    if unknown:
        raise TypeError('%s has no %s' % (cls.__name__, ', '.join(sorted(unknown))))
    given = {}
    for field in cls.fields:
        if field.name in values and field.versions.includes(version):
            given[field.name] = _converted(field.type, values[field.name], version)
        elif field.required:
            given[field.name] = zero_of(field.type)
    return cls(**given)


def _converted(kind: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, ListOf):
        return [_converted(kind.element, each, version) for each in value]
    return build(kind, value, version) if isinstance(kind, StructMeta) else value


def request_of(api: int, values: Dict[str, Any], version: int) -> Message:
    """Return the request of an API in a version from nested dicts."""
    made: Message = build(request_class(api), values, version)
    return made
