"""Kafka's broker configs that have no meaning here, as Kafka 4.2 defines them. `config_table` reads these tables.

Tools and configuration files of Kafka set and read them. Most can be set, and have no effect. For configs that would
promise security, a policy or a service that Tidelog does not have, only the default is accepted: accepting an
authorizer and then letting everybody in would be worse than refusing to start.
"""

# name, type, default, valid values (- is any), and whether it can be altered while the broker runs
WITHOUT_EFFECT = """
add.partitions.to.txn.retry.backoff.max.ms int 100 0.. read-only
add.partitions.to.txn.retry.backoff.ms int 20 1.. read-only
alter.log.dirs.replication.quota.window.num int 11 1.. read-only
alter.log.dirs.replication.quota.window.size.seconds int 1 1.. read-only
auto.leader.rebalance.enable boolean true - read-only
background.threads int 10 1.. dynamic
broker.heartbeat.interval.ms int 2000 - read-only
broker.rack string null - read-only
broker.session.timeout.ms int 9000 - read-only
connection.failed.authentication.delay.ms int 100 0.. read-only
controlled.shutdown.enable boolean true - read-only
controller.listener.names list null - read-only
controller.quorum.append.linger.ms int 25 0.. read-only
controller.quorum.auto.join.enable boolean false - read-only
controller.quorum.bootstrap.servers list "" - read-only
controller.quorum.election.backoff.max.ms int 1000 0.. read-only
controller.quorum.election.timeout.ms int 1000 0.. read-only
controller.quorum.fetch.timeout.ms int 2000 0.. read-only
controller.quorum.request.timeout.ms int 2000 0.. read-only
controller.quorum.retry.backoff.ms int 20 0.. read-only
controller.quorum.voters list "" - read-only
controller.quota.window.num int 11 1.. read-only
controller.quota.window.size.seconds int 1 1.. read-only
controller.socket.timeout.ms int 30000 - read-only
delegation.token.expiry.check.interval.ms long 3600000 1.. read-only
delegation.token.expiry.time.ms long 86400000 1.. read-only
delegation.token.max.lifetime.ms long 604800000 1.. read-only
delete.records.purgatory.purge.interval.requests int 1 - read-only
early.start.listeners list null - read-only
fetch.purgatory.purge.interval.requests int 1000 - read-only
follower.replication.throttled.rate long 9223372036854775807 0.. dynamic
group.coordinator.append.linger.ms int -1 -1.. read-only
group.coordinator.threads int 4 1.. read-only
group.share.assignors list simple - read-only
group.share.delivery.count.limit int 5 2..10 read-only
group.share.heartbeat.interval.ms int 5000 1.. read-only
group.share.max.heartbeat.interval.ms int 15000 1.. read-only
group.share.max.record.lock.duration.ms int 60000 30000..3600000 read-only
group.share.max.session.timeout.ms int 60000 1.. read-only
group.share.max.share.sessions int 2000 1.. read-only
group.share.max.size int 200 1..1000 read-only
group.share.min.heartbeat.interval.ms int 5000 1.. read-only
group.share.min.record.lock.duration.ms int 15000 1000..30000 read-only
group.share.min.session.timeout.ms int 45000 1.. read-only
group.share.partition.max.record.locks int 2000 100..10000 read-only
group.share.record.lock.duration.ms int 30000 1000..3600000 read-only
group.share.session.timeout.ms int 45000 1.. read-only
group.streams.heartbeat.interval.ms int 5000 1.. read-only
group.streams.initial.rebalance.delay.ms int 3000 0.. read-only
group.streams.max.heartbeat.interval.ms int 15000 1.. read-only
group.streams.max.session.timeout.ms int 60000 1.. read-only
group.streams.max.size int 2147483647 1.. read-only
group.streams.max.standby.replicas int 2 0.. read-only
group.streams.min.heartbeat.interval.ms int 5000 1.. read-only
group.streams.min.session.timeout.ms int 45000 1.. read-only
group.streams.num.standby.replicas int 0 0.. read-only
group.streams.session.timeout.ms int 45000 1.. read-only
initial.broker.registration.timeout.ms int 60000 - read-only
inter.broker.listener.name string null - read-only
kafka.metrics.polling.interval.secs int 10 1.. read-only
kafka.metrics.reporters list "" - read-only
leader.imbalance.check.interval.seconds long 300 1.. read-only
leader.replication.throttled.rate long 9223372036854775807 0.. dynamic
log.cleaner.io.buffer.size int 524288 0.. dynamic
log.dir.failure.timeout.ms long 30000 1.. read-only
log.flush.offset.checkpoint.interval.ms int 60000 0.. read-only
log.flush.scheduler.interval.ms long 9223372036854775807 - read-only
log.flush.start.offset.checkpoint.interval.ms int 60000 0.. read-only
max.connection.creation.rate int 2147483647 0.. dynamic
max.connections.per.ip.overrides string "" - dynamic
max.request.partition.size.limit int 2000 1.. read-only
metadata.log.dir string null - read-only
metadata.log.max.record.bytes.between.snapshots long 20971520 1.. read-only
metadata.log.max.snapshot.interval.ms long 3600000 0.. read-only
metadata.log.segment.bytes int 1073741824 8388608.. read-only
metadata.log.segment.ms long 604800000 - read-only
metadata.max.idle.interval.ms int 500 0.. read-only
metadata.max.retention.bytes long 104857600 - read-only
metadata.max.retention.ms long 604800000 - read-only
metric.reporters list "" - dynamic
metrics.num.samples int 2 1.. read-only
metrics.recording.level string INFO - read-only
metrics.sample.window.ms long 30000 1.. read-only
num.io.threads int 8 1.. dynamic
num.network.threads int 3 1.. dynamic
num.recovery.threads.per.data.dir int 2 1.. dynamic
num.replica.alter.log.dirs.threads int null - read-only
num.replica.fetchers int 1 1.. dynamic
offsets.commit.timeout.ms int 5000 1.. read-only
offsets.load.buffer.size int 5242880 1.. read-only
offsets.topic.compression.codec int 0 - read-only
offsets.topic.num.partitions int 50 1.. read-only
offsets.topic.replication.factor short 3 1.. read-only
offsets.topic.segment.bytes int 104857600 1.. read-only
producer.purgatory.purge.interval.requests int 1000 - read-only
queued.max.request.bytes long -1 - read-only
queued.max.requests int 500 1.. read-only
quota.window.num int 11 1.. read-only
quota.window.size.seconds int 1 1.. read-only
remote.fetch.max.wait.ms int 500 1.. dynamic
remote.list.offsets.request.timeout.ms long 30000 1.. dynamic
remote.log.index.file.cache.total.size.bytes long 1073741824 1.. dynamic
remote.log.manager.copier.thread.pool.size int 10 1.. dynamic
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 1.. dynamic
remote.log.manager.copy.quota.window.num int 11 1.. read-only
remote.log.manager.copy.quota.window.size.seconds int 1 1.. read-only
remote.log.manager.expiration.thread.pool.size int 10 1.. dynamic
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 1.. dynamic
remote.log.manager.fetch.quota.window.num int 11 1.. read-only
remote.log.manager.fetch.quota.window.size.seconds int 1 1.. read-only
remote.log.manager.follower.thread.pool.size int 2 1.. dynamic
remote.log.manager.task.interval.ms long 30000 1.. read-only
remote.log.manager.thread.pool.size int 2 1.. read-only
remote.log.metadata.custom.metadata.max.bytes int 128 0.. read-only
remote.log.metadata.manager.class.name string null - read-only
remote.log.metadata.manager.class.path string null - read-only
remote.log.metadata.manager.impl.prefix string rlmm.config. - read-only
remote.log.metadata.manager.listener.name string null - read-only
remote.log.reader.max.pending.tasks int 100 1.. read-only
remote.log.reader.threads int 10 1.. dynamic
remote.log.storage.manager.class.name string null - read-only
remote.log.storage.manager.class.path string null - read-only
remote.log.storage.manager.impl.prefix string rsm.config. - read-only
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 0.. dynamic
replica.fetch.backoff.ms int 1000 0.. read-only
replica.fetch.max.bytes int 1048576 0.. read-only
replica.fetch.min.bytes int 1 - read-only
replica.fetch.response.max.bytes int 10485760 0.. read-only
replica.fetch.wait.max.ms int 500 - read-only
replica.high.watermark.checkpoint.interval.ms long 5000 - read-only
replica.lag.time.max.ms long 30000 - read-only
replica.selector.class string null - read-only
replica.socket.receive.buffer.bytes int 65536 - read-only
replica.socket.timeout.ms int 30000 - read-only
replication.quota.window.num int 11 1.. read-only
replication.quota.window.size.seconds int 1 1.. read-only
request.timeout.ms int 30000 - read-only
share.coordinator.append.linger.ms int -1 -1.. read-only
share.coordinator.load.buffer.size int 5242880 1.. read-only
share.coordinator.snapshot.update.records.per.snapshot int 500 0.. read-only
share.coordinator.state.topic.compression.codec int 0 - read-only
share.coordinator.state.topic.min.isr short 2 1.. read-only
share.coordinator.state.topic.num.partitions int 50 1.. read-only
share.coordinator.state.topic.replication.factor short 3 1.. read-only
share.coordinator.state.topic.segment.bytes int 104857600 1.. read-only
share.coordinator.threads int 1 1.. read-only
share.coordinator.write.timeout.ms int 5000 1.. read-only
share.fetch.purgatory.purge.interval.requests int 1000 - read-only
socket.connection.setup.timeout.max.ms long 30000 - read-only
socket.connection.setup.timeout.ms long 10000 - read-only
socket.listen.backlog.size int 50 1.. read-only
socket.receive.buffer.bytes int 102400 - read-only
socket.send.buffer.bytes int 102400 - read-only
telemetry.max.bytes int 1048576 1.. read-only
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 1.. read-only
transaction.state.log.load.buffer.size int 5242880 1.. read-only
transaction.state.log.min.isr int 2 1.. read-only
transaction.state.log.num.partitions int 50 1.. read-only
transaction.state.log.replication.factor short 3 1.. read-only
transaction.state.log.segment.bytes int 104857600 1.. read-only
"""

