// The workloads that use librdkafka, as a program with a real client does.
#define _GNU_SOURCE
#include "driver.h"
#include "librdkafka.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_AT_ONCE 10000
#define SEND_AT_ONCE 500

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque) {
    (void)rk, (void)opaque;
    fprintf(stderr, "librdkafka: %s: %s\n", rd_kafka_err2str(err), reason);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char message[500];
    if (rd_kafka_conf_set(conf, name, value, message, sizeof message) != 0)
        fail("librdkafka does not take %s=%s: %s", name, value, message);
}

// The settings of every client in every run. `--client name=value,name=value` adds to them.
static rd_kafka_conf_t *configuration(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", text_option("bootstrap", REQUIRED_TEXT));
    set(conf, "socket.nagle.disable", "true");
    set(conf, "topic.metadata.refresh.sparse", "true");
    char *extra = strdup(text_option("client", "")), *rest = extra;
    for (char *pair; (pair = strsep(&rest, ",")) && *pair;) {
        char *value = strchr(pair, '=');
        if (value == NULL)
            fail("--client takes name=value, not %s", pair);
        *value++ = 0;
        set(conf, pair, value);
    }
    free(extra);
    rd_kafka_conf_set_error_cb(conf, on_error);
    return conf;
}

static rd_kafka_t *start(int type, rd_kafka_conf_t *conf) {
    char message[500];
    rd_kafka_t *rk = rd_kafka_new(type, conf, message, sizeof message);
    if (rk == NULL)
        fail("librdkafka: %s", message);
    return rk;
}

// Connects and fetches metadata, so that neither is timed.
static rd_kafka_topic_t *connected(rd_kafka_t *rk, const char *topic) {
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t error = rd_kafka_metadata(rk, 0, rkt, &metadata, 30000);
    if (error)
        fail("metadata of %s: %s", topic, rd_kafka_err2str(error));
    rd_kafka_metadata_destroy(metadata);
    return rkt;
}

// ---- producing

struct producer {
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    uint64_t sent, checksum;
    _Atomic uint64_t acknowledged, failed;
    _Atomic int first_error;
    struct samples *acknowledgement_times;  // optional: the opaque of a message is then the time it was due
};

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    struct producer *producer = opaque;
    if (message->err) {
        atomic_store(&producer->first_error, message->err);
        atomic_fetch_add(&producer->failed, 1);
    } else if (producer->acknowledgement_times) {
        sample(producer->acknowledgement_times, now_ns() - (int64_t)message->_private);
    }
    atomic_fetch_add_explicit(&producer->acknowledged, 1, memory_order_relaxed);
}

static void producer_start(struct producer *producer, const char *linger_ms) {
    rd_kafka_conf_t *conf = configuration();
    set(conf, "acks", text_option("acks", "all"));
    set(conf, "compression.type", text_option("codec", "none"));
    set(conf, "linger.ms", linger_ms);
    set(conf, "queue.buffering.max.messages", "200000");
    set(conf, "queue.buffering.max.kbytes", "262144");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, producer);
    producer->rk = start(PRODUCER, conf);
    producer->rkt = connected(producer->rk, text_option("topic", REQUIRED_TEXT));
}

static void producer_finish(struct producer *producer) {
    while (atomic_load(&producer->acknowledged) < producer->sent) {
        rd_kafka_poll(producer->rk, 100);
        check_deadline("acknowledgements");
    }
    if (atomic_load(&producer->failed))
        fail("%" PRIu64 " of %" PRIu64 " messages were not delivered: %s", atomic_load(&producer->failed),
             producer->sent, rd_kafka_err2str(atomic_load(&producer->first_error)));
}

static void producer_destroy(struct producer *producer) {
    rd_kafka_topic_destroy(producer->rkt);
    rd_kafka_destroy(producer->rk);
}

// Sends one message, timed from when it was due.
static void send_one(struct producer *producer, int32_t partition, uint8_t *value, size_t size, int64_t due) {
    while (rd_kafka_produce(producer->rkt, partition, MSG_F_COPY, value, size, NULL, 0, (void *)due) != 0) {
        if (rd_kafka_last_error() != ERR_QUEUE_FULL)
            fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(producer->rk, 1);
        check_deadline("room in the producer's queue");
    }
    producer->sent++;
    producer->checksum += hash64(value, size);
}

