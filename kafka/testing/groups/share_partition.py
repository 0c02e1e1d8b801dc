"""A share partition: a partition and its in-flight records in one share group (KIP-932).

Acquisition, acknowledgement (KIP-1222 for renewal), delivery counts, acquisition locks and the
start offset. Called by handlers/share_fetch.py, which reads the log. Sessions are in
share_sessions.py, members in share_group.py.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from kafka.testing.errors import INVALID_RECORD_STATE, INVALID_REQUEST, NONE
from kafka.testing.groups.in_flight import TERMINAL, Acquired, Delivery, InFlight, RecordState
from kafka.testing.timers import Timer, Timers

NO_OFFSET = -1

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_BECOMES = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}


class ShareRules(NamedTuple):
    """The effective settings of a group.

    ``throttles``: from 4.2 on, records that were often delivered come in ever smaller ranges.
    """

    max_deliveries: int
    max_locks: int
    lock_seconds: float
    can_renew: bool
    throttles: bool

    @property
    def throttled_from(self) -> int:
        """The delivery count from which on records come in smaller ranges."""
        return max(2, -(-self.max_deliveries // 2))


class LogRange(NamedTuple):
    """The offsets of one batch in the log."""

    first: int
    last: int


class Acknowledgement(NamedTuple):
    """The acknowledgement of a range of offsets: one type for all or one for each."""

    first: int
    last: int
    types: List[int]

    def type_of(self, offset: int) -> int:
        """Return the acknowledgement type of an offset."""
        return self.types[offset - self.first] if len(self.types) > 1 else self.types[0]


class Wish(NamedTuple):
    """The member that fetches, and how much it may acquire.

    ``is_strict``: never more than ``max_records``, even where that cuts a batch (KIP-1206).
    """

    member_id: str
    max_records: int
    batch_size: int
    is_strict: bool = False


class SharePartition:
    """One share partition.

    Arguments: rules: returns the effective settings; on_available: called when more records can be
        acquired; start_offset: where the group begins; stored_offset: the stored start offset, -1
        if none is stored.
    """

    def __init__(
        self,
        timers: Timers,
        rules: Callable[[], ShareRules],
        on_available: Callable[[], None],
        start_offset: int,
        stored_offset: int = NO_OFFSET,
    ) -> None:
        self.start_offset = start_offset
        #: The start offset that is stored whenever states change, before it moves; and the number
        #: of records after it that were in a final state then.
        self.stored_offset = stored_offset
        self.stored_completed = 0
        self._timers = timers
        self._rules = rules
        self._on_available = on_available
        self._leader_epoch: Optional[int] = None
        self._end = start_offset  # after the last record in flight
        self._flights: Dict[int, InFlight] = {}  # by first offset, ascending
        self._may_offer = False  # whether something in flight may be available
        self._timer: Optional[Timer] = None

    def __repr__(self) -> str:
        return '<SharePartition %d to %d, %d in flight>' % (
            self.start_offset,
            self._end,
            self.locks,
        )

    # ------------------------------------------------------------ positions

    @property
    def locks(self) -> int:
        """The number of records from the start offset to the last one in flight."""
        return self._end - self.start_offset if self._flights else 0

    @property
    def completed(self) -> int:
        """The number of records after the start offset that are in a final state."""
        return sum(
            last - max(first, self.start_offset) + 1
            for flight in self._flights.values()
            for first, last, delivery in flight.deliveries()
            if delivery.state in TERMINAL and last >= self.start_offset
        )

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that can be acquired, now or once it is written."""
        if self._may_offer:
            for flight in self._flights.values():
                for first, last, delivery in flight.deliveries():
                    if delivery.is_available and last >= self.start_offset:
                        return max(first, self.start_offset)
            self._may_offer = False
        return max(self._end, self.start_offset)

    @property
    def can_acquire(self) -> bool:
        """Whether records in flight are available, or more may be in flight."""
        return self.next_fetch_offset < self._end or self.locks < self._rules().max_locks

    # ------------------------------------------------------------ acquiring

    def acquire(self, wish: Wish, fetch_offset: int, batches: Sequence[LogRange]) -> List[Acquired]:
        """Acquire records for a member; return their ranges.

        Arguments: fetch_offset: where the read began; batches: the offsets of the batches read.
        """
        rules = self._rules()
        if wish.max_records <= 0 or not batches or batches[-1].last < self.start_offset:
            return []
        last = batches[-1].last
        room = min(wish.max_records, rules.max_locks - self.locks)
        if room <= 0:
            if fetch_offset >= self._end:
                return []
            # The limit of in-flight records is reached, but some of them have been released.
            room = min(wish.max_records, self._end - fetch_offset)
            last = min(last, self._end - 1)
        self._give_up(fetch_offset, batches[0].first - 1)
        until = self._timers.clock.monotonic() + rules.lock_seconds
        acquiring = _Acquiring(self._flights, rules, wish, batches, last, room, until)
        behind = acquiring.again(self.start_offset)
        if behind is not None and max(behind, self._end) <= last:
            self._end = acquiring.anew(max(behind, self._end))
            # Offsets missing from the log before the first in-flight record are skipped.
            self.start_offset = max(self.start_offset, next(iter(self._flights)))
            self._may_offer = self._may_offer or wish.is_strict
        self._watch()
        return acquiring.result

    def _give_up(self, first: int, last: int) -> None:
        """Archive available records that are no longer in the log."""
        for flight in self._flights.values() if last >= first else ():
            if flight.first > last or flight.last < first:
                continue
            if not first <= flight.first <= flight.last <= last:
                flight.split()
            for low, high, delivery in flight.deliveries():
                if delivery.is_available and first <= low and high <= last:
                    delivery.end(RecordState.ARCHIVED)

    def give_up(self, gone: LogRange, acquired: Sequence[Acquired]) -> List[Acquired]:
        """Archive acquired records of a batch that is not to be read; return the other ranges."""
        for flight in self._flights.values():
            if flight.first > gone.last or flight.last < gone.first:
                continue
            if not gone.first <= flight.first <= flight.last <= gone.last:
                flight.split()
            for first, _, delivery in flight.deliveries():
                if gone.first <= first <= gone.last and delivery.state is RecordState.ACQUIRED:
                    delivery.end(RecordState.ARCHIVED)
        rest = []
        for each in acquired:
            before = each._replace(last=min(each.last, gone.first - 1))
            behind = each._replace(first=max(each.first, gone.last + 1))
            rest += [part for part in (before, behind) if part.first <= part.last]
        self._watch()
        return rest

    # ------------------------------------------------------------ acknowledging

    def acknowledge(self, member_id: str, told: Sequence[Acknowledgement]) -> Tuple[int, str]:
        """Apply all acknowledgements of a member, or none; return error code and message."""
        changes: List[Tuple[Delivery, int]] = []
        seen: Set[int] = set()
        for each in told:
            if each.last < self.start_offset:
                continue  # archived when the start offset moved
            error, text = self._collect(member_id, each, changes, seen)
            if error:
                return error, text
        rules = self._rules()
        if not rules.can_renew and any(kind == RENEW for _, kind in changes):
            return INVALID_RECORD_STATE, 'Renewing is not enabled for the group.'
        until = self._timers.clock.monotonic() + rules.lock_seconds
        for delivery, kind in changes:
            if kind == RENEW:
                delivery.until = until
            else:
                self._end_delivery(delivery, _BECOMES[kind], rules)
        self._changed([kind for _, kind in changes if kind != RENEW])
        return NONE, ''

    def _collect(
        self,
        member_id: str,
        told: Acknowledgement,
        changes: List[Tuple[Delivery, int]],
        seen: Set[int],
    ) -> Tuple[int, str]:
        """Collect the changes of an acknowledgement; return error code and message if invalid."""
        low = max(told.first, self.start_offset)
        if not any(flight.first <= low for flight in self._flights.values()):
            return INVALID_RECORD_STATE, 'The offsets are not in flight.'
        found = [f for f in self._flights.values() if f.first <= told.last and f.last >= low]
        if not found:
            return INVALID_REQUEST, 'The first offset is after all acquired records.'
        if told.last > found[-1].last:
            return INVALID_REQUEST, 'The last offset is after all acquired records.'
        for flight in found:
            whole = flight.whole
            if whole is not None:
                if whole.state is RecordState.ACQUIRED and whole.member_id != member_id:
                    return INVALID_RECORD_STATE, 'Another member has the records.'
                if whole.state is not RecordState.ACQUIRED:
                    return INVALID_RECORD_STATE, 'The records are not acquired.'
                if len(told.types) > 1 or not low <= flight.first <= flight.last <= told.last:
                    flight.split()
            for first, _, delivery in flight.deliveries():
                if first < low or first > told.last:
                    continue
                if delivery.state is not RecordState.ACQUIRED or id(delivery) in seen:
                    return INVALID_RECORD_STATE, 'The record is not acquired.'
                if delivery.member_id != member_id:
                    return INVALID_RECORD_STATE, 'Another member has the record.'
                seen.add(id(delivery))
                changes.append((delivery, told.type_of(max(first, told.first))))
        return NONE, ''

    def _end_delivery(self, delivery: Delivery, state: RecordState, rules: ShareRules) -> None:
        """End an acquisition; at the delivery limit a released record is archived."""
        if state is RecordState.AVAILABLE and delivery.count >= rules.max_deliveries:
            state = RecordState.ARCHIVED
        delivery.end(state)
        self._may_offer = self._may_offer or state is RecordState.AVAILABLE

    # ------------------------------------------------------------ releases without acknowledgement

    def release(self, member_id: str, counts: bool) -> None:
        """Release the records of a member whose session has ended.

        Arguments: counts: whether they count as deliveries; before 4.2 they did not.
        """
        rules, has_changed = self._rules(), False
        for _, last, delivery in self._acquired():
            if delivery.member_id == member_id:
                has_changed = True
                if last < self.start_offset:
                    delivery.end(RecordState.ARCHIVED)
                    continue
                if not counts:
                    delivery.count -= 1
                self._end_delivery(delivery, RecordState.AVAILABLE, rules)
        if has_changed:
            self._changed([RELEASE])

    def led_in(self, leader_epoch: int) -> None:
        """Set the leader epoch of the partition: a new leader does not know of acquisitions."""
        if self._leader_epoch not in (None, leader_epoch):
            self.forget_acquisitions()
        self._leader_epoch = leader_epoch

    def forget_acquisitions(self) -> None:
        """Release all records without counting the deliveries: acquisitions are not stored."""
        for _, _, delivery in self._acquired():
            delivery.count -= 1
            delivery.end(RecordState.AVAILABLE)
            self._may_offer = True
        self._watch()
        self._on_available()

    def move_start(self, log_start_offset: int) -> None:
        """Move the start offset to the log start offset, and drop records before it."""
        if log_start_offset <= self.start_offset:
            return
        self.start_offset = log_start_offset
        for flight in list(self._flights.values()):
            if flight.last < log_start_offset:
                if all(d.state is not RecordState.ACQUIRED for _, _, d in flight.deliveries()):
                    del self._flights[flight.first]
        if not self._flights:
            self._end = self.start_offset
        self._on_available()

    def _expire(self) -> None:
        """Release the records whose acquisition lock has expired."""
        now, rules = self._timers.clock.monotonic(), self._rules()
        kinds = []
        for _, last, delivery in self._acquired():
            if delivery.until <= now:
                kinds.append(RELEASE)
                if last < self.start_offset:
                    delivery.end(RecordState.ARCHIVED)
                else:
                    self._end_delivery(delivery, RecordState.AVAILABLE, rules)
        self._changed(kinds)

    def _acquired(self) -> List[Tuple[int, int, Delivery]]:
        return [
            each
            for flight in self._flights.values()
            for each in flight.deliveries()
            if each[2].state is RecordState.ACQUIRED
        ]

    # ------------------------------------------------------------

    def _changed(self, kinds: List[int]) -> None:
        """Store the start offset, move it past records in final states, notify waiting fetches."""
        self._watch()
        if not kinds:
            return
        self.stored_offset, self.stored_completed = self.start_offset, self.completed
        for flight in list(self._flights.values()):
            for first, last, delivery in flight.deliveries():
                if last >= self.start_offset and delivery.state not in TERMINAL:
                    self.start_offset = max(self.start_offset, first)
                    break
                self.start_offset = max(self.start_offset, last + 1)
            if flight.last >= self.start_offset:
                break
            del self._flights[flight.first]
        if not self._flights:
            self._end = self.start_offset = max(self.start_offset, self._end)
        self._on_available()

    def _watch(self) -> None:
        """Set the timer for the next acquisition lock that expires."""
        when = min((delivery.until for _, _, delivery in self._acquired()), default=None)
        if self._timer is not None and (when is None or self._timer.when != when):
            self._timer.cancel()
            self._timer = None
        if when is not None and (self._timer is None or not self._timer.waits):
            self._timer = self._timers.at(when, self._expire)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()


