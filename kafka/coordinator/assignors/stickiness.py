"""The sticky assignment algorithm: a balanced assignment that moves as few partitions as possible.

Used by both sticky assignors (KIP-54). The criteria in the order of their weight: balance, keeping
owned partitions, racks. Members claim the partitions that they own; if two members claim a
partition, the one with the later generation owns it, and neither if the generations are equal.

If all members subscribe to the same topics, the assignment is computed directly. Otherwise each
free partition goes to the subscriber with the fewest partitions; then partitions move from members
with more to members with fewer as long as that improves the balance, also along a chain of members
that each pass one on. Free partitions move first, owned ones only if that is not enough. So the
balance is as good as possible whatever was owned before, and a partition that is withheld in one
cooperative rebalance can be assigned in the next one without moving others. Pure.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import (
    Deque,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

from kafka.coordinator.assignors.racks import Racks
from kafka.coordinator.assignors.subscriptions import GroupSubscription, Partition

__all__ = ['Claims', 'share', 'withhold']

Shares = Dict[str, List[Partition]]


class Claims(NamedTuple):
    """The owners of partitions, from the claims of all members.

    owner: {partition: its owner}; before: {partition: its owner in an earlier generation, until a
    later one assigned it to another member}; contested: claimed by several members of the same
    generation, so without an owner.
    """

    owner: Dict[Partition, str]
    before: Dict[Partition, str]
    contested: Set[Partition]

    @classmethod
    def of(cls, members: Iterable[GroupSubscription]) -> Claims:
        """Resolve the claims of members, by the generation of their owned partitions."""
        best: Dict[Partition, Tuple[int, str]] = {}
        before: Dict[Partition, Tuple[int, str]] = {}
        contested = {}
        for member in members:
            claim = member.generation, member.member_id
            for partition in set(member.owned):
                held = best.get(partition)
                if held is None or claim[0] > held[0]:
                    if held is not None:
                        before[partition] = held
                    best[partition] = claim
                elif claim[0] == held[0]:
                    contested[partition] = claim[0]
                elif claim[0] > before.get(partition, (-2,))[0]:
                    before[partition] = claim
        none = {at for at, generation in contested.items() if generation == best[at][0]}
        owner = {at: claim[1] for at, claim in best.items() if at not in none}
        return cls(owner, {at: claim[1] for at, claim in before.items()}, none)


def share(
    members: Sequence[GroupSubscription],
    claims: Claims,
    partitions: Mapping[str, Sequence[int]],
    racks: Racks,
) -> Shares:
    """Return {member id: partitions}: balanced, and as close to the claims as possible.

    Arguments: members: sorted; partitions: {topic: [partition]} of all topics in the metadata.
    """
    known = frozenset(partitions)
    topics = {each.member_id: known.intersection(each.topics) for each in members}
    wanted = frozenset().union(*topics.values())
    kept: Shares = {each.member_id: [] for each in members}
    free: List[Partition] = []
    for topic in sorted(wanted):
        for number in partitions[topic]:
            owner = claims.owner.get((topic, number))
            if owner is not None and topic in topics[owner]:
                kept[owner].append((topic, number))
            else:
                free.append((topic, number))
    if len(set(topics.values())) == 1:
        return _Even(kept, free, racks).shares
    return _Uneven(kept, free, topics, claims, racks).shares


def withhold(shares: Shares, members: Iterable[GroupSubscription], claims: Claims) -> Shares:
    """Omit partitions that another member still owns (KIP-429); they are assigned after revocation.

    A partition is assigned only to its owner, or if no member claims it.
    """
    claimed = {partition for member in members for partition in member.owned}
    return {
        member_id: [
            partition
            for partition in share
            if claims.owner.get(partition) == member_id or partition not in claimed
        ]
        for member_id, share in shares.items()
    }


class _Even:
    """Members with equal subscriptions: floor(P / M) for each, one more for P mod M of them."""

    def __init__(self, kept: Shares, free: List[Partition], racks: Racks) -> None:
        count = len(free) + sum(map(len, kept.values()))
        self._quota, self._one_more = divmod(count, len(kept))
        self.shares: Shares = {}
        for member, owned in kept.items():
            room = self._quota + (len(owned) > self._quota and self._one_more > 0)
            self._one_more -= room > self._quota
            self.shares[member] = owned[:room]
            free += owned[room:]
        free.sort()
        if any(racks.matter_to(topic, kept) for topic in {topic for topic, _ in free}):
            free = self._near(free, racks)
        self._anywhere(free)

    def _room(self, member: str) -> bool:
        return len(self.shares[member]) < self._quota + (self._one_more > 0)

    def _give(self, member: str, partition: Partition) -> None:
        share = self.shares[member]
        share.append(partition)
        self._one_more -= len(share) > self._quota

    def _near(self, free: Iterable[Partition], racks: Racks) -> List[Partition]:
        """Assign partitions to members in racks of their replicas; return the rest."""
        queues: Dict[Optional[str], Deque[str]] = {}
        for member in sorted(self.shares, key=lambda each: len(self.shares[each])):
            queues.setdefault(racks.of_members[member], deque()).append(member)
        far = []
        for partition in free:
            choices: List[Optional[str]] = [*sorted(racks.of_partition(partition)), None]
            for rack in choices:
                taker = self._next(queues.get(rack))
                if taker is not None:
                    self._give(taker, partition)
                    break
            else:
                far.append(partition)
        return far

    def _next(self, queue: Optional[Deque[str]]) -> Optional[str]:
        """Return the next member below its quota, and move it to the end of the queue."""
        while queue:
            member = queue.popleft()
            if self._room(member):
                queue.append(member)
                return member
        return None

    def _anywhere(self, free: Iterable[Partition]) -> None:
        """Assign to the members below the quota in turn, then to those that may have one more."""
        below = deque(each for each in self.shares if len(self.shares[each]) < self._quota)
        others = deque(each for each in self.shares if len(self.shares[each]) <= self._quota)
        for partition in free:
            while below and len(self.shares[below[0]]) >= self._quota:
                below.popleft()
            if below:
                self._give(below[0], partition)
                below.rotate(-1)
            else:
                self._give(others.popleft(), partition)


class _Group:
    """The subscribers of some topics: a heap per rack, with the least loaded member on top.

    An entry with an outdated load is corrected when it reaches the top. That is sufficient if the
    load has grown; if it has fallen, a new entry has to be added.
    """

    def __init__(self, members: Sequence[str], racks: Racks) -> None:
        self.members = members
        self.size = len(members)
        self.heaps: Dict[Optional[str], List[Tuple[int, int, str]]] = {
            racks.of_members[member]: [] for member in members
        }

    def least(self, loads: Mapping[str, int], near: FrozenSet[str]) -> Tuple[int, str]:
        """Return load and id of the least loaded member; ties: one in a near rack, then by rank."""
        found = []
        for rack, heap in self.heaps.items():
            load, rank, member = heap[0]
            while load != loads[member]:
                heapq.heapreplace(heap, (loads[member], rank, member))
                load, rank, member = heap[0]
            found.append((load, bool(near) and rack is not None and rack not in near, rank, member))
        load, _, _, member = min(found)
        return load, member


class _Uneven:
    """Members with different subscriptions.

    Topics with the same subscribers form a group: its partitions are interchangeable except for
    racks and previous owners.
    """

    def __init__(
        self,
        kept: Shares,
        free: Iterable[Partition],
        topics: Mapping[str, FrozenSet[str]],
        claims: Claims,
        racks: Racks,
    ) -> None:
        self._topics = topics
        self._before = claims.before
        self._racks = racks
        self._loads = {member: len(share) for member, share in kept.items()}
        self._rank = {member: rank for rank, member in enumerate(kept)}
        self._group_of: Dict[str, _Group] = {}
        self._groups_of: Dict[str, List[_Group]] = {member: [] for member in kept}
        #: The partitions of each member, by group; those it did not own before come last.
        self._held: Dict[str, Dict[_Group, List[Partition]]] = {member: {} for member in kept}
        self._form_groups()
        for member, share in kept.items():
            for partition in share:
                self._hold(member, partition)
        #: The number of partitions of each member, by group, that must not move.
        self._fixed = {
            member: {group: len(some) for group, some in held.items()}
            for member, held in self._held.items()
        }
        self._place(free)
        self._even_out()
        self._fixed = {member: {} for member in kept}
        self._even_out()
        self.shares: Shares = {
            member: [partition for some in held.values() for partition in some]
            for member, held in self._held.items()
        }

    def _form_groups(self) -> None:
        subscribers: Dict[str, List[str]] = {}
        for member, topics in self._topics.items():
            for topic in topics:
                subscribers.setdefault(topic, []).append(member)
        groups: Dict[Tuple[str, ...], _Group] = {}
        for topic in sorted(subscribers):
            members = tuple(subscribers[topic])
            if members not in groups:
                groups[members] = _Group(members, self._racks)
                for member in members:
                    self._groups_of[member].append(groups[members])
            self._group_of[topic] = groups[members]
        for member in self._topics:
            self._tell(member)

    def _tell(self, member: str) -> None:
        """Add an entry to all groups of a member, because its load has fallen."""
        entry = self._loads[member], self._rank[member], member
        rack = self._racks.of_members[member]
        for group in self._groups_of[member]:
            heapq.heappush(group.heaps[rack], entry)

    def _hold(self, member: str, partition: Partition) -> None:
        self._held[member].setdefault(self._group_of[partition[0]], []).append(partition)

    def _place(self, free: Iterable[Partition]) -> None:
        """Assign free partitions, first those of topics with the fewest subscribers."""
        for partition in sorted(free, key=lambda at: (self._group_of[at[0]].size, at)):
            near = self._racks.of_partition(partition)
            _, member = self._group_of[partition[0]].least(self._loads, near)
            self._loads[member] += 1
            self._hold(member, partition)

    def _even_out(self) -> None:
        """Move partitions from members with more to members with less, until it is balanced.

        Each move reduces the sum of the squares of loads, so this terminates.
        """
        has_moved = True
        while has_moved:
            has_moved = False
            for member in sorted(self._held, key=lambda each: (-self._loads[each], each)):
                load = self._loads[member]
                self._give_back(member)
                self._relieve(member)
                if self._loads[member] != load:
                    self._tell(member)
                    has_moved = True
            has_moved = has_moved or self._pass_on()

    def _may_move(self, member: str, group: _Group) -> bool:
        some = self._held[member].get(group, ())
        return len(some) > self._fixed[member].get(group, 0)

    def _pass_on(self) -> bool:
        """Move partitions along a chain to a member with at least two fewer than its first member.

        Returns False if there is no such chain: the balance cannot be improved.
        A member that was reached from a more loaded one is not searched again: that search found no
        member with few enough partitions.
        """
        came_from: Dict[str, Optional[Tuple[str, _Group]]] = {}
        seen: Set[_Group] = set()
        for first in sorted(self._held, key=lambda each: (-self._loads[each], each)):
            if first in came_from:
                continue
            came_from[first] = None
            waiting = deque([first])
            while waiting:
                member = waiting.popleft()
                for group in self._groups_of[member]:
                    if group in seen or not self._may_move(member, group):
                        continue
                    seen.add(group)
                    for to in group.members:
                        if to in came_from:
                            continue
                        came_from[to] = member, group
                        if self._loads[to] + 1 < self._loads[first]:
                            self._follow_back(to, came_from)
                            return True
                        waiting.append(to)
        return False

    def _follow_back(
        self, last: str, came_from: Mapping[str, Optional[Tuple[str, _Group]]]
    ) -> None:
        """Move one partition over each link of a chain, from its end to its beginning."""
        link = came_from[last]
        while link is not None:
            member, group = link
            self._move(member, group, self._held[member][group][-1], last)
            self._tell(member)
            last, link = member, came_from[member]

    def _give_back(self, member: str) -> None:
        """Move partitions to their previous owners, if that improves the balance."""
        if not self._before:
            return
        for group, some in list(self._held[member].items()):
            for partition in some[self._fixed[member].get(group, 0) :]:
                to = self._before.get(partition)
                if (
                    to is not None
                    and partition[0] in self._topics[to]
                    and self._loads[to] + 1 < self._loads[member]
                ):
                    self._move(member, group, partition, to)

    def _relieve(self, member: str) -> None:
        """Move partitions to members with at least two fewer, first to the least loaded.

        The loads of other members only grow meanwhile, so entries of the heap are corrected at the
        top.
        """
        nowhere: FrozenSet[str] = frozenset()
        held = self._held[member]
        choices = [
            (*group.least(self._loads, nowhere), number, group)
            for number, group in enumerate(held)
            if self._may_move(member, group)
        ]
        heapq.heapify(choices)
        while choices:
            least, to, number, group = choices[0]
            now = group.least(self._loads, nowhere)
            if not self._may_move(member, group):
                heapq.heappop(choices)
            elif now != (least, to):
                heapq.heapreplace(choices, (*now, number, group))
            elif least + 1 < self._loads[member]:
                self._move(member, group, held[group][-1], to)
            else:
                return

    def _move(self, member: str, group: _Group, partition: Partition, to: str) -> None:
        held = self._held[member]
        held[group].remove(partition)
        if not held[group]:
            del held[group]
        self._loads[member] -= 1
        self._loads[to] += 1
        self._hold(to, partition)
