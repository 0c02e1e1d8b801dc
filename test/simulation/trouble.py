"""What goes wrong in a simulation: faults, moves and deaths, as a seed decides.

Owns which and when. Every trouble ends: after the end given, the cluster is whole again, so that
all that is under way can come to its end.
"""

from __future__ import annotations

from kafka.testing import LATER
from kafka.testing.faults import (
    Cut,
    Delay,
    DropRequest,
    DropResponse,
    Error,
    ErrorAfterApplying,
    Hang,
    Throttle,
)

# Codes that brokers give for a while, and which a client has to wait out.
PRODUCE_CODES = [2, 3, 5, 6, 19, 56]
COORDINATOR_CODES = [14, 15, 16]
#: From here on each transaction has an epoch of its own, so that EndTxn tells which one it means
#: (KIP-890).
ENDS_ARE_TOLD_APART_SINCE = (4, 0)
TRANSACTION_APIS = ['InitProducerId', 'AddPartitionsToTxn', 'AddOffsetsToTxn', 'EndTxn']
GROUP_APIS = ['FindCoordinator', 'JoinGroup', 'SyncGroup', 'Heartbeat', 'LeaveGroup']
GROUP_APIS += ['OffsetCommit', 'OffsetFetch', 'ConsumerGroupHeartbeat']
READING_CODES = [3, 5, 6]


class Trouble:
    """The troubles of one run.

    Arguments: cluster; chance; topic: whose leaders move; keys: groups and transactional ids whose
    coordinators move; rate: from 0, none, to 1.
    """

    def __init__(self, cluster, chance, topic, keys, rate):
        self._cluster = cluster
        self._chance = chance
        self._topic = topic
        self._keys = keys
        self._rate = rate
        self._is_over = False
        self._dead = set()

        if cluster.state.release.version < ENDS_ARE_TOLD_APART_SINCE:
            cluster.control('EndTxn', self._lose_what_comes_late)

    def _lose_what_comes_late(self, call):
        """Lose an EndTxn of a connection that its client has closed.

        A broker that hung may find it among what it had not read, long after another coordinator
        carried out the second try; it would end the next transaction, and no client prevents that.
        """
        for sock in self._cluster.network._sockets:  # those that no end has closed
            end = sock.connection
            if end.broker is call.broker and end.connection_id == call.connection_id:
                return None
        call.close_connection()
        return LATER

    def begin(self, seconds):
        """Let things go wrong for so many seconds of the virtual clock."""
        chance, rate = self._chance, self._rate
        anything = [DropRequest(), DropResponse(), Delay(chance.uniform(0.01, 5.0)), Throttle(200)]
        faults = self._cluster.faults
        if rate:
            faults.schedule([*anything, Cut(), Hang()], 0.05 * rate)
            produce = [*anything, DropResponse()]
            produce += [Error(code) for code in PRODUCE_CODES]
            produce += [ErrorAfterApplying(code) for code in (7, 20)]
            faults.schedule(produce, 0.3 * rate, 'Produce')
            answers = [*anything, DropResponse(), *map(Error, COORDINATOR_CODES)]
            for api in [*TRANSACTION_APIS, 'FindCoordinator', 'TxnOffsetCommit']:
                faults.schedule(answers, 0.3 * rate, api)
            self._next()
        self._cluster.timers.later(seconds, self.end)

    def begin_for_groups(self, seconds):
        """Let go wrong for so many seconds what members of groups meet."""
        chance, rate, faults = self._chance, self._rate, self._cluster.faults
        anything = [DropRequest(), DropResponse(), Delay(chance.uniform(0.01, 5.0)), Throttle(200)]
        if rate:
            faults.schedule([*anything, Cut(), Hang()], 0.04 * rate)
            answers = [*anything, DropResponse(), *map(Error, COORDINATOR_CODES)]
            for api in GROUP_APIS:
                faults.schedule(answers, 0.1 * rate, api)
            answers = [*anything, *map(Error, READING_CODES)]
            for api in ['Fetch', 'ListOffsets']:
                faults.schedule(answers, 0.1 * rate, api)
            self._next()
        self._cluster.timers.later(seconds, self.end)

    def begin_for_copies(self, seconds):
        """Let go wrong for so many seconds what programs meet that copy in transactions.

        Before 4.0 nothing is done that comes after its client has closed the connection, for the
        same reason as with EndTxn: it may come in the next transaction, of the same epoch.
        """
        chance, rate = self._chance, self._rate
        if self._cluster.state.release.version < ENDS_ARE_TOLD_APART_SINCE:
            for api in ['Produce', 'AddPartitionsToTxn', 'AddOffsetsToTxn', 'TxnOffsetCommit']:
                self._cluster.control(api, self._lose_what_comes_late)
        if rate:
            faults = self._cluster.faults
            anything = [DropRequest(), DropResponse(), Delay(chance.uniform(0.01, 5.0))]
            faults.schedule([*anything, Throttle(200), Cut(), Hang()], 0.03 * rate)
            answers = [*anything, DropResponse(), *map(Error, COORDINATOR_CODES)]
            for api in [*TRANSACTION_APIS, 'TxnOffsetCommit', *GROUP_APIS]:
                faults.schedule(answers, 0.1 * rate, api)
            produce = [*anything, *map(Error, PRODUCE_CODES)]
            faults.schedule(produce, 0.1 * rate, 'Produce')
            self._next()
        self._cluster.timers.later(seconds, self.end)

    def end(self):
        """Let all be well from now on."""
        if not self._is_over:
            self._is_over = True
            self._cluster.faults.clear()
            for node in sorted(self._dead):
                self._come_back(node)

    def _next(self):
        if not self._is_over:
            pause = self._chance.expovariate(self._rate)
            self._cluster.timers.later(pause, self._happen)

    def _happen(self):
        if self._is_over:
            return
        chance, cluster = self._chance, self._cluster
        happening = chance.choice([self._move_leader, self._move_coordinator, self._lose_node])
        happening(chance, cluster)
        self._next()

    def _move_leader(self, chance, cluster):
        partitions = cluster.state.topics[self._topic].partitions
        partition = chance.choice(partitions)
        nodes = [node for node in sorted(partition.isr) if node in cluster.state.alive]
        if nodes:
            cluster.move_leader(self._topic, partition.index, chance.choice(nodes))

    def _move_coordinator(self, chance, cluster):
        if self._keys and cluster.state.alive:
            cluster.move_coordinator(
                chance.choice(self._keys), chance.choice(sorted(cluster.state.alive))
            )

    def _lose_node(self, chance, cluster):
        node = chance.choice(sorted(cluster.state.nodes))
        if self._dead:
            return
        self._dead.add(node)
        if chance.random() < 0.5:
            cluster.kill(node)
        else:
            cluster.pause(node)
        cluster.timers.later(chance.uniform(0.1, 8.0), lambda: self._come_back(node))

    def _come_back(self, node):
        if node in self._dead:
            self._dead.discard(node)
            self._cluster.resume(node)
            self._cluster.restart(node)
