"""PreparedTransactions: ends transactions that other producers have prepared, from any process.

Has the calls that need only a transactional id and the result of prepare_transaction(): checking
whether a transaction is still open, EndTxn, fencing an id, and listing the ids with open
transactions or with a producer that may begin one. Called by :mod:`kafka.spark` and by programs, in
one thread. The callers decide which process ends a transaction. Follows KIP-98, KIP-664, KIP-890
and, in its names, KIP-939, whose two-phase commit needs brokers that no release has yet: here the
transaction timeout still applies, and the coordinator aborts transactions that exceed it.

Every call may be repeated: a broker answers a repeated EndTxn with the same outcome, until the id
is used again. After that, and after a timeout, it answers with an error for which is_over() is
True.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Coroutine, Dict, Iterable, List, Mapping, Optional, TypeVar

from kafka import config as options
from kafka.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    UnknownProducerIdError,
    UnsupportedVersionError,
    for_code,
)
from kafka.internals.cleanup import clean_up
from kafka.internals.validation import as_milliseconds
from kafka.net.backoff import backoff_seconds
from kafka.net.client import NetworkClient
from kafka.net.loop.tasks import CoroutineCall
from kafka.net.node_connection import session_of
from kafka.net.pool import Pool
from kafka.net.settings import NetSettings
from kafka.producer import transaction_calls as calls
from kafka.producer.sequence_numbers import NOBODY, Identity
from kafka.producer.transaction_calls import Ask, Caller
from kafka.producer.transaction_driver import API_KEYS, TRANSACTION
from kafka.producer.transaction_errors import (
    CallKind,
    CallOutcome,
    error_of_call,
    outcome_of,
    outcome_of_end,
)
from kafka.producer.transaction_operations import PreparedTxnState
from kafka.protocol.api import ApiKey
from kafka.protocol.transaction import ListTransactionsRequest

__all__ = ['PreparedTransactions', 'is_over']

T = TypeVar('T')
Transactions = Mapping[str, PreparedTxnState]
Errors = Dict[str, KafkaError]

#: The errors of EndTxn if the transaction is over, or another producer uses the id.
_OVER = frozenset(
    each.errno
    for each in (
        InvalidProducerEpochError,
        InvalidTxnStateError,
        InvalidProducerIdMappingError,
        UnknownProducerIdError,
        ProducerFencedError,
    )
)
#: States of transactions for which read_committed consumers have to wait.
_OPEN = ['Ongoing']
#: The same, and the state of an id whose producer has not begun a transaction yet.
_HELD = ['Ongoing', 'Empty']
#: Seconds before the first retry: the markers of an ending transaction are being written.
_FIRST_PAUSE = 0.02
#: Seconds to wait for a broker that is still loading the transactions of its ids.
_LOADING_SECONDS = 5.0


def is_over(error: Optional[KafkaError]) -> bool:
    """Return True if an error means that the transaction has ended, by commit or abort."""
    return getattr(error, 'errno', None) in _OVER


class PreparedTransactions:
    """Ends transactions at the coordinators of their ids. For one thread; connects on first use.

    Arguments: configs: options of KafkaProducer for bootstrap servers, security and timeouts.
    max_block_ms bounds each call. Raises: KafkaConfigurationError.

    Methods that take several ids send all requests at once, and return {id: error} for those that
    failed. All methods raise NoBrokersAvailable and other errors if brokers cannot be reached.
    """

    def __init__(self, **configs: Any) -> None:
        self.config = options.resolve(options.PRODUCER, configs)
        self._settings = NetSettings.from_options(self.config)
        self._max_block = self.config['max_block_ms'] / 1000
        self._chance = random.Random()
        self._network: Optional[NetworkClient] = None
        self._is_closed = False

    def __repr__(self) -> str:
        state = 'closed' if self._is_closed else 'new' if self._network is None else 'connected'
        return '<PreparedTransactions %s>' % state

    # ------------------------------------------------------------ transactions and ids

    def commit(self, transactions: Transactions) -> Errors:
        """Commit transactions; may be repeated."""
        return self._end(transactions, True)

    def abort(self, transactions: Transactions) -> Errors:
        """Abort transactions; may be repeated."""
        return self._end(transactions, False)

    def _end(self, transactions: Transactions, commits: bool) -> Errors:
        asks = {
            name: calls.end(_caller(name, state), commits) for name, state in transactions.items()
        }
        return self._ask_all(asks, lambda _, code: outcome_of_end(code, commits))

    def check(self, transactions: Transactions) -> Errors:
        """Check whether transactions that have records are still open.

        Sends AddPartitionsToTxn for a partition that is in the transaction already, which changes
        nothing.
        """
        asks = {
            name: calls.add_partitions(_caller(name, state)._replace(is_v2=False), [place])
            for name, state in transactions.items()
            for place in [state.partition]
            if place is not None
        }
        return self._ask_all(asks, outcome_of)

    def fence(self, transactional_ids: Iterable[str], timeout_ms: float = 60000) -> Errors:
        """Fence the producers of ids, abort their open transactions, and wait for the abort.

        Arguments: timeout_ms: the transaction_timeout_ms that the ids have from then on.
        """
        timeout = as_milliseconds('timeout_ms', timeout_ms)
        asks = {
            name: calls.init_producer_id(Caller(name, NOBODY, False), timeout, raises=False)
            for name in transactional_ids
        }
        return self._ask_all(asks, outcome_of)

    def open_ids(self, prefix: str) -> Optional[List[str]]:
        """Return the ids with a prefix that have an open transaction; None before Kafka 3.0.

        Only ids that this user is allowed to describe. Brokers that cannot be reached are left out,
        and those that have not loaded their transactions within 5 s, or max_block_ms if that is
        less.
        """
        return self.run(lambda network: self._list(network, prefix, _OPEN))

    def held_ids(self, prefix: str) -> Optional[List[str]]:
        """Return the ids of open_ids(), and those whose producers have not begun a transaction.

        These are ids whose producers got a producer id before this call and have had no transaction
        since: fencing such an id prevents that producer from ever beginning one. Fenced ids are
        returned, too.
        """
        return self.run(lambda network: self._list(network, prefix, _HELD))

    # ------------------------------------------------------------ for other requests

    def run(self, ask: Callable[[NetworkClient], Coroutine[Any, Any, T]]) -> T:
        """Bootstrap, then run the coroutine that ``ask(network)`` returns; return its result.

        Raises: as NetworkClient.connect() after max_block_ms; KafkaTimeoutError if the coroutine
        takes longer than max_block_ms plus request_timeout_ms; IllegalStateError after close().
        """
        if self._is_closed:
            raise IllegalStateError('the PreparedTransactions is closed')
        network = self._network
        if network is None:
            network = NetworkClient(self._settings, 'kafka-prepared-transactions')
            self._network = network
        network.connect(self._max_block)
        call = CoroutineCall(ask, network)
        return network.run(call, self._max_block + self._settings.request_timeout)

    def close(self) -> None:
        """Close the connections; may be called again. No transaction is ended."""
        self._is_closed = True
        network, self._network = self._network, None
        if network is not None:
            network.close()

    def __enter__(self) -> PreparedTransactions:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        clean_up(self.close, error)

    # ------------------------------------------------------------ one request, until it is answered

    def _ask_all(
        self, asks: Mapping[str, Ask], decide: Callable[[CallKind, int], CallOutcome]
    ) -> Errors:
        if not asks:
            return {}

        async def ask_all(network: NetworkClient) -> List[Optional[KafkaError]]:
            tries = (self._ask(network, ask, decide) for ask in asks.values())
            return await network.loop.gather(*tries)

        found = self.run(ask_all)
        return {name: error for name, error in zip(asks, found) if error is not None}

    async def _ask(
        self, network: NetworkClient, ask: Ask, decide: Callable[[CallKind, int], CallOutcome]
    ) -> Optional[KafkaError]:
        """Send a request until the response is final; return its error, None for success."""
        loop = network.loop
        deadline = loop.time() + self._max_block
        failures = 0
        while True:
            last: Optional[KafkaError] = None
            refinds = True
            try:
                code = _code_of(ask, await self._once(network, ask))
            except KafkaError as error:
                if not error.retriable:
                    return error
                last = error
            else:
                outcome = decide(ask.kind, code)
                if outcome is CallOutcome.DONE:
                    return None
                last = error_of_call(ask.kind, code, ask.about)
                if outcome not in (CallOutcome.RETRY, CallOutcome.REFIND):
                    return last
                refinds = outcome is CallOutcome.REFIND
            if refinds and ask.key is not None:
                network.pool.forget_coordinator(TRANSACTION, ask.key)
            failures += 1
            pause = self._pause(failures)
            if loop.time() + pause >= deadline:
                return _late(ask, self._max_block, last)
            await loop.sleep(pause)

    def _pause(self, failures: int) -> float:
        settings = self._settings
        longest = max(settings.retry_backoff, settings.retry_backoff_max)
        part = self._chance.uniform(0.8, 1.2)
        return backoff_seconds(_FIRST_PAUSE, longest, failures, part)

    async def _once(self, network: NetworkClient, ask: Ask) -> Any:
        seconds = self._settings.request_timeout
        return await network.loop.within(seconds, self._exchange(network.pool, ask, seconds))

    @staticmethod
    async def _exchange(pool: Pool, ask: Ask, seconds: float) -> Any:
        assert ask.key is not None
        seen = pool.seen_versions
        if seen is not None and ApiKey.INIT_PRODUCER_ID not in seen.ranges:
            raise UnsupportedVersionError(
                '%s for %s: transactions need brokers of Kafka 0.11 or later'
                % (ask.kind.value, ask.about)
            )
        link = pool.link(await pool.coordinator(TRANSACTION, ask.key))
        await link.ready()
        lowest, highest = session_of(link).versions.ranges.get(API_KEYS[ask.kind], (0, -1))
        if highest < ask.lowest or lowest > ask.highest:
            raise UnsupportedVersionError(
                '%s for %s needs version %d to %d; the broker has %s'
                % (
                    ask.kind.value,
                    ask.about,
                    ask.lowest,
                    ask.highest,
                    '%d to %d' % (lowest, highest) if highest >= 0 else 'none',
                )
            )
        return await link.request(ask.request, seconds, highest=ask.highest)

    # ------------------------------------------------------------ all brokers

    async def _list(
        self, network: NetworkClient, prefix: str, states: List[str]
    ) -> Optional[List[str]]:
        nodes = [broker.nodeId for broker in network.cluster.brokers()]
        asks = (self._list_of(network, node, states) for node in nodes)
        answers = await network.loop.gather(*asks)
        found = [each for each in answers if each is not None]
        if not found:
            return None
        return sorted({name for some in found for name in some if name.startswith(prefix)})

    async def _list_of(
        self, network: NetworkClient, node: int, states: List[str]
    ) -> Optional[List[str]]:
        """Return the ids in some states of one broker, None if it cannot list them."""
        loop = network.loop
        deadline = loop.time() + min(_LOADING_SECONDS, self._max_block)
        failures = 0
        while True:
            try:
                answer = await self._list_once(network, node, states)
            except KafkaError as error:
                if not error.retriable:
                    raise
                return []
            if answer is None:
                return None
            if not answer.error_code:
                return [each.transactional_id for each in answer.transaction_states]
            kind = for_code(answer.error_code)
            if not kind.retriable:
                raise kind('ListTransactions')
            failures += 1
            pause = self._pause(failures)
            if loop.time() + pause >= deadline:
                return []
            await loop.sleep(pause)

    async def _list_once(self, network: NetworkClient, node: int, states: List[str]) -> Any:
        seconds = self._settings.request_timeout
        link = network.pool.link(node)
        await network.loop.within(seconds, link.ready())
        if ApiKey.LIST_TRANSACTIONS not in session_of(link).versions.ranges:
            return None
        request = ListTransactionsRequest(state_filters=states, producer_id_filters=[])
        return await link.request(request, seconds)


def _caller(name: str, state: PreparedTxnState) -> Caller:
    return Caller(name, Identity(state.producer_id, state.epoch), state.is_v2)


def _code_of(ask: Ask, answer: Any) -> int:
    if ask.kind is CallKind.ADD_PARTITIONS:
        codes = set(calls.added_partitions(answer).values())
        return max(codes) if codes else 0
    code: int = answer.error_code
    return code


def _late(ask: Ask, seconds: float, last: Optional[KafkaError]) -> KafkaError:
    error = KafkaTimeoutError(
        '%s for %s took longer than %.3g s (max_block_ms): %s'
        % (ask.kind.value, ask.about, seconds, last)
    )
    error.__cause__ = last
    return error
