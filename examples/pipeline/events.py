"""The events of the example: temperatures of six cold rooms, as a bad network delivers them.

Owns what happened in the rooms and how it arrives: out of order, twice, cut off, and once so late
that nobody waits for it. The same seed gives the same events. Knows no Kafka and no Spark.
"""

import json
import math
import random
from datetime import datetime, timedelta, timezone
from typing import Iterator, List, NamedTuple

START = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)
#: By room: how warm it may be, in degrees Celsius.
ROOMS = {'dairy': 6.0, 'fish': 2.0, 'fruit': 9.0, 'ice cream': -16.0, 'meat': 4.0, 'vaccines': 8.0}
EVERY_SECONDS = 5
#: What is out of order is so by less than this, what comes too late is so by far more.
DISORDER_SECONDS = 300
SHORTEST_MINUTES = 90


class Event(NamedTuple):
    """What one sensor sends once: seconds since the start, of the reading and of its arrival."""

    arrives: float
    number: int
    room: str
    measured: float
    celsius: float
    is_cut: bool = False

    def encode(self) -> bytes:
        """Return the event as JSON, or the half of it that came through."""
        text = json.dumps(
            {
                'number': self.number,
                'room': self.room,
                'at': instant(self.measured),
                'celsius': self.celsius,
            }
        )
        return text[: len(text) // 2 if self.is_cut else None].encode()


def instant(seconds: float) -> str:
    """Return a time of the example as text of ISO 8601, in UTC."""
    return (START + timedelta(seconds=seconds)).strftime('%Y-%m-%dT%H:%M:%SZ')


def make(minutes: int, seed: int) -> List[Event]:
    """Return the events of so many minutes in the order of their arrival."""
    chance = random.Random(seed)
    length = minutes * 60
    found: List[Event] = []
    for number, (measured, room) in enumerate(
        (second, room) for second in range(0, length, EVERY_SECONDS) for room in ROOMS
    ):
        celsius = round(temperature(room, measured, length) + chance.gauss(0, 0.2), 2)
        delay = _delay(chance)
        if is_offline(room, measured, length):
            delay += length * 0.92 - measured
        event = Event(measured + delay, number, room, measured, celsius)
        found.append(event._replace(is_cut=chance.random() < 0.005))
        if chance.random() < 0.03:  # its acknowledgement was lost, and the sensor sends it again
            found.append(event._replace(arrives=event.arrives + chance.uniform(1, 60)))
    return sorted(found)


def temperature(room: str, measured: float, length: float) -> float:
    """Return how warm a room is, with what goes wrong in two of them."""
    phase = 2 * math.pi * (measured / 2400 + list(ROOMS).index(room) / len(ROOMS))
    normal = ROOMS[room] - 2.5 + 0.5 * math.sin(phase)
    part = measured / length
    if room == 'meat':  # the compressor fails, and is mended
        warmed = 1 - math.exp(-max(0, min(part, 0.8) - 0.58) * 12)
        return normal + 7 * warmed * math.exp(-max(0, part - 0.8) * 18)
    if room == 'ice cream' and 0.25 <= part < 0.33:  # the door stands open
        return normal + 5
    return normal


def is_offline(room: str, measured: float, length: float) -> bool:
    """Tell whether a reading waits in a sensor that has lost its network."""
    return room == 'fish' and 1 / 3 <= measured / length < 1 / 2


def minute_by_minute(events: List[Event], minutes: int) -> Iterator[List[Event]]:
    """Yield what arrives in each minute; what is on its way at the end comes in the last one."""
    arrived: List[List[Event]] = [[] for _ in range(minutes)]
    for event in events:
        arrived[min(int(event.arrives // 60), minutes - 1)].append(event)
    return iter(arrived)


def closing_event(minutes: int) -> Event:
    """Return an event of no room, an hour later: with it Spark knows that all windows are over."""
    later = minutes * 60 + 3600
    return Event(later, -1, 'clock', later, 0.0)


def _delay(chance: random.Random) -> float:
    """Return for how many seconds an event is on its way; a few of them take a detour."""
    if chance.random() < 0.05:
        return chance.uniform(60, DISORDER_SECONDS - 60)
    return min(chance.expovariate(0.1), 60)
