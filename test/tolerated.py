"""What breaks a rule of the house and is tolerated, with the reason; for test_architecture.py.

An entry whose subject is gone, or keeps the rule by now, fails the test and is deleted.
"""

from __future__ import annotations

LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {
    'kafka/record/batch_decoder.py: _full_strides': 'run for each record: each call inside costs',
    'kafka/producer/record_accumulator.py: RecordAccumulator.append': 'as KafkaProducer.send',
    'kafka/producer/single_batch_path.py: SingleBatchPath.try_to_send': 'as KafkaProducer.send',
    'kafka/producer/kafka.py: KafkaProducer.send': 'made for each record: each call inside costs',
}
MANY_METHODS: dict[str, str] = {
    'kafka/producer/record_accumulator.py: RecordAccumulator': 'all change tables under one lock',
    'kafka/consumer/group.py: KafkaConsumer': 'a public client: documentation and delegation',
    'kafka/consumer/subscription_state.py: SubscriptionState': 'public: 24 names are those of 1.x',
}
LATE_IMPORTS: dict[str, str] = {
    'kafka/cli/import_hook.py: kafka.cli.old_source': 'paid for by sources that fail only',
    'kafka/cli/old_source.py: kafka.cli.python2': 'and of these by Python 2 only: it is heavy',
    'kafka/cli/program.py: kafka.cli.old_source': 'paid for by sources that fail only',
}
BROAD_EXCEPTS: dict[str, str] = {
    'kafka/consumer/commits.py: ConsumerCommits.tell_ended': 'raised once all were called',
    'kafka/internals/cleanup.py: clean_up': 'logged: the error of the program is on its way to it',
    'kafka/consumer/fetch/manager.py: FetchManager.look': 'logged: fetching has to go on',
    'kafka/consumer/fetch/manager.py: FetchManager._answered': 'raised by the next poll()',
    'kafka/spark/__init__.py: register': 'raised again unless the format is there already',
    'kafka/metrics/reporting.py: HarmlessReporter._tell': 'logged: it must not stop a client',
    'kafka/producer/kafka.py: _close_all': 'raised again once all producers are closed',
    'kafka/evented/consumer_coordinator.py: ConsumerCoordinator._tell': 'logged, as 1.x did',
    'kafka/consumer/commits.py: ConsumerCommits._note': 'logged: the commit was made',
    'kafka/consumer/rebalancing.py: RebalanceSteps._tell': 'logged or raised: it goes on',
    'kafka/cli/program.py: _guarded': 'shown as the interpreter shows what ends a program',
    'kafka/cli/python2.py: parse': 'a fault of the translator is a source it cannot translate',
    'kafka/cli/program.py: _report': 'what an excepthook of the program raises is shown too',
    'kafka/consumer/modern.py: ModernConsumer._end': 'logged: the consumer is closed all the same',
    'kafka/consumer/fetch/completed_fetch.py: CompletedFetch._deserialized': 'raised by take()',
    'kafka/blocking/worker_processes.py: check_sendable': 'what an object raises when pickled',
    'kafka/coordinator/classic/assignors.py: _of': 'told as the failure of the assignor',
    'kafka/blocking/exchange.py: abandon': 'a foreign connection may fail in any way',
    'kafka/blocking/base_client.py: BlockingClient._send_broker_unaware_request': 'next host',
    'kafka/evented/client.py: EventedClient._run_tasks': 'a task of the program: its future fails',
    'kafka/future.py: Future._run': 'logged: nobody waits for a callback',
    'kafka/future.py: drive_coroutine': 'thrown into the coroutine, which awaits it',
    'kafka/producer/record_preparation.py: ProducerInterceptors.on_send_error': 'logged: the error'
    ' of the record is raised',
    'kafka/future.py: Future._tell': 'logged: a callback must not end the thread of the network',
    'kafka/net/sasl/login.py: prepare': 'told as a failure of the mechanism',
    'kafka/net/sasl/login.py: _step': 'told as a failure of the mechanism',
    'kafka/net/opening.py: Opening._open_again': 'a failed try, with back-off, whatever it was',
    'kafka/net/node_connection.py: NodeConnection._renew': 'ends the connection',
    'kafka/net/metadata_updater.py: MetadataUpdater._keep_up': 'logged: the upkeep has to go on',
    'kafka/net/sasl/oauth.py: _provided': 'told as the failure of the provider of tokens',
    'kafka/net/loop/loop.py: WaitingThread.is_done': 'raised again in its own thread',
    'kafka/net/loop/loop.py: Loop.is_only': 'raised again once the iteration is in order',
    'kafka/net/loop/loop.py: Loop._run_once': 'logged: nobody waits for a call of the loop',
    'kafka/net/loop/executor.py: Executor._run': 'raised again where the result is awaited',
    'kafka/net/loop/executor.py: Work._run': 'raised again where the result is awaited',
    'kafka/net/loop/tasks.py: Scheduler.run_ready': 'logged: nobody waits for a call of the loop',
    'kafka/net/loop/tasks.py: Scheduler._guarded': 'logged: nobody waits for a call of the loop',
    'kafka/net/loop/tasks.py: Task.drop': 'logged: the loop is closing, nobody waits any more',
    'kafka/net/loop/tasks.py: Task.step': 'becomes the outcome of the task',
    'kafka/util.py: ReentrantTimer._run': 'a timer thread survives its callback, as in 0.9.5',
    'kafka/testing/broker.py: Broker.handle': 'closes the connection; kept for the end of the test',
    'kafka/testing/server.py: Server._guarded': 'kept too: one client must not end the others',
    'kafka/testing/server.py: Server.call.run': 'raised again in the thread that called',
    'kafka/testing/waiting.py: _Waiter.try_once': 'who touched the key is not to blame',
    'kafka/producer/sender.py: Sender.look': 'logged: a mistake must not end all sending',
    'kafka/producer/sender.py: Sender.begin': 'logged: a fault must not end all sending',
    'kafka/producer/sender.py: Sender.mend': 'logged: a fault must not end all sending',
    'kafka/producer/sender.py: Sender._send_unanswered': 'becomes the outcome',
    'kafka/producer/in_flight_batches.py: InFlightBatches.on_response': 'logged: no batch is lost',
    'kafka/producer/in_flight_batches.py: InFlightBatches.on_stored': 'logged: no batch is lost',
    'kafka/producer/single_batch_path.py: SingleBatchPath.try_to_send': 'becomes the outcome',
    'kafka/net/node_connection.py: NodeConnection._put_or_fail': 'logged, and told as the answer',
    'kafka/blocking/async_worker.py: Upstream._connect': 'tried again: nobody could handle it here',
    'kafka/blocking/async_worker.py: Upstream._requests': 'logged: later messages must go on',
    'kafka/blocking/async_worker.py: Upstream._prepare_retry': 'logged: the retry follows anyway',
    'kafka/blocking/async_worker.py: Upstream._send': 'becomes the verdict on the request',
}
