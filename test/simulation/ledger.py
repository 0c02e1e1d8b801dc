"""What must hold of a group and its members in a simulation, kept while it goes on.

Owns the truth about each partition (what was written, handed out and committed, and who has it) and
the rules; members tell it what happens to them, the brokers' stored offsets what is committed. Does
not own: the programs (reader.py), what goes wrong (trouble.py).
"""

from __future__ import annotations

from bisect import bisect_left

from test.simulation.checks import Wrong


class Place:
    """One partition.

    Attributes: values: by offset, of records that readers may see; offsets: theirs, in order;
    handed: offsets that anybody was handed out; skipped: that somebody stepped over by a seek;
    commits: where readers have to go on by what was committed, in order; holds: by member, those
    who have it; is_loose: whether it may be deleted and made anew: then readers may be anywhere;
    lost: values that were there until the log was cut.
    """

    def __init__(self, log, is_loose):
        self.log = log
        self.is_loose = is_loose
        self.values = {}
        self.former = {}  # of those that had its name
        self.offsets = []
        self.handed = set()
        self.skipped = set()
        self.commits = []
        self.holds = {}
        self.lost = set()
        self._cuts = []  # the epoch that began with each, and where

    def wrote(self, offset, value):
        self.values[offset] = value
        self.offsets.append(offset)

    def cut(self, log, end, epoch):
        """Note that the log ends at an offset where a leader of a new epoch goes on.

        Whoever was behind that has to come back, and what was handed out of there does not count.
        """
        self.log = log
        kept = bisect_left(self.offsets, end)
        self.lost.update(self.values.pop(offset) for offset in self.offsets[kept:])
        del self.offsets[kept:]
        self.handed = {offset for offset in self.handed if offset < end}
        self.skipped = {offset for offset in self.skipped if offset < end}
        self._cuts.append((epoch, end))
        self.commits = [min(offset, end) for offset in self.commits]
        for hold in self.holds.values():
            if hold.next is not None:
                hold.next = min(hold.next, end)

    def stands_for(self, offset, epoch):
        """Return where a reader goes on from an offset behind a record of an epoch."""
        return min([offset, *(end for began, end in self._cuts if began > epoch)])

    def between(self, first, end):
        """Return the records from one offset up to another that are still there to be read."""
        first = max(first, self.log.start_offset)
        return self.offsets[bisect_left(self.offsets, first) : bisect_left(self.offsets, end)]

    def unread(self, end):
        """Return the records below an offset that nobody was handed out."""
        if self.is_loose:
            return []  # what was committed of a former log may lie behind them
        seen = self.handed
        return [each for each in self.between(0, end) if each not in seen | self.skipped]

    def left(self):
        """Return the records that are not committed."""
        return self.between(self.commits[-1] if self.commits else 0, self.log.end_offset)


class Hold:
    """A member has a partition. Attributes: next: the offset that it has to be handed out next,
    None until the first; since: how many commits there were when it got it; is_old: whether it is
    of a topic that was deleted, of which the group knows nothing any more.
    """

    def __init__(self, since):
        self.next = None
        self.is_old = False
        self.since = since