class _Acquiring:
    """The state of one acquisition while it is computed."""

    def __init__(
        self,
        flights: Dict[int, InFlight],
        rules: ShareRules,
        wish: Wish,
        batches: Sequence[LogRange],
        last: int,
        room: int,
        until: float,
    ) -> None:
        self.result: List[Acquired] = []
        self._flights = flights
        self._rules = rules
        self._wish = wish
        self._batches = batches
        self._last = last
        self._room = room
        self._until = until

    def again(self, start_offset: int) -> Optional[int]:
        """Acquire available records that were delivered before.

        Returns: the offset from which on new records may be acquired, None if there is no room.
        """
        first = self._batches[0].first
        behind = first
        for flight in list(self._flights.values()):
            if flight.last < first:
                continue
            if flight.first > self._last:
                break
            if self._room <= 0:
                return None
            behind = flight.last + 1
            if not self._from_flight(flight, max(first, start_offset)):
                return None
        return behind if self._room > 0 else None

    def _from_flight(self, flight: InFlight, first: int) -> bool:
        """Acquire the available records of one range; return True to go on with the next."""
        is_throttled = self._rules.throttles and self._is_late(flight, first)
        if is_throttled and self.result:
            return False
        if flight.whole is not None:
            if not flight.whole.is_available:
                return True
            is_full = first <= flight.first and flight.last <= self._last
            is_too_long = self._wish.is_strict and len(flight) > self._room
            if is_full and not is_too_long and not is_throttled:
                flight.whole.acquire(self._wish.member_id, self._until)
                self.result.append(Acquired(flight.first, flight.last, flight.whole.count))
                self._room -= len(flight)
                return True
        count = self._one_by_one(flight.split(), first)
        self._room -= count
        return not (is_throttled and count)

    def _is_late(self, flight: InFlight, first: int) -> bool:
        """Return True if available records in it have reached the throttled delivery count."""
        return any(
            delivery.is_available and delivery.count >= self._rules.throttled_from
            for low, high, delivery in flight.deliveries()
            if high >= first and low <= self._last
        )

    def _one_by_one(self, each: Dict[int, Delivery], first: int) -> int:
        """Acquire single records; return their number.

        From a certain delivery count on, each delivery has half as many records, and the last one
        is of a single record, so that a record that fails does not fail others with it.
        """
        found: List[Acquired] = []
        rules, limit = self._rules, 0
        for offset, delivery in each.items():
            if offset < first or offset > self._last or not delivery.is_available:
                continue
            is_throttling = rules.throttles and rules.max_deliveries > 2
            if is_throttling and found and delivery.count == rules.max_deliveries - 1:
                break
            if rules.throttles and not limit and delivery.count >= rules.throttled_from:
                limit = max(1, len(each) >> (delivery.count - rules.throttled_from + 1))
            delivery.acquire(self._wish.member_id, self._until)
            found.append(Acquired(offset, offset, delivery.count))
            if is_throttling and delivery.count == rules.max_deliveries:
                break
            if self._wish.is_strict and len(found) == self._room or len(found) == limit:
                break
        self.result += _joined(found) if rules.throttles else found
        return len(found)

    def anew(self, first: int) -> int:
        """Acquire records that were not in flight; return the offset after them."""
        wish, room, last = self._wish, self._room, self._last
        if room < last - first + 1:
            wanted = first + room - 1
            last = next((b.last for b in self._batches if b.first <= wanted <= b.last), wanted)
            last = min(last, self._last)
        if wish.is_strict:
            self._put(first, last)
            if room < last - first + 1:
                each = self._flights[first].split()
                for offset in range(first + room, last + 1):
                    each[offset] = Delivery()
                last_acquired = first + room - 1
            else:
                last_acquired = last
            self.result.append(Acquired(first, last_acquired, 1))
            return last + 1
        low = first
        for batch in self._batches:
            if batch.first > last:
                break
            if batch.first - low >= max(1, wish.batch_size):
                self._put(low, batch.first - 1)
                self.result.append(Acquired(low, batch.first - 1, 1))
                low = batch.first
        self._put(low, last)
        self.result.append(Acquired(low, last, 1))
        return last + 1

    def _put(self, first: int, last: int) -> None:
        delivery = Delivery(RecordState.ACQUIRED, 1, self._wish.member_id, self._until)
        self._flights[first] = InFlight(first, last, delivery)


def _joined(found: List[Acquired]) -> List[Acquired]:
    """Join adjacent ranges with the same delivery count."""
    result: List[Acquired] = []
    for each in found:
        before = result[-1] if result else None
        if (
            before is not None
            and before.last + 1 == each.first
            and before.delivery_count == each.delivery_count
        ):
            result[-1] = before._replace(last=each.last)
        else:
            result.append(each)
    return result