// Sends `--count` messages, some hundred at a time to a partition, as a sticky partitioner does.
void client_produce(void) {
    int64_t count = number_option("count", REQUIRED), first = number_option("first", 0);
    size_t size = number_option("size", REQUIRED);
    int32_t partitions = number_option("partitions", 1);
    int64_t at_once = count / partitions / 4;  // each partition is used at least four times
    at_once = at_once < 1 ? 1 : at_once > SEND_AT_ONCE ? SEND_AT_ONCE : at_once;
    struct producer producer = {0};
    payload_prepare(size);
    producer_start(&producer, text_option("linger-ms", "5"));
    uint8_t *room = malloc(size * SEND_AT_ONCE);
    rd_kafka_message_t messages[SEND_AT_ONCE];
    usage_begin();
    int64_t began = now_ns();
    for (int64_t done = 0, turn = 0; done < count; turn++) {
        int many = count - done < at_once ? count - done : at_once;
        memset(messages, 0, sizeof messages);
        for (int i = 0; i < many; i++) {
            messages[i].payload = room + i * size;
            messages[i].len = size;
            payload_fill(messages[i].payload, size, first + done + i);
            producer.checksum += hash64(messages[i].payload, size);
        }
        for (int left = many;;) {
            left -= rd_kafka_produce_batch(producer.rkt, turn % partitions, MSG_F_COPY, messages, left);
            if (left == 0)
                break;
            for (int i = 0, kept = 0; kept < left; i++)  // retry those for which the queue was full
                if (messages[i].err == ERR_QUEUE_FULL)
                    messages[kept++] = messages[i];
                else if (messages[i].err)
                    fail("produce: %s", rd_kafka_err2str(messages[i].err));
            rd_kafka_poll(producer.rk, 1);
            check_deadline("room in the producer's queue");
        }
        done += many;
        producer.sent = done;
        rd_kafka_poll(producer.rk, 0);
    }
    producer_finish(&producer);
    double seconds = (now_ns() - began) / 1e9;
    usage_end();
    result_number("seconds", seconds);
    result_number("messages", count);
    result_number("bytes", (double)count * size);
    result_checksum("checksum", producer.checksum);
    result_text("librdkafka", rd_kafka_version_str());
    producer_destroy(&producer);
}

// ---- consuming

struct consumer {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    int32_t partitions, at_end;  // at_end: partitions that were read to their end
    uint8_t *is_at_end;
    uint64_t messages, bytes, checksum;
    int64_t last_ns;
    rd_kafka_message_t *batch[READ_AT_ONCE];
};

