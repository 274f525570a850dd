import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/** What a program with Kafka's own Java client does all day. Prints a line for each part that went well. */
public class Interop {
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        List<String> parts = args.length > 1 ? Arrays.asList(args[1].split(",")) : List.of();
        try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
            if (parts.contains("admin")) admin(admin);
            if (parts.contains("codecs")) codecs(admin);
            if (parts.contains("classic")) group(admin, "classic");
            if (parts.contains("consumer")) group(admin, "consumer");
            if (parts.contains("transactions")) transactions(admin);
            if (parts.contains("turns")) turns(admin);
        }
    }

    static void check(boolean right, String what) {
        if (!right) throw new AssertionError(what);
    }

    static String create(Admin admin, int partitions, Map<String, String> configs) throws Exception {
        String name = "java-" + UUID.randomUUID();
        admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(configs))).all().get();
        return name;
    }

    static KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> configs = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "acks", "all"));
        configs.putAll(more);
        return new KafkaProducer<>(configs, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        Map<String, Object> configs = new HashMap<>(
            Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        configs.putAll(more);
        return new KafkaConsumer<>(configs, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static List<ConsumerRecord<byte[], byte[]>> read(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<ConsumerRecord<byte[], byte[]>> read = new ArrayList<>();
        long end = System.nanoTime() + 30_000_000_000L;
        while (read.size() < count && System.nanoTime() < end)
            consumer.poll(Duration.ofMillis(200)).forEach(read::add);
        check(read.size() == count, "read " + read.size() + " of " + count);
        return read;
    }

    static byte[] bytes(String text) { return text.getBytes(StandardCharsets.UTF_8); }

    static void admin(Admin admin) throws Exception {
        String topic = create(admin, 3, Map.of("retention.ms", "3600000"));
        check(admin.listTopics().names().get().contains(topic), "listed");
        TopicDescription about = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        check(about.partitions().size() == 3, "partitions");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        check(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value()
            .equals("3600000"), "config");
        admin.incrementalAlterConfigs(Map.of(resource, List.of(
            new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET)))).all().get();
        check(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value()
            .equals("7200000"), "altered");
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        check(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 5, "grown");
        check(admin.describeCluster().nodes().get().size() == 1, "nodes");
        check(!admin.describeLogDirs(List.of(0)).allDescriptions().get().isEmpty(), "log dirs");
        check(admin.describeFeatures().featureMetadata().get() != null, "features");
        admin.deleteTopics(List.of(topic)).all().get();
        check(!admin.listTopics().names().get().contains(topic), "deleted");
        System.out.println("OK admin");
    }

    static void codecs(Admin admin) throws Exception {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            String topic = create(admin, 4, Map.of());
            int count = 2000;
            try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("compression.type", codec, "linger.ms", 5))) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int i = 0; i < count; i++) {
                    byte[] key = i % 10 == 0 ? null : bytes("key-" + i % 50);
                    byte[] value = i % 17 == 0 ? null : bytes("value-" + i);
                    sent.add(producer.send(new ProducerRecord<>(topic, null, key, value,
                        List.of(new RecordHeader("n", bytes("" + i)), new RecordHeader("nothing", null)))));
                }
                for (Future<RecordMetadata> future : sent) check(future.get().hasOffset(), "offset");
            }
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of())) {
                List<TopicPartition> all = new ArrayList<>();
                for (int i = 0; i < 4; i++) all.add(new TopicPartition(topic, i));
                consumer.assign(all);
                consumer.seekToBeginning(all);
                Set<Integer> seen = new HashSet<>();
                for (ConsumerRecord<byte[], byte[]> record : read(consumer, count)) {
                    int i = Integer.parseInt(new String(record.headers().lastHeader("n").value()));
                    check(record.headers().lastHeader("nothing").value() == null, "null header");
                    check(i % 17 == 0 ? record.value() == null : new String(record.value()).equals("value-" + i), "value");
                    check(i % 10 == 0 ? record.key() == null : new String(record.key()).equals("key-" + i % 50), "key");
                    check(seen.add(i), "twice");
                }
                check(consumer.endOffsets(all).values().stream().mapToLong(n -> n).sum() == count, "end offsets");
            }
            admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(1))).all().get();
            System.out.println("OK codec " + codec);
        }
    }

    static void group(Admin admin, String protocol) throws Exception {
        String topic = create(admin, 6, Map.of()), group = "group-" + UUID.randomUUID();
        int count = 600;
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            for (int i = 0; i < count; i++) producer.send(new ProducerRecord<>(topic, i % 6, null, bytes("" + i)));
        }
        Map<String, Object> configs = new HashMap<>(Map.of("group.id", group, "group.protocol", protocol));
        if (protocol.equals("classic"))
            configs.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
        Set<String> seen = ConcurrentHashMap.newKeySet();
        ExecutorService threads = Executors.newFixedThreadPool(3);
        List<Future<?>> members = new ArrayList<>();
        Set<Integer> partitionsSeen = ConcurrentHashMap.newKeySet();
        for (int member = 0; member < 3; member++)
            members.add(threads.submit(() -> {
                try (KafkaConsumer<byte[], byte[]> consumer = consumer(configs)) {
                    consumer.subscribe(List.of(topic));
                    long end = System.nanoTime() + 60_000_000_000L;
                    while (seen.size() < count && System.nanoTime() < end) {
                        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                            seen.add(new String(record.value()));
                        try {
                            consumer.commitSync();
                        } catch (CommitFailedException | org.apache.kafka.common.errors.RetriableException moved) {
                            // a rebalance came between: it is read again
                        }
                    }
                }
            }));
        for (Future<?> member : members) member.get();
        threads.shutdown();
        check(seen.size() == count, "read " + seen.size());
        long committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values().stream()
            .mapToLong(OffsetAndMetadata::offset).sum();
        check(committed > 0 && committed <= count, "committed " + committed);
        check(admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().isEmpty(), "members");
        admin.deleteConsumerGroups(List.of(group)).all().get();
        System.out.println("OK group " + protocol);
    }

    static void transactions(Admin admin) throws Exception {
        String from = create(admin, 2, Map.of()), to = create(admin, 2, Map.of()), group = "g-" + UUID.randomUUID();
        int count = 300;
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            for (int i = 0; i < count; i++) producer.send(new ProducerRecord<>(from, i % 2, null, bytes("" + i)));
        }
        String id = "tx-" + UUID.randomUUID();
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", id));
             KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("group.id", group))) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            int done = 0, turn = 0;
            long end = System.nanoTime() + 60_000_000_000L;
            while (done < count && System.nanoTime() < end) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) continue;
                boolean abort = turn++ == 0;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    producer.send(new ProducerRecord<>(to, record.partition(), null, record.value()));
                    offsets.put(new TopicPartition(from, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (abort) {
                    producer.abortTransaction();
                    consumer.seekToBeginning(consumer.assignment());
                } else {
                    producer.commitTransaction();
                    done += records.count();
                }
            }
            check(done == count, "done " + done);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(new TopicPartition(to, 0), new TopicPartition(to, 1)));
            Set<String> seen = new HashSet<>();
            for (ConsumerRecord<byte[], byte[]> record : read(consumer, count))
                check(seen.add(new String(record.value())), "twice");
            check(consumer.poll(Duration.ofMillis(300)).isEmpty(), "more than was committed");
        }
        check(admin.listTransactions().all().get().stream().anyMatch(t -> t.transactionalId().equals(id)), "listed");
        // A second instance fences the first.
        KafkaProducer<byte[], byte[]> zombie = producer(Map.of("transactional.id", id));
        zombie.initTransactions();
        zombie.beginTransaction();
        zombie.send(new ProducerRecord<>(to, null, bytes("zombie"))).get();
        try (KafkaProducer<byte[], byte[]> successor = producer(Map.of("transactional.id", id))) {
            successor.initTransactions();
            try {
                zombie.commitTransaction();
                throw new AssertionError("the zombie could commit");
            } catch (org.apache.kafka.common.errors.ProducerFencedException
                     | org.apache.kafka.common.errors.InvalidProducerEpochException fenced) {
                zombie.close(Duration.ZERO);
            }
        }
        System.out.println("OK transactions");
    }

    /** Commits and aborts in turns, with records that still linger when the abort is asked for. */
    static void turns(Admin admin) throws Exception {
        int partitions = 50, turns = 50;
        String topic = create(admin, partitions, Map.of());
        Map<String, Object> configs = Map.of("transactional.id", "turns-" + UUID.randomUUID(), "linger.ms", "20");
        try (KafkaProducer<byte[], byte[]> producer = producer(configs)) {
            producer.initTransactions();
            for (int turn = 0; turn < turns; turn++) {
                producer.beginTransaction();
                for (int i = 0; i < partitions; i++) producer.send(new ProducerRecord<>(topic, i, null, bytes("in")));
                producer.commitTransaction();
                producer.beginTransaction();
                for (int i = 0; i < partitions; i++) producer.send(new ProducerRecord<>(topic, i, null, bytes("out")));
                producer.abortTransaction();
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < partitions; i++) all.add(new TopicPartition(topic, i));
            consumer.assign(all);
            for (ConsumerRecord<byte[], byte[]> record : read(consumer, partitions * turns))
                check(new String(record.value()).equals("in"), "an aborted record was read");
        }
        System.out.println("OK turns");
    }
}