class Ledger:
    """All partitions of a run.

    Arguments: cluster; group: its id; ignored: topics that have no records and may be anybody's.
    """

    def __init__(self, cluster, group, ignored=()):
        self.group = group
        self.ignored = ignored
        self.places = {}
        self.wrongs = []
        self.handed_out = 0
        self._cluster = cluster
        self._offsets = cluster.state.offsets
        self._put = self._offsets._put
        self._offsets._put = self._committed

    def add(self, topic, index, is_loose=False):
        """Keep a partition from now on."""
        log = self._cluster.state.topics[topic].partitions[index].log
        self.places[topic, index] = Place(log, is_loose)

    def made_anew(self, topic, index):
        """Note that a partition is another one from now on; who had the old one, has it."""
        old = self.places[topic, index]
        self.add(topic, index, is_loose=True)
        self.places[topic, index].holds = old.holds
        for hold in old.holds.values():
            hold.is_old = True
        self.places[topic, index].former = {**old.former, **old.values}

    def forgive(self):
        """Demand of topics that were made anew no more than what is written from now on."""
        for place in self.places.values():
            if place.is_loose:
                place.skipped.update(place.offsets)

    def wrong(self, text, *values):
        """Note that something does not hold; the first counts."""
        self.wrongs.append('at %.3f s ' % self._cluster.timers.clock.monotonic() + text % values)

    def check(self):
        """Raise Wrong if anything did not hold."""
        if self.wrongs:
            raise Wrong(self.wrongs[0])

    # ------------------------------------------------------------ what happens

    def _committed(self, group, key, stored):
        self._put(group, key, stored)
        place = self.places.get(key)
        if group != self.group or place is None:
            return
        offset = place.stands_for(stored.offset, stored.leader_epoch)
        place.commits.append(offset)
        if place.is_loose:
            return
        if offset > place.log.end_offset:
            self.wrong('%d was committed of %s-%d, whose log ends at %d',
                       offset, *key, place.log.end_offset)  # fmt: skip
        unread = place.unread(offset)
        if unread:
            self.wrong('%d was committed of %s-%d, but %s were never handed out',
                       offset, *key, unread[:5])  # fmt: skip

    def assigned(self, member, partitions):
        """Note that a member was told that it has partitions."""
        for key in sorted(partitions):
            place = self.places.get(key)
            if key[0] in self.ignored:
                continue
            if place is None:
                self.wrong('%r was assigned %s-%d, which it does not want', member, *key)
                continue
            hold = Hold(len(place.commits))
            hold.is_old = self._is_of_former_topic(member, key)
            for other in place.holds:
                if other is member:
                    self.wrong('%r was assigned %s-%d twice', member, *key)
                elif hold.is_old:
                    pass  # it takes up late what it was assigned before, and drops it soon
                elif place.holds[other].is_old or other.may_be_passed_over():
                    pass  # the group knows nothing of that one any more, or does not wait for it
                elif self.is_in_group(member.member_id) and self.is_in_group(other.member_id):
                    self.wrong('%r was assigned %s-%d, which %r has', member, *key, other)
            place.holds[member] = hold

    def _is_of_former_topic(self, member, key):
        """Return True if a member takes up a partition of a topic that was deleted since then.

        The coordinator knows partitions by the ids of their topics (KIP-848). As long as it lists
        the one that was deleted, it has not told the member of another assignment.
        """
        group, topics = self.broker_group(), self._cluster.state.topics
        known = None if group is None else group.members.get(member.member_id)
        assigned = getattr(known, 'assigned', None)
        if not self.places[key].is_loose or assigned is None:
            return False
        ids = {topic.topic_id for topic in topics.values()}
        numbers = [number for topic_id, number in assigned if topic_id not in ids]
        topic = topics.get(key[0])
        present = None if topic is None else (topic.topic_id, key[1])
        return key[1] in numbers and present not in assigned

    def gone(self, member, partitions):
        """Note that a member was told that it has lost partitions, or gives them back."""
        for key in sorted(partitions):
            if key in self.places and self.places[key].holds.pop(member, None) is None:
                self.wrong('%r was told that %s-%d goes, and never had it', member, *key)

    def gave_back(self, member, partitions):
        """Note that a member has committed what it gives back: all that it was handed out."""
        for key in sorted(partitions):
            place = self.places.get(key)
            hold = None if place is None or place.is_loose else place.holds.get(member)
            if hold is None or hold.next is None:
                continue
            missing = place.between(place.commits[-1] if place.commits else 0, hold.next)
            if missing:
                self.wrong('%r gave back %s-%d, and %s were handed out and not committed',
                           member, *key, missing[:5])  # fmt: skip

    def ended(self, member):
        """Note that a member is no more."""
        for place in self.places.values():
            place.holds.pop(member, None)

    def sought(self, member, key, offset):
        """Note that a member goes on elsewhere."""
        place = self.places[key]
        hold = place.holds[member]
        if hold.next is None:
            place.skipped.update(place.between(0, offset))
        elif offset > hold.next:
            place.skipped.update(place.between(hold.next, offset))
        hold.next = offset

    def handed(self, member, key, records):
        """Note that a member was handed out records of a partition."""
        place = self.places[key]
        hold = place.holds.get(member)
        if hold is None:
            self.wrong('%r was handed out %s-%d, which it has not', member, *key)
            return
        for record in records:
            offset = record.offset
            value = place.values.get(offset)
            if place.is_loose and record.value in place.former.values():
                continue
            if record.value in place.lost:  # fetched before the log was cut
                continue
            if value != record.value:
                self.wrong('%r was handed out %s-%d offset %d with %r, not %r',
                           member, *key, offset, record.value, value)  # fmt: skip
            starts = [hold.next] if hold.next is not None else self._starts(place, hold)
            if member.resets_to_end:
                self._skip_to(offset, starts, place, hold)
            if not place.is_loose and not any(
                start <= offset and not place.between(start, offset) for start in starts
            ):
                self.wrong('%r was handed out %s-%d offset %d, and should have been from %s on',
                           member, *key, offset, starts)  # fmt: skip
            hold.next = offset + 1
            place.handed.add(offset)
            self.handed_out += 1

    def _skip_to(self, offset, starts, place, hold):
        """Note what a member passes by that goes to the end of a log where it has no offset."""
        has_none = hold.next is None and hold.since == 0
        for start in starts:
            if has_none or start < place.log.start_offset:
                place.skipped.update(place.between(start, offset))
                starts.append(offset)
                return

    def _starts(self, place, hold):
        """Return where a member may begin: at what was committed while it could ask for that."""
        return [0, *place.commits][hold.since :]

    # ------------------------------------------------------------ what the brokers know

    def broker_group(self):
        """Return the group as its coordinator knows it, None if it does not."""
        groups = self._cluster.state.groups
        return groups.consumers.get(self.group) or groups.get(self.group)

    def is_in_group(self, member_id):
        """Tell whether the group has a member, and not one that said to be away (epoch -2)."""
        group = self.broker_group()
        member = None if group is None else group.members.get(member_id)
        return member is not None and getattr(member, 'epoch', 0) >= 0

    # ------------------------------------------------------------ the end

    def is_over(self):
        """Tell whether all was handed out and committed, and each partition is somebody's."""
        return not any(
            place.left() or place.unread(place.log.end_offset) or len(place.holds) != 1
            for place in self.places.values()
        )
