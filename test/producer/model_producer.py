"""An idempotent producer as small as it can be, its own state under test, and a model of a leader.

Owns what can happen between them, one method for each, and what must hold whatever happens: the log
has no record twice and none before one that was sent earlier, every record whose batch was
acknowledged is in it, no batch changes while anything of its partition is on the wire, and none
fails but for what it is. Who lets things happen is not owned: tests by hypothesis, and by seeds.
"""

from __future__ import annotations

from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.producer.produce_errors import ProduceAction
from kafka.producer.transaction_state import TransactionState
from kafka.protocol.transaction import InitProducerIdResponse
from test.producer.model_broker import Connection, Partition, Sent
from test.producer.numbered import Batch, answer

#: Answers of a leader that has, or has not, written the batch.
NOT_APPLIED = [2, 3, 5, 6, 19, 56]
NOT_LEADER = 6
APPLIED = [7, 20]
#: What a batch may fail with: it is too large, or breaks a rule of the topic.
ITS_OWN_FAULT = [10, 87]


class Records(Batch):
    """A batch that knows its records, and what of its partition is on the wire."""

    def __init__(self, records, on_wire=()):
        super().__init__(len(records))
        self.records = tuple(records)
        self.on_wire = on_wire
        self.is_over = False  # its futures are resolved

    def restamp(self, *numbers):
        """Carry these numbers, the first ones or, with nothing on the wire, others."""
        assert not (self.stamps and self.on_wire), 'numbers change while batches are on the wire'
        super().restamp(*numbers)