# name, type, default
ONLY_DEFAULT = """
alter.config.policy.class.name class null
authorizer.class.name string ""
client.quota.callback.class class null
config.providers list ""
connections.max.reauth.ms long 0
create.topic.policy.class.name class null
delegation.token.secret.key password null
group.consumer.assignors list uniform,range
group.coordinator.rebalance.protocols list classic,consumer
principal.builder.class class null
process.roles list broker,controller
remote.log.storage.system.enable boolean false
sasl.client.callback.handler.class class null
sasl.enabled.mechanisms list GSSAPI
sasl.jaas.config password null
sasl.kerberos.kinit.cmd string /usr/bin/kinit
sasl.kerberos.min.time.before.relogin long 60000
sasl.kerberos.principal.to.local.rules list DEFAULT
sasl.kerberos.service.name string null
sasl.kerberos.ticket.renew.jitter double 0.05
sasl.kerberos.ticket.renew.window.factor double 0.8
sasl.login.callback.handler.class class null
sasl.login.class class null
sasl.login.connect.timeout.ms int null
sasl.login.read.timeout.ms int null
sasl.login.refresh.buffer.seconds short 300
sasl.login.refresh.min.period.seconds short 60
sasl.login.refresh.window.factor double 0.8
sasl.login.refresh.window.jitter double 0.05
sasl.login.retry.backoff.max.ms long 10000
sasl.login.retry.backoff.ms long 100
sasl.mechanism.controller.protocol string GSSAPI
sasl.mechanism.inter.broker.protocol string GSSAPI
sasl.oauthbearer.assertion.algorithm string RS256
sasl.oauthbearer.assertion.claim.aud string null
sasl.oauthbearer.assertion.claim.exp.seconds int 300
sasl.oauthbearer.assertion.claim.iss string null
sasl.oauthbearer.assertion.claim.jti.include boolean false
sasl.oauthbearer.assertion.claim.nbf.seconds int 60
sasl.oauthbearer.assertion.claim.sub string null
sasl.oauthbearer.assertion.file string null
sasl.oauthbearer.assertion.private.key.file string null
sasl.oauthbearer.assertion.private.key.passphrase password null
sasl.oauthbearer.assertion.template.file string null
sasl.oauthbearer.client.credentials.client.id string null
sasl.oauthbearer.client.credentials.client.secret password null
sasl.oauthbearer.clock.skew.seconds int 30
sasl.oauthbearer.expected.audience list ""
sasl.oauthbearer.expected.issuer string null
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100
sasl.oauthbearer.jwks.endpoint.url string null
sasl.oauthbearer.jwt.retriever.class class null
sasl.oauthbearer.jwt.validator.class class null
sasl.oauthbearer.scope string null
sasl.oauthbearer.scope.claim.name string scope
sasl.oauthbearer.sub.claim.name string sub
sasl.oauthbearer.token.endpoint.url string null
sasl.server.callback.handler.class class null
sasl.server.max.receive.size int 524288
security.inter.broker.protocol string PLAINTEXT
security.providers string null
ssl.allow.dn.changes boolean false
ssl.allow.san.changes boolean false
ssl.cipher.suites list ""
ssl.client.auth string none
ssl.enabled.protocols list TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm string https
ssl.engine.factory.class class null
ssl.key.password password null
ssl.keymanager.algorithm string SunX509
ssl.keystore.certificate.chain password null
ssl.keystore.key password null
ssl.keystore.location string null
ssl.keystore.password password null
ssl.keystore.type string JKS
ssl.principal.mapping.rules string DEFAULT
ssl.protocol string TLSv1.3
ssl.provider string null
ssl.secure.random.implementation string null
ssl.trustmanager.algorithm string PKIX
ssl.truststore.certificates password null
ssl.truststore.location string null
ssl.truststore.password password null
ssl.truststore.type string JKS
"""
