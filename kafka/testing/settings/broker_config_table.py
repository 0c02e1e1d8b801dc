"""The table of broker configs of all releases from 0.11 on: names, types, defaults.

Read by configs.py. A line has a name, its type, followed by ``*`` if it can be changed while the
broker runs (KIP-226), and its default from a release on, ``~`` if the release does not have the
config. Checked were the releases 0.11 1.1 2.4 2.8 3.0 3.3 3.6 3.9 4.0 4.1 4.2 4.3 4.4; a config may
have come between two of them. ``@`` refers to a text in :data:`LONG`.
"""

from __future__ import annotations

#: Defaults that are too long for a line.
LONG = {
    '@1': 'org.apache.kafka.coordinator.group.assignor.UniformAssignor,'
    'org.apache.kafka.coordinator.group.assignor.RangeAssignor',
    '@2': 'PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL',
    '@3': 'SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT',
    '@4': 'org.apache.kafka.common.security.auth.DefaultPrincipalBuilder',
    '@5': 'org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder',
    '@6': 'org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager',
    '@7': 'org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever',
    '@8': 'org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator',
}

BROKER_TABLE = """
add.partitions.to.txn.retry.backoff.max.ms INT 4.0=100
add.partitions.to.txn.retry.backoff.ms INT 4.0=20
advertised.host.name STRING 0.11=null 3.0=~
advertised.listeners LIST* 0.11=null
advertised.port INT 0.11=null 3.0=~
alter.config.policy.class.name CLASS 0.11=null
alter.config.policy.kraft.compatibility.enable BOOLEAN 3.9=false 4.0=~
alter.log.dirs.replication.quota.window.num INT 1.1=11
alter.log.dirs.replication.quota.window.size.seconds INT 1.1=1
authorizer.class.name STRING 0.11=
auto.create.topics.enable BOOLEAN 0.11=true
auto.include.jmx.reporter BOOLEAN 3.6=true 4.0=~
auto.leader.rebalance.enable BOOLEAN 0.11=true
background.threads INT* 0.11=10
broker.heartbeat.interval.ms INT 3.0=2000
broker.id INT 0.11=-1
broker.id.generation.enable BOOLEAN 0.11=true 4.0=~
broker.rack STRING 0.11=null
broker.session.timeout.ms INT 3.0=9000
client.quota.callback.class CLASS 2.4=null
compression.gzip.level INT* 3.9=-1
compression.lz4.level INT* 3.9=9
compression.type STRING* 0.11=producer
compression.zstd.level INT* 3.9=3
config.providers LIST* 4.2=
connection.failed.authentication.delay.ms INT 2.4=100
connections.max.idle.ms LONG 0.11=600000
connections.max.reauth.ms LONG 2.4=0
control.plane.listener.name STRING 2.4=null 4.0=~
controlled.shutdown.enable BOOLEAN 0.11=true
controlled.shutdown.max.retries INT 0.11=3 4.0=~
controlled.shutdown.retry.backoff.ms LONG 0.11=5000 4.0=~
controller.listener.names LIST 3.0=null 4.2=<NONE>
controller.quorum.append.linger.ms INT 3.0=25
controller.quorum.auto.join.enable BOOLEAN 4.2=false
controller.quorum.bootstrap.servers LIST 3.9=
controller.quorum.election.backoff.max.ms INT 3.0=1000
controller.quorum.election.timeout.ms INT 3.0=1000
controller.quorum.fetch.max.bytes INT 4.3=1048576
controller.quorum.fetch.snapshot.max.bytes INT 4.3=1048576
controller.quorum.fetch.timeout.ms INT 3.0=2000
controller.quorum.request.timeout.ms INT 3.0=2000
controller.quorum.retry.backoff.ms INT 3.0=20
controller.quorum.voters LIST 3.0=
controller.quota.window.num INT 2.8=11
controller.quota.window.size.seconds INT 2.8=1
controller.socket.timeout.ms INT 0.11=30000
cordoned.log.dirs LIST* 4.3=
create.topic.policy.class.name CLASS 0.11=null
default.replication.factor INT 0.11=1
delegation.token.expiry.check.interval.ms LONG 1.1=3600000
delegation.token.expiry.time.ms LONG 1.1=86400000
delegation.token.master.key PASSWORD 1.1=null 4.0=~
delegation.token.max.lifetime.ms LONG 1.1=604800000
delegation.token.secret.key PASSWORD 2.8=null
delete.records.purgatory.purge.interval.requests INT 0.11=1
delete.topic.enable BOOLEAN 0.11=false 1.1=true
early.start.listeners LIST 3.3=null
eligible.leader.replicas.enable BOOLEAN 3.9=false 4.0=~
errors.deadletterqueue.auto.create.topics.enable BOOLEAN* 4.4=false
errors.deadletterqueue.topic.name.prefix STRING* 4.4=dlq.
fetch.max.bytes INT 2.8=57671680
fetch.purgatory.purge.interval.requests INT 0.11=1000
follower.fetch.last.tiered.offset.enable BOOLEAN* 4.3=false
group.consumer.assignment.interval.ms INT* 4.3=1000
group.consumer.assignors LIST 3.9=@1 4.0=uniform,range
group.consumer.heartbeat.interval.ms INT 3.9=5000
group.consumer.max.assignment.interval.ms INT 4.3=15000
group.consumer.max.heartbeat.interval.ms INT 3.9=15000
group.consumer.max.session.timeout.ms INT 3.9=60000
group.consumer.max.size INT 3.9=2147483647
group.consumer.migration.policy STRING 4.0=bidirectional
group.consumer.min.assignment.interval.ms INT 4.3=0
group.consumer.min.heartbeat.interval.ms INT 3.9=5000
group.consumer.min.session.timeout.ms INT 3.9=45000
group.consumer.session.timeout.ms INT 3.9=45000
group.coordinator.append.linger.ms INT 3.9=10 4.0=5 4.2=-1
group.coordinator.background.threads INT 4.3=2
group.coordinator.cached.buffer.max.bytes INT* 4.3=1048588
group.coordinator.rebalance.protocols LIST 3.9=classic 4.0=classic,consumer
    4.1=classic,consumer,streams
group.coordinator.threads INT 3.9=1 4.0=4
group.initial.rebalance.delay.ms INT 0.11=3000
group.max.session.timeout.ms INT 0.11=300000 2.4=1800000
group.max.size INT 2.4=2147483647
group.min.session.timeout.ms INT 0.11=6000
group.share.assignment.interval.ms INT* 4.3=1000
group.share.assignors LIST 4.1=simple
group.share.delivery.count.limit INT 3.9=5
group.share.heartbeat.interval.ms INT 3.9=5000
group.share.max.assignment.interval.ms INT 4.3=15000
group.share.max.delivery.count.limit INT 4.3=10
group.share.max.groups SHORT 3.9=10 4.1=~
group.share.max.heartbeat.interval.ms INT 3.9=15000
group.share.max.partition.max.record.locks INT 4.3=4000
group.share.max.record.lock.duration.ms INT 3.9=60000
group.share.max.session.timeout.ms INT 3.9=60000
group.share.max.share.sessions INT 4.1=2000
group.share.max.size INT 3.9=200
group.share.min.assignment.interval.ms INT 4.3=0
group.share.min.delivery.count.limit INT 4.3=2
group.share.min.heartbeat.interval.ms INT 3.9=5000
group.share.min.partition.max.record.locks INT 4.3=100
group.share.min.record.lock.duration.ms INT 3.9=15000
group.share.min.session.timeout.ms INT 3.9=45000
group.share.partition.max.record.locks INT 3.9=200 4.1=2000
group.share.record.lock.duration.ms INT 3.9=30000
group.share.session.timeout.ms INT 3.9=45000
group.streams.assignment.interval.ms INT* 4.3=1000
group.streams.assignors LIST 4.4=sticky
group.streams.heartbeat.interval.ms INT 4.1=5000
group.streams.initial.rebalance.delay.ms INT 4.2=3000
group.streams.max.assignment.interval.ms INT 4.3=15000
group.streams.max.heartbeat.interval.ms INT 4.1=15000
group.streams.max.session.timeout.ms INT 4.1=60000
group.streams.max.size INT 4.1=2147483647
group.streams.max.standby.replicas INT 4.1=2
group.streams.min.assignment.interval.ms INT 4.3=0
group.streams.min.heartbeat.interval.ms INT 4.1=5000
group.streams.min.session.timeout.ms INT 4.1=45000
group.streams.num.standby.replicas INT 4.1=0
group.streams.rack.aware.assignment.tags LIST 4.4=
group.streams.session.timeout.ms INT 4.1=45000
group.streams.topology.description.plugin.class CLASS 4.4=null
host.name STRING 0.11= 3.0=~
initial.broker.registration.timeout.ms INT 3.0=60000
inter.broker.listener.name STRING 0.11=null
inter.broker.protocol.version STRING 0.11=@protocol 4.0=~
kafka.metrics.polling.interval.secs INT 2.4=10
kafka.metrics.reporters LIST 2.4=
leader.imbalance.check.interval.seconds LONG 0.11=300
leader.imbalance.per.broker.percentage INT 0.11=10 4.0=~
listener.security.protocol.map STRING* 0.11=@2 3.9=@3
listeners LIST* 0.11=null 3.0=PLAINTEXT://:9092
log.cleaner.backoff.ms LONG* 0.11=15000
log.cleaner.dedupe.buffer.size LONG* 0.11=134217728
log.cleaner.delete.retention.ms LONG* 0.11=86400000
log.cleaner.enable BOOLEAN 0.11=true
log.cleaner.io.buffer.load.factor DOUBLE* 0.11=0.9
log.cleaner.io.buffer.size INT* 0.11=524288
log.cleaner.io.max.bytes.per.second DOUBLE* 0.11=1.7976931348623157E308
log.cleaner.max.compaction.lag.ms LONG* 2.4=9223372036854775807
log.cleaner.min.cleanable.ratio DOUBLE* 0.11=0.5
log.cleaner.min.compaction.lag.ms LONG* 0.11=0
log.cleaner.threads INT* 0.11=1
log.cleanup.policy LIST* 0.11=delete
log.dir LIST 0.11=/tmp/kafka-logs
log.dir.failure.timeout.ms LONG 3.9=30000
log.dirs LIST 0.11=null
log.flush.interval.messages LONG* 0.11=9223372036854775807
log.flush.interval.ms LONG* 0.11=null
log.flush.offset.checkpoint.interval.ms INT 0.11=60000
log.flush.scheduler.interval.ms LONG 0.11=9223372036854775807
log.flush.start.offset.checkpoint.interval.ms INT 0.11=60000
log.index.interval.bytes INT* 0.11=4096
log.index.size.max.bytes INT* 0.11=10485760
log.local.retention.bytes LONG* 3.6=-2
log.local.retention.ms LONG* 3.6=-2
log.message.downconversion.enable BOOLEAN* 2.4=true 4.0=~
log.message.format.version STRING 0.11=@protocol 3.0=3.0-IV1 4.0=~
log.message.timestamp.after.max.ms LONG* 3.6=9223372036854775807 4.0=3600000
log.message.timestamp.before.max.ms LONG* 3.6=9223372036854775807
log.message.timestamp.difference.max.ms LONG* 0.11=9223372036854775807 4.0=~
log.message.timestamp.type STRING* 0.11=CreateTime
log.preallocate BOOLEAN* 0.11=false
log.remote.copy.lag.bytes LONG* 4.4=-1
log.remote.copy.lag.ms LONG* 4.4=0
log.retention.bytes LONG* 0.11=-1
log.retention.check.interval.ms LONG 0.11=300000
log.retention.hours INT 0.11=168
log.retention.minutes INT 0.11=null
log.retention.ms LONG* 0.11=null
log.roll.hours INT 0.11=168
log.roll.jitter.hours INT 0.11=0
log.roll.jitter.ms LONG* 0.11=null
log.roll.ms LONG* 0.11=null
log.segment.bytes INT* 0.11=1073741824
log.segment.delete.delay.ms LONG* 0.11=60000
max.connection.creation.rate INT* 2.8=2147483647
max.connections INT* 2.4=2147483647
max.connections.per.ip INT* 0.11=2147483647
max.connections.per.ip.overrides STRING* 0.11=
max.decompressed.message.bytes INT* 4.4=2147483639
max.incremental.fetch.session.cache.slots INT 1.1=1000
max.request.partition.size.limit INT 3.9=2000
message.max.bytes INT* 0.11=1000012 2.8=1048588
metadata.log.dir STRING 3.0=null
metadata.log.max.record.bytes.between.snapshots LONG 3.0=20971520
metadata.log.max.snapshot.interval.ms LONG 3.6=3600000
metadata.log.segment.bytes INT 3.0=1073741824
metadata.log.segment.ms LONG 3.0=604800000
metadata.max.idle.interval.ms INT 3.3=500
metadata.max.retention.bytes LONG 3.0=-1 3.6=104857600
metadata.max.retention.ms LONG 3.0=604800000
metric.reporters LIST* 0.11= 4.0=org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples INT 0.11=2
metrics.recording.level STRING 0.11=INFO
metrics.sample.window.ms LONG 0.11=30000
min.insync.replicas INT* 0.11=1
node.id INT 3.0=-1 4.0=<NONE>
num.io.threads INT* 0.11=8
num.network.threads INT* 0.11=3
num.partitions INT 0.11=1
num.recovery.threads.per.data.dir INT* 0.11=1 4.0=2
num.replica.alter.log.dirs.threads INT 1.1=null
num.replica.fetchers INT* 0.11=1
offset.metadata.max.bytes INT 0.11=4096
offsets.commit.required.acks SHORT 0.11=-1 4.0=~
offsets.commit.timeout.ms INT 0.11=5000
offsets.load.buffer.size INT 0.11=5242880
offsets.retention.check.interval.ms LONG 0.11=600000
offsets.retention.minutes INT 0.11=1440 2.4=10080
offsets.topic.compression.codec INT 0.11=0
offsets.topic.num.partitions INT 0.11=50
offsets.topic.replication.factor SHORT 0.11=3
offsets.topic.segment.bytes INT 0.11=104857600
password.encoder.cipher.algorithm STRING 1.1=AES/CBC/PKCS5Padding 4.0=~
password.encoder.iterations INT 1.1=4096 4.0=~
password.encoder.key.length INT 1.1=128 4.0=~
password.encoder.keyfactory.algorithm STRING 1.1=null 4.0=~
password.encoder.old.secret PASSWORD 1.1=null 4.0=~
password.encoder.secret PASSWORD 1.1=null 4.0=~
port INT 0.11=9092 3.0=~
principal.builder.class CLASS* 0.11=@4 1.1=null 3.0=@5
process.roles LIST 3.0= 4.0=<NONE>
producer.id.expiration.ms INT* 3.6=86400000
producer.purgatory.purge.interval.requests INT 0.11=1000
queued.max.request.bytes LONG 1.1=-1
queued.max.requests INT 0.11=500
quota.consumer.default LONG 0.11=9223372036854775807 3.0=~
quota.producer.default LONG 0.11=9223372036854775807 3.0=~
quota.window.num INT 0.11=11
quota.window.size.seconds INT 0.11=1
remote.fetch.max.wait.ms INT* 3.9=500
remote.list.offsets.request.timeout.ms LONG* 4.0=30000
remote.log.index.file.cache.total.size.bytes LONG* 3.9=1073741824
remote.log.manager.copier.thread.pool.size INT* 3.9=-1 4.0=10
remote.log.manager.copy.max.bytes.per.second LONG* 3.9=9223372036854775807
remote.log.manager.copy.quota.window.num INT 3.9=11
remote.log.manager.copy.quota.window.size.seconds INT 3.9=1
remote.log.manager.expiration.thread.pool.size INT* 3.9=-1 4.0=10
remote.log.manager.fetch.max.bytes.per.second LONG* 3.9=9223372036854775807
remote.log.manager.fetch.quota.window.num INT 3.9=11
remote.log.manager.fetch.quota.window.size.seconds INT 3.9=1
remote.log.manager.follower.thread.pool.size INT* 4.2=2
remote.log.manager.task.interval.ms LONG 3.6=30000
remote.log.manager.thread.pool.size INT 3.6=10 4.0=2
remote.log.metadata.custom.metadata.max.bytes INT 3.6=128
remote.log.metadata.manager.class.name STRING 3.6=@6
remote.log.metadata.manager.class.path STRING 3.6=null
remote.log.metadata.manager.impl.prefix STRING 3.6=rlmm.config.
remote.log.metadata.manager.listener.name STRING 3.6=null
remote.log.reader.max.pending.tasks INT 3.6=100
remote.log.reader.threads INT* 3.6=10
remote.log.storage.manager.class.name STRING 3.6=null
remote.log.storage.manager.class.path STRING 3.6=null
remote.log.storage.manager.impl.prefix STRING 3.6=rsm.config.
remote.log.storage.system.enable BOOLEAN 3.6=false
replica.fetch.backoff.ms INT 0.11=1000
replica.fetch.max.bytes INT 0.11=1048576
replica.fetch.min.bytes INT 0.11=1
replica.fetch.response.max.bytes INT 0.11=10485760
replica.fetch.wait.max.ms INT 0.11=500
replica.high.watermark.checkpoint.interval.ms LONG 0.11=5000
replica.lag.time.max.ms LONG 0.11=10000 2.8=30000
replica.selector.class STRING 2.4=null
replica.socket.receive.buffer.bytes INT 0.11=65536
replica.socket.timeout.ms INT 0.11=30000
replication.quota.window.num INT 0.11=11
replication.quota.window.size.seconds INT 0.11=1
request.timeout.ms INT 0.11=30000
reserved.broker.max.id INT 0.11=1000 4.0=~
sasl.client.callback.handler.class CLASS 2.4=null
sasl.enabled.mechanisms LIST* 0.11=GSSAPI
sasl.jaas.config PASSWORD* 1.1=null
sasl.kerberos.kinit.cmd STRING* 0.11=/usr/bin/kinit
sasl.kerberos.min.time.before.relogin LONG* 0.11=60000
sasl.kerberos.principal.to.local.rules LIST* 0.11=DEFAULT
sasl.kerberos.service.name STRING* 0.11=null
sasl.kerberos.ticket.renew.jitter DOUBLE* 0.11=0.05
sasl.kerberos.ticket.renew.window.factor DOUBLE* 0.11=0.8
sasl.login.callback.handler.class CLASS 2.4=null
sasl.login.class CLASS 2.4=null
sasl.login.connect.timeout.ms INT 3.3=null
sasl.login.read.timeout.ms INT 3.3=null
sasl.login.refresh.buffer.seconds SHORT* 2.4=300
sasl.login.refresh.min.period.seconds SHORT* 2.4=60
sasl.login.refresh.window.factor DOUBLE* 2.4=0.8
sasl.login.refresh.window.jitter DOUBLE* 2.4=0.05
sasl.login.retry.backoff.max.ms LONG 3.3=10000
sasl.login.retry.backoff.ms LONG 3.3=100
sasl.mechanism.controller.protocol STRING 3.0=GSSAPI
sasl.mechanism.inter.broker.protocol STRING* 0.11=GSSAPI
sasl.oauthbearer.allow.unverified.audience BOOLEAN 4.4=false
sasl.oauthbearer.allow.unverified.issuer BOOLEAN 4.4=false
sasl.oauthbearer.assertion.algorithm STRING 4.1=RS256
sasl.oauthbearer.assertion.claim.aud STRING 4.1=null
sasl.oauthbearer.assertion.claim.exp.seconds INT 4.1=300
sasl.oauthbearer.assertion.claim.iss STRING 4.1=null
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN 4.1=false
sasl.oauthbearer.assertion.claim.nbf.seconds INT 4.1=60
sasl.oauthbearer.assertion.claim.sub STRING 4.1=null
sasl.oauthbearer.assertion.file STRING 4.1=null
sasl.oauthbearer.assertion.private.key.file STRING 4.1=null
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD 4.1=null
sasl.oauthbearer.assertion.template.file STRING 4.1=null
sasl.oauthbearer.client.credentials.client.id STRING 4.1=null
sasl.oauthbearer.client.credentials.client.secret PASSWORD 4.1=null
sasl.oauthbearer.clock.skew.seconds INT 3.3=30
sasl.oauthbearer.expected.audience LIST 3.3=null 4.2=
sasl.oauthbearer.expected.issuer STRING 3.3=null
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3.3=3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG 3.3=10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG 3.3=100
sasl.oauthbearer.jwks.endpoint.url STRING 3.3=null
sasl.oauthbearer.jwt.retriever.class CLASS 4.1=@7
sasl.oauthbearer.jwt.validator.class CLASS 4.1=@8
sasl.oauthbearer.scope STRING 4.1=null
sasl.oauthbearer.scope.claim.name STRING 3.3=scope
sasl.oauthbearer.sub.claim.name STRING 3.3=sub
sasl.oauthbearer.token.endpoint.url STRING 3.3=null
sasl.server.callback.handler.class CLASS 2.4=null
sasl.server.max.receive.size INT 2.8=524288
security.inter.broker.protocol STRING 0.11=PLAINTEXT
security.providers STRING 2.4=null
share.coordinator.append.linger.ms INT 4.0=10 4.1=5 4.2=-1
share.coordinator.cached.buffer.max.bytes INT* 4.3=1048588
share.coordinator.load.buffer.size INT 4.0=5242880
share.coordinator.snapshot.update.records.per.snapshot INT 4.0=500
share.coordinator.state.topic.compression.codec INT 4.0=0
share.coordinator.state.topic.min.isr SHORT 4.0=2
share.coordinator.state.topic.num.partitions INT 4.0=50
share.coordinator.state.topic.replication.factor SHORT 4.0=3
share.coordinator.state.topic.segment.bytes INT 4.0=104857600
share.coordinator.threads INT 4.0=1
share.coordinator.write.timeout.ms INT 4.0=5000
share.fetch.purgatory.purge.interval.requests INT 4.0=1000
socket.connection.setup.timeout.max.ms LONG 2.8=30000
socket.connection.setup.timeout.ms LONG 2.8=10000
socket.listen.backlog.size INT 3.3=50
socket.receive.buffer.bytes INT 0.11=102400
socket.request.max.bytes INT 0.11=104857600
socket.send.buffer.bytes INT 0.11=102400
ssl.allow.dn.changes BOOLEAN 3.9=false
ssl.allow.san.changes BOOLEAN 3.9=false
ssl.cipher.suites LIST* 0.11=null 1.1=
ssl.client.auth STRING* 0.11=none
ssl.enabled.protocols LIST* 0.11=TLSv1.2,TLSv1.1,TLSv1 2.8=TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm STRING* 0.11=null 2.4=https
ssl.engine.factory.class CLASS* 2.8=null
ssl.key.password PASSWORD* 0.11=null
ssl.keymanager.algorithm STRING* 0.11=SunX509
ssl.keystore.certificate.chain PASSWORD* 2.8=null
ssl.keystore.key PASSWORD* 2.8=null
ssl.keystore.location STRING* 0.11=null
ssl.keystore.password PASSWORD* 0.11=null
ssl.keystore.type STRING* 0.11=JKS
ssl.principal.mapping.rules STRING 2.4=DEFAULT
ssl.protocol STRING* 0.11=TLS 2.8=TLSv1.3
ssl.provider STRING* 0.11=null
ssl.secure.random.implementation STRING* 0.11=null
ssl.trustmanager.algorithm STRING* 0.11=PKIX
ssl.truststore.certificates PASSWORD* 2.8=null
ssl.truststore.location STRING* 0.11=null
ssl.truststore.password PASSWORD* 0.11=null
ssl.truststore.type STRING* 0.11=JKS
telemetry.max.bytes INT 3.9=1048576
transaction.abort.timed.out.transaction.cleanup.interval.ms INT 0.11=60000 2.8=10000
transaction.max.timeout.ms INT 0.11=900000
transaction.partition.verification.enable BOOLEAN* 3.6=true
transaction.remove.expired.transaction.cleanup.interval.ms INT 0.11=3600000
transaction.state.log.load.buffer.size INT 0.11=5242880
transaction.state.log.min.isr INT 0.11=2
transaction.state.log.num.partitions INT 0.11=50
transaction.state.log.replication.factor SHORT 0.11=3
transaction.state.log.segment.bytes INT 0.11=104857600
transaction.two.phase.commit.enable BOOLEAN 4.1=false
transactional.id.expiration.ms INT 0.11=604800000
unclean.leader.election.enable BOOLEAN* 0.11=false
zookeeper.clientCnxnSocket STRING 2.8=null 4.0=~
zookeeper.connect STRING 0.11=<NONE> 2.8=null 4.0=~
zookeeper.connection.timeout.ms INT 0.11=null 4.0=~
zookeeper.max.in.flight.requests INT 1.1=10 4.0=~
zookeeper.metadata.migration.enable BOOLEAN 3.6=false 4.0=~
zookeeper.session.timeout.ms INT 0.11=6000 2.8=18000 4.0=~
zookeeper.set.acl BOOLEAN 0.11=false 4.0=~
zookeeper.ssl.cipher.suites LIST 2.8=null 4.0=~
zookeeper.ssl.client.enable BOOLEAN 2.8=false 4.0=~
zookeeper.ssl.crl.enable BOOLEAN 2.8=false 4.0=~
zookeeper.ssl.enabled.protocols LIST 2.8=null 4.0=~
zookeeper.ssl.endpoint.identification.algorithm STRING 2.8=HTTPS 4.0=~
zookeeper.ssl.keystore.location STRING 2.8=null 4.0=~
zookeeper.ssl.keystore.password PASSWORD 2.8=null 4.0=~
zookeeper.ssl.keystore.type STRING 2.8=null 4.0=~
zookeeper.ssl.ocsp.enable BOOLEAN 2.8=false 4.0=~
zookeeper.ssl.protocol STRING 2.8=TLSv1.2 4.0=~
zookeeper.ssl.truststore.location STRING 2.8=null 4.0=~
zookeeper.ssl.truststore.password PASSWORD 2.8=null 4.0=~
zookeeper.ssl.truststore.type STRING 2.8=null 4.0=~
zookeeper.sync.time.ms INT 0.11=2000 3.3=~
"""