class Producer:
    """What a sender does with a state, in any order that can be."""

    def __init__(self):
        self.state = TransactionState()
        self.partition = Partition()
        #: The last one is to the leader, those before to nodes that lead no more.
        self.connections = [Connection(self.partition)]
        self.ghosts = []  # connections that the client has left, with requests still on their way
        self.on_wire = []  # batches of which the state was told neither an answer nor a loss
        self.queue = []  # batches that wait to be sent, in order
        self.last_record = 0
        self.acknowledged = set()
        self.last_id = 0

    def begin(self, first, epoch):
        """Begin with a sequence number, 0 or a late one, and an epoch."""
        self.give_identity(epoch)
        if first:  # as if many had been sent before
            batch = Records(range(1))
            self.state.stamp(batch)
            self.state.on_produced(batch, self._stored(batch, first))

    def _stored(self, batch, first):
        """Let the counters stand shortly before they wrap, here and at the broker."""
        numbered = self.state.sequences._numbered[id(batch)]
        numbered.base = first - 1
        partition = self.state.sequences._partitions[batch.topic_partition]
        partition.next_sequence = first
        identity = self.state.sequences.identity
        self.partition.produce(Sent(batch, *identity, first - 1, (0,)))
        self.acknowledged.add(0)
        return answer(0, 0)

    def give_identity(self, epoch=0):
        """Do what the driver does when a producer id is needed."""
        probe = Batch()
        self.state.may_send(probe)
        ask = self.state.needs(False)
        if ask is not None:
            self.last_id += 1
            # A new id comes when all epochs are used up. Nothing fences what was sent under the old
            # one, in no client; so nothing of it may be on its way any more.
            self.ghosts.clear()
            response = InitProducerIdResponse(
                throttle_time_ms=0, error_code=0, producer_id=self.last_id, producer_epoch=epoch
            )
            self.state.on_answer(ask, response)

    @property
    def unanswered(self):
        """The batches on the wire."""
        return [batch for connection in self.connections for batch in connection.unanswered]

    # ------------------------------------------------------------ what can happen

    def append(self, count):
        """Let a caller send some records, which become a batch."""
        first = self.last_record + 1
        self.last_record += count
        self.queue.append(Records(range(first, first + count), self.on_wire))

    def drain(self):
        """Send the next batch, if it may go."""
        self.give_identity()
        if self.queue and self.state.may_send(self.queue[0]):
            batch = self.queue.pop(0)
            self.state.stamp(batch)
            self.on_wire.append(batch)
            identity = batch.stamps[-1][:2]
            self.connections[-1].send(Sent(batch, *identity, batch.base, batch.records))

    def serve(self, which, code=0, applies=True):
        """Let a node answer; one that does not lead says so."""
        busy = [each for each in self.connections if each.requests]
        if busy:
            connection = busy[which % len(busy)]
            if connection is self.connections[-1]:
                connection.serve(code, applies)
            else:
                connection.serve(NOT_LEADER, applies=False)

    def receive(self, which):
        """Take an answer and do what the verdict says."""
        answered = [each for each in self.connections if each.answers]
        if not answered:
            return
        batch, response = answered[which % len(answered)].answers.popleft()
        self.on_wire.remove(batch)
        verdict = self.state.on_produced(batch, response)
        if verdict.action is ProduceAction.DONE:
            self.acknowledged.update(batch.records)
            self.finish(batch)
        elif verdict.action is ProduceAction.RETRY:
            self.requeue(batch)
        elif verdict.action is ProduceAction.SPLIT:
            self.split(batch)
        elif verdict.action is ProduceAction.FAIL:
            assert response.error_code in ITS_OWN_FAULT, verdict.error
            self.finish(batch)
        else:
            assert batch.is_over

    def finish(self, batch):
        """Resolve the futures of a batch, once."""
        assert not batch.is_over
        batch.is_over = True

    def split(self, batch):
        """Put the records of a batch into as many."""
        pieces = [Records([record], self.on_wire) for record in batch.records]
        self.state.on_split(batch, pieces)
        for piece in pieces:
            self.requeue(piece)

    def requeue(self, batch):
        """Queue a batch again in the order of its records."""
        self.queue.append(batch)
        self.queue.sort(key=lambda each: each.records[0])

    def move_leader(self):
        """Let another node lead, which has the same log; answers of both may come in any order."""
        if len(self.connections) < 3:
            self.connections.append(Connection(self.partition))

    def hang_up(self, which):
        """Let a connection break; its requests may still arrive."""
        left = self.connections.pop(which % len(self.connections))
        self.ghosts.append(left)
        if not self.connections:
            self.connections.append(Connection(self.partition))
        for batch in left.unanswered:
            self.on_wire.remove(batch)
            verdict = self.state.on_lost(batch, KafkaConnectionError('gone'))
            assert (verdict.action is ProduceAction.IGNORE) == batch.is_over
            if verdict.action is ProduceAction.RETRY:
                self.requeue(batch)

    def arrive_late(self, which):
        """Let one of the connections that were left bring another request."""
        ghosts = [ghost for ghost in self.ghosts if ghost.requests]
        if ghosts:
            ghosts[which % len(ghosts)].serve()

    def expire(self, on_the_wire, arrives):
        """Let the time of the oldest batch be over; they were made in this order.

        That is long after connections were left: what they carried has arrived by then, or never
        will. Otherwise a batch behind the expired one, refused for its sake and numbered anew,
        could be stored by two connections that bring both later still; no client excludes that.
        """
        under_way = [each for each in self.unanswered if not each.is_over] if on_the_wire else []
        waiting = under_way or self.queue
        if waiting:
            for ghost in self.ghosts:
                while arrives and ghost.requests:
                    ghost.serve()
            self.ghosts.clear()
            batch = min(waiting, key=lambda each: each.records[0])
            if not under_way:
                self.queue.remove(batch)
            self.give_up(batch)

    def give_up(self, batch):
        """Let the time of a batch be over."""
        self.finish(batch)
        self.state.give_up(batch, KafkaTimeoutError('late'))

    def allow_only_smaller_batches(self, size):
        """Let the topic's limit go down."""
        self.partition.largest = min(self.partition.largest, size)

    def break_a_rule_of_the_topic(self):
        """Only of what never left: a broker does not take a record back."""
        fresh = [each for each in self.queue if not each.stamps]
        if fresh:
            self.partition.refused.add(fresh[-1].records[0])

    # ------------------------------------------------------------ what must hold

    def check(self):
        """Raise AssertionError if something is wrong now."""
        log = self.partition.log
        assert len(log) == len(set(log)), 'a record is stored twice'
        assert log == sorted(log), 'a record has overtaken another'
        assert self.acknowledged <= set(log), 'an acknowledged record is not stored'
        assert len(self.unanswered) <= 5, 'more is under way than brokers remember'

    def go_on(self):
        """Let everything happen that is due, without trouble."""
        self.drain()
        while any(each.requests for each in self.connections):
            self.serve(0)
        while any(each.answers for each in self.connections):
            self.receive(0)
            self.check()

    def come_to_an_end(self):
        """Raise AssertionError unless all goes well as soon as nothing goes wrong any more."""
        for _ in range(500):
            if self.queue or self.unanswered:
                self.go_on()
        assert not self.queue, 'the producer is stuck'
        assert not self.state.sequences.has_outstanding
        self.append(1)
        for _ in range(9):
            self.go_on()
        if not self.partition.refused.intersection([self.last_record]):
            assert self.partition.log[-1:] == [self.last_record], 'nothing new goes any more'