// Starts at offset 0: the topics of a benchmark are new, so that no offset has to be looked up.
static void consumer_start(struct consumer *consumer) {
    rd_kafka_conf_t *conf = configuration();
    const char *topic = text_option("topic", REQUIRED_TEXT);
    set(conf, "group.id", "benchmark");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.auto.offset.store", "false");
    set(conf, "enable.partition.eof", "true");
    set(conf, "auto.offset.reset", "error");
    set(conf, "fetch.queue.backoff.ms", "5");  // the default lets a fast consumer pause for a second
    set(conf, "fetch.wait.max.ms", "100");     // a fetch of partitions that are read to their ends holds up the others
    set(conf, "queued.min.messages", "1000000");
    set(conf, "queued.max.messages.kbytes", "131072");
    consumer->rk = start(CONSUMER, conf);
    rd_kafka_poll_set_consumer(consumer->rk);
    rd_kafka_topic_destroy(connected(consumer->rk, topic));
    consumer->partitions = number_option("partitions", 1);
    consumer->is_at_end = calloc(consumer->partitions, 1);
    consumer->queue = rd_kafka_queue_get_consumer(consumer->rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(consumer->partitions);
    for (int32_t i = 0; i < consumer->partitions; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = 0;
    rd_kafka_resp_err_t error = rd_kafka_assign(consumer->rk, list);
    if (error)
        fail("assign: %s", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(list);
}

// Reads the available messages within the timeout and adds them to the sums; `each` is called for every message.
static void consumer_read(struct consumer *consumer, int timeout_ms, void (*each)(const rd_kafka_message_t *, void *),
                          void *argument) {
    // With a timeout the batch call waits for a full batch. So it is called without one, and one message is awaited.
    ssize_t count = rd_kafka_consume_batch_queue(consumer->queue, 0, consumer->batch, READ_AT_ONCE);
    if (count < 0)
        fail("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
    if (count == 0 && (consumer->batch[0] = rd_kafka_consumer_poll(consumer->rk, timeout_ms)))
        count = 1;
    for (ssize_t i = 0; i < count; i++) {
        rd_kafka_message_t *message = consumer->batch[i];
        if (message->err == ERR_PARTITION_EOF) {
            consumer->at_end += !consumer->is_at_end[message->partition];
            consumer->is_at_end[message->partition] = 1;
        } else if (message->err) {
            fail("consume: %s", rd_kafka_message_errstr(message));
        } else {
            if (consumer->is_at_end[message->partition]) {
                consumer->is_at_end[message->partition] = 0;
                consumer->at_end--;
            }
            consumer->messages++;
            consumer->bytes += message->len;
            consumer->checksum += hash64(message->payload, message->len);
            consumer->last_ns = now_ns();
            if (each)
                each(message, argument);
        }
        rd_kafka_message_destroy(message);
    }
}

static void consumer_destroy(struct consumer *consumer) {
    rd_kafka_queue_destroy(consumer->queue);
    rd_kafka_consumer_close(consumer->rk);
    rd_kafka_destroy(consumer->rk);
    free(consumer->is_at_end);
}

// Reads to the end of every partition.
void client_consume(void) {
    static struct consumer consumer;
    int64_t expected = number_option("count", REQUIRED);
    usage_begin();
    consumer_start(&consumer);
    int64_t began = now_ns();
    while (consumer.at_end < consumer.partitions) {
        consumer_read(&consumer, 100, NULL, NULL);
        check_deadline("the end of the partitions");
    }
    if ((int64_t)consumer.messages != expected)
        fail("read %" PRIu64 " messages instead of %" PRId64, consumer.messages, expected);
    usage_end();
    result_number("seconds", (consumer.last_ns - began) / 1e9);
    result_number("messages", consumer.messages);
    result_number("bytes", consumer.bytes);
    result_checksum("checksum", consumer.checksum);
    consumer_destroy(&consumer);
}

// ---- a steady rate

struct steady {
    struct producer producer;
    double rate;
    size_t size;
    int32_t partitions;
    int64_t most;  // messages, or fewer when told to stop
    _Atomic int stop;
    int64_t began_ns, ended_ns;
};

// Sends at `rate`, every message with the time it was due (so that falling behind counts), in ticks of at least 0.2 ms.
static void *send_steadily(void *argument) {
    struct steady *steady = argument;
    uint8_t *value = malloc(steady->size);
    double interval = 1e9 / steady->rate;
    int64_t at_once = interval < 200000 ? (int64_t)(200000 / interval + 0.5) : 1, sent = 0;
    steady->began_ns = now_ns();
    while (sent < steady->most && !atomic_load(&steady->stop)) {
        int64_t due = steady->began_ns + (int64_t)(sent * interval);
        sleep_until_ns(due);
        for (int64_t i = 0; i < at_once && sent < steady->most; i++, sent++) {
            payload_fill(value, steady->size, due);
            memcpy(value + 8, &sent, 8);
            send_one(&steady->producer, sent % steady->partitions, value, steady->size, due);
        }
        rd_kafka_poll(steady->producer.rk, 0);
    }
    steady->ended_ns = now_ns();
    producer_finish(&steady->producer);
    free(value);
    return NULL;
}

static void steady_prepare(struct steady *steady) {
    steady->rate = number_option("rate", REQUIRED);
    steady->size = number_option("size", REQUIRED);
    steady->partitions = number_option("partitions", 1);
    if (steady->size < 16)
        fail("messages of a steady rate carry a time and a number: at least 16 bytes");
    payload_prepare(steady->size);
    producer_start(&steady->producer, text_option("linger-ms", "0"));
}

struct latency {
    struct samples times;
    int64_t warm_until_ns;
};

static void note_latency(const rd_kafka_message_t *message, void *argument) {
    struct latency *latency = argument;
    int64_t due;
    memcpy(&due, message->payload, 8);
    if (due >= latency->warm_until_ns)
        sample(&latency->times, now_ns() - due);
}

static void await_empty_topic(struct consumer *consumer) {
    while (consumer->at_end < consumer->partitions) {
        consumer_read(consumer, 100, NULL, NULL);
        check_deadline("the end of an empty topic");
    }
    if (consumer->messages)
        fail("the topic was not empty");
}

// Latency from the time a message was due until the consumer has it. The first second is not counted.
void client_latency(void) {
    static struct consumer consumer;
    static struct steady steady;
    struct latency latency = {0};
    double seconds = number_option("seconds", 5);
    steady_prepare(&steady);
    consumer_start(&consumer);
    await_empty_topic(&consumer);
    steady.most = (int64_t)(steady.rate * (seconds + 1));
    usage_begin();
    latency.warm_until_ns = now_ns() + INT64_C(1000000000);
    pthread_t sender;
    pthread_create(&sender, NULL, send_steadily, &steady);
    while ((int64_t)consumer.messages < steady.most) {
        consumer_read(&consumer, 100, note_latency, &latency);
        check_deadline("messages that were sent");
    }
    pthread_join(sender, NULL);
    usage_end();
    if (consumer.messages != steady.producer.sent || consumer.checksum != steady.producer.checksum)
        fail("what was read is not what was sent");
    result_number("messages", consumer.messages);
    result_number("bytes", consumer.bytes);
    result_number("seconds", (steady.ended_ns - steady.began_ns) / 1e9);
    result_number("sent_per_s", steady.most / ((steady.ended_ns - steady.began_ns) / 1e9));
    result_percentiles("latency", &latency.times);
    result_checksum("checksum", consumer.checksum);
    producer_destroy(&steady.producer);
    consumer_destroy(&consumer);
}

// One message at a time; the next is sent when the last is acknowledged. The first tenth is not counted.
void client_round_trips(void) {
    int64_t count = number_option("count", REQUIRED);
    size_t size = number_option("size", REQUIRED);
    struct producer producer = {0};
    struct samples times = {0};
    uint8_t *value = malloc(size);
    payload_prepare(size);
    producer_start(&producer, "0");
    usage_begin();
    int64_t all_began = now_ns();
    for (int64_t i = 0; i < count; i++) {
        payload_fill(value, size, i);
        int64_t began = now_ns();
        send_one(&producer, 0, value, size, began);
        while (atomic_load(&producer.acknowledged) < producer.sent) {
            rd_kafka_poll(producer.rk, 1000);
            check_deadline("an acknowledgement");
        }
        if (i >= count / 10)
            sample(&times, now_ns() - began);
    }
    producer_finish(&producer);
    usage_end();
    result_number("seconds", (now_ns() - all_began) / 1e9);
    result_number("messages", count);
    result_number("bytes", (double)count * size);
    result_checksum("checksum", producer.checksum);
    result_percentiles("round_trip", &times);
    producer_destroy(&producer);
}

// Reads `--count` old messages while new ones arrive at `--rate`; then what arrived meanwhile. The harness checks the
// sums: what is read is what was there plus what was sent.
void client_catch_up(void) {
    static struct consumer consumer;
    static struct steady steady;
    struct samples acknowledgements = {0};
    int64_t old = number_option("count", REQUIRED), caught_up = 0;
    steady_prepare(&steady);
    steady.most = INT64_MAX;
    steady.producer.acknowledgement_times = &acknowledgements;
    usage_begin();
    pthread_t sender;
    pthread_create(&sender, NULL, send_steadily, &steady);
    consumer_start(&consumer);
    int64_t began = now_ns();
    while ((int64_t)consumer.messages < old) {
        consumer_read(&consumer, 100, NULL, NULL);
        check_deadline("old messages");
    }
    caught_up = now_ns();
    uint64_t read_bytes = consumer.bytes;
    usage_end();
    atomic_store(&steady.stop, 1);
    pthread_join(sender, NULL);
    while (consumer.messages < old + steady.producer.sent || consumer.at_end < consumer.partitions) {
        consumer_read(&consumer, 100, NULL, NULL);
        check_deadline("the messages that were sent meanwhile");
    }
    result_number("seconds", (caught_up - began) / 1e9);
    result_number("bytes", read_bytes);
    result_number("messages", consumer.messages);
    result_checksum("checksum", consumer.checksum);
    result_number("sent_messages", steady.producer.sent);
    result_checksum("sent_checksum", steady.producer.checksum);
    result_number("sent_per_s", steady.producer.sent / ((steady.ended_ns - steady.began_ns) / 1e9));
    result_percentiles("acknowledgement", &acknowledgements);
    producer_destroy(&steady.producer);
    consumer_destroy(&consumer);
}

// ---- groups

struct member {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    int assigned, is_open;
};

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *partitions,
                         void *opaque) {
    struct member *member = opaque;
    int is_incremental = strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE") == 0;
    if (err == ERR_ASSIGN) {
        if (is_incremental)
            rd_kafka_incremental_assign(rk, partitions), member->assigned += partitions->cnt;
        else
            rd_kafka_assign(rk, partitions), member->assigned = partitions->cnt;
    } else {
        if (is_incremental)
            rd_kafka_incremental_unassign(rk, partitions), member->assigned -= partitions->cnt;
        else
            rd_kafka_assign(rk, NULL), member->assigned = 0;
    }
}

static void member_join(struct member *member, const char *topic, const char *group, const char *protocol) {
    rd_kafka_conf_t *conf = configuration();
    set(conf, "group.id", group);
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "group.protocol", protocol);
    set(conf, "fetch.queue.backoff.ms", "5");
    if (strcmp(protocol, "classic") == 0) {
        set(conf, "session.timeout.ms", "30000");
        set(conf, "heartbeat.interval.ms", "200");
    }
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_opaque(conf, member);
    member->rk = start(CONSUMER, conf);
    member->is_open = 1;
    rd_kafka_poll_set_consumer(member->rk);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic, -1);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(member->rk, topics);
    if (error)
        fail("subscribe: %s", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(topics);
}

// Waits until the open members have all partitions together, and each has its share. Returns the seconds since `began`.
static double until_balanced(struct member *members, int count, int partitions, int64_t began, const char *what) {
    for (;;) {
        int open = 0, assigned = 0, least = partitions;
        for (int i = 0; i < count; i++)
            if (members[i].is_open) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(members[i].rk, 0);
                if (message)
                    rd_kafka_message_destroy(message);
                open++;
                assigned += members[i].assigned;
                least = members[i].assigned < least ? members[i].assigned : least;
            }
        if (assigned == partitions && least >= partitions / open)
            return (now_ns() - began) / 1e9;
        sleep_until_ns(now_ns() + 1000000);
        check_deadline(what);
    }
}

// The members read what one producer sends meanwhile.
static void group_reads(struct member *members, int count, int partitions) {
    static struct steady steady;
    static rd_kafka_message_t *batch[READ_AT_ONCE];
    uint64_t messages = 0, bytes = 0, checksum = 0;
    for (int i = 0; i < count; i++)
        members[i].queue = rd_kafka_queue_get_consumer(members[i].rk);
    steady_prepare(&steady);
    steady.most = number_option("count", REQUIRED);
    steady.partitions = partitions;
    usage_begin();
    int64_t began = now_ns();
    pthread_t sender;
    pthread_create(&sender, NULL, send_steadily, &steady);
    while ((int64_t)messages < steady.most) {
        uint64_t before = messages;
        for (int i = 0; i < count; i++) {
            ssize_t many = rd_kafka_consume_batch_queue(members[i].queue, 0, batch, READ_AT_ONCE);
            for (ssize_t j = 0; j < many; j++) {
                if (batch[j]->err)
                    fail("consume: %s", rd_kafka_message_errstr(batch[j]));
                messages++, bytes += batch[j]->len;
                checksum += hash64(batch[j]->payload, batch[j]->len);
                rd_kafka_message_destroy(batch[j]);
            }
        }
        if (messages == before)
            sleep_until_ns(now_ns() + 500000);
        check_deadline("messages that were sent");
    }
    result_number("seconds", (now_ns() - began) / 1e9);
    usage_end();
    pthread_join(sender, NULL);
    if (messages != steady.producer.sent || checksum != steady.producer.checksum)
        fail("what was read is not what was sent");
    result_number("messages", messages);
    result_number("bytes", bytes);
    result_checksum("checksum", checksum);
}

// `--members` join at once. Without `--count`: one more joins and leaves again; measures the time until the partitions
// are assigned. With it: the group reads that number of messages.
void client_group(void) {
    int count = number_option("members", REQUIRED), partitions = number_option("partitions", REQUIRED);
    int is_reading = number_option("count", 0) > 0;
    const char *topic = text_option("topic", REQUIRED_TEXT), *group = text_option("group", REQUIRED_TEXT);
    const char *protocol = text_option("protocol", "classic");
    struct member *members = calloc(count + 1, sizeof *members);
    if (partitions < count + !is_reading)
        fail("%d members want at least as many partitions, and one more", count);
    if (!is_reading)
        usage_begin();
    int64_t began = now_ns();
    for (int i = 0; i < count; i++)
        member_join(&members[i], topic, group, protocol);
    result_number("join_all_seconds", until_balanced(members, count, partitions, began, "the first assignment"));
    if (is_reading) {
        group_reads(members, count, partitions);
    } else {
        began = now_ns();
        member_join(&members[count], topic, group, protocol);
        result_number("join_one_seconds", until_balanced(members, count + 1, partitions, began, "one more member"));
        began = now_ns();
        rd_kafka_consumer_close(members[count].rk);
        members[count].is_open = 0;
        result_number("leave_one_seconds", until_balanced(members, count + 1, partitions, began, "one member less"));
        usage_end();
    }
    result_number("members", count);
    result_print();
    _Exit(0);  // do not close the members one by one, which would cause many more rebalances
}
