// The protocol over bare sockets, in one thread: prepared record batches in Produce 10 requests, Fetch 12 for reading.
//
// It measures the broker, not the client: a request costs the driver a system call or two. Batches are built before the
// clock starts. What is read is checked by the number of records and by the sum of the batches' CRC-32C, each computed
// from the bytes received.
#define _GNU_SOURCE
#include "driver.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PRODUCE = 0, FETCH = 1, API_VERSIONS = 18, PRODUCE_VERSION = 10, FETCH_VERSION = 12 };
enum { VARIANTS = 64, MOST_EVENTS = 512, BATCH_HEADER = 61 };

// ---- writing

struct buffer {
    uint8_t *data;
    size_t size, room;
};

static void put(struct buffer *to, const void *data, size_t size) {
    if (to->size + size > to->room)
        to->data = realloc(to->data, to->room = (to->size + size) * 2);
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void put8(struct buffer *to, uint8_t value) { put(to, &value, 1); }
static void put16(struct buffer *to, int16_t value) { put(to, &(uint16_t){htobe16(value)}, 2); }
static void put32(struct buffer *to, int32_t value) { put(to, &(uint32_t){htobe32(value)}, 4); }
static void put64(struct buffer *to, int64_t value) { put(to, &(uint64_t){htobe64(value)}, 8); }

static void put_varint(struct buffer *to, uint64_t value) {
    for (; value >= 128; value >>= 7)
        put8(to, (uint8_t)value | 128);
    put8(to, value);
}

static void put_signed(struct buffer *to, int64_t value) { put_varint(to, (uint64_t)(value << 1) ^ (value >> 63)); }

static void put_text(struct buffer *to, const char *text) {  // compact
    put_varint(to, strlen(text) + 1);
    put(to, text, strlen(text));
}

static void put_header(struct buffer *to, int16_t api, int16_t version) {
    put32(to, 0);  // the length of the frame, filled in later
    put16(to, api), put16(to, version), put32(to, 1);
    put16(to, 5), put(to, "bench", 5);
    put8(to, 0);
}

static void set32(uint8_t *at, uint32_t value) { memcpy(at, &(uint32_t){htobe32(value)}, 4); }

static int64_t wall_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * INT64_C(1000) + time.tv_nsec / 1000000;
}

static struct buffer make_batch(int records, size_t size, uint64_t number) {
    struct buffer batch = {0};
    int64_t now = wall_ms();
    put64(&batch, 0), put32(&batch, 0), put32(&batch, -1), put8(&batch, 2), put32(&batch, 0);
    put16(&batch, 0), put32(&batch, records - 1), put64(&batch, now), put64(&batch, now);
    put64(&batch, -1), put16(&batch, -1), put32(&batch, -1), put32(&batch, records);
    uint8_t *value = malloc(size);
    for (int i = 0; i < records; i++) {
        struct buffer record = {0};
        payload_fill(value, size, number * records + i);
        put8(&record, 0), put_signed(&record, 0), put_signed(&record, i), put_signed(&record, -1);
        put_signed(&record, size), put(&record, value, size), put_signed(&record, 0);
        put_signed(&batch, record.size), put(&batch, record.data, record.size);
        free(record.data);
    }
    free(value);
    set32(batch.data + 8, batch.size - 12);
    set32(batch.data + 17, crc32c(batch.data + 21, batch.size - 21));
    return batch;
}

// ---- reading

struct reader {
    const uint8_t *at, *end;
};

static const uint8_t *take(struct reader *from, size_t size) {
    if ((size_t)(from->end - from->at) < size)
        fail("a reply is shorter than it says");
    from->at += size;
    return from->at - size;
}

static int16_t take16(struct reader *from) {
    uint16_t value;
    memcpy(&value, take(from, 2), 2);
    return be16toh(value);
}

static uint32_t get32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return be32toh(value);
}

static int64_t get64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return be64toh(value);
}

static int32_t take32(struct reader *from) { return get32(take(from, 4)); }
static int64_t take64(struct reader *from) { return get64(take(from, 8)); }

static uint64_t take_varint(struct reader *from) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte = *take(from, 1);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    fail("a varint of a reply does not end");
}

static void skip_tags(struct reader *from) {
    for (uint64_t left = take_varint(from); left; left--) {
        take_varint(from);
        take(from, take_varint(from));
    }
}

// ---- connections

struct batch_sums {
    uint64_t records, batches, bytes, checksum;
};

struct connection {
    int fd, is_writing;
    struct buffer in;
    // A producer's side.
    int64_t to_send, unanswered, sending_left;  // sending_left: remaining bytes of the current request
    int32_t partition;
    int64_t *sent_at;  // a ring of `window` times
    uint64_t sent, answered;
    // A reader's side.
    struct buffer request;
    size_t request_sent;
    int64_t *offsets, *ends;
    int first, step;  // its partitions: first, first + step, ...
    struct batch_sums read;
    int is_done;
};

static struct {
    const char *topic;
    int32_t partitions;
    int window, records, variants;
    int16_t acks;
    struct buffer heads[VARIANTS], batches[VARIANTS];
    uint32_t crcs[VARIANTS];
    int64_t expected;  // records that a reader must see
    int max_wait_ms;
    struct samples times;
    int64_t warm_until;  // requests
    struct batch_sums sent;
    int64_t answered;
} work;

static const uint8_t tail[] = {0, 0, 0};  // no tags: partition, topic, request

static int epoll;

static int open_socket(void) {
    const char *bootstrap = text_option("bootstrap", REQUIRED_TEXT), *colon = strrchr(bootstrap, ':');
    if (colon == NULL)
        fail("--bootstrap is host:port");
    char host[100];
    snprintf(host, sizeof host, "%.*s", (int)(colon - bootstrap), bootstrap);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(colon + 1))};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        fail("%s is not an IPv4 address", host);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connect to %s: %s", bootstrap, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

// Opens a connection and waits for the broker's answer. One after the other, so that its backlog does not overflow.
static int open_greeted(void) {
    static struct buffer hello;
    if (hello.size == 0) {
        put_header(&hello, API_VERSIONS, 3);
        put_text(&hello, "bench"), put_text(&hello, "1"), put8(&hello, 0);
        set32(hello.data, hello.size - 4);
    }
    uint8_t reply[65536];
    int fd = open_socket();
    size_t size = 0;
    if (write(fd, hello.data, hello.size) != (ssize_t)hello.size)
        fail("greeting: %s", strerror(errno));
    while (size < 4 || size < get32(reply) + 4) {
        ssize_t more = read(fd, reply + size, sizeof reply - size);
        if (more <= 0)
            fail("a connection got no greeting");
        size += more;
    }
    check_deadline("connections");
    return fd;
}

static void connection_open(struct connection *connection) {
    connection->fd = open_greeted();
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        fail("epoll: %s", strerror(errno));
}

static void want_to_write(struct connection *connection, int wants) {
    if (connection->is_writing == wants)
        return;
    connection->is_writing = wants;
    struct epoll_event event = {.events = EPOLLIN | (wants ? EPOLLOUT : 0), .data.ptr = connection};
    epoll_ctl(epoll, EPOLL_CTL_MOD, connection->fd, &event);
}

// ---- producing

static void prepare_requests(size_t size) {
    for (int i = 0; i < work.variants; i++) {
        struct buffer *head = &work.heads[i];
        work.batches[i] = make_batch(work.records, size, i);
        work.crcs[i] = get32(work.batches[i].data + 17);
        put_header(head, PRODUCE, PRODUCE_VERSION);
        put_varint(head, 0);  // no transactional id
        put16(head, work.acks), put32(head, 30000);
        put_varint(head, 2), put_text(head, work.topic);
        put_varint(head, 2), put32(head, 0);  // one partition; which one is set when it is sent
        put_varint(head, work.batches[i].size + 1);
        set32(head->data, head->size + work.batches[i].size + sizeof tail - 4);
    }
}

// The partition is right before the length of the records.
static void set_partition(struct buffer *head, const struct buffer *batch, int32_t partition) {
    int width = 1;
    for (uint64_t length = batch->size + 1; length >= 128; length >>= 7)
        width++;
    set32(head->data + head->size - width - 4, partition);
}

static void send_requests(struct connection *connection) {
    while (connection->sending_left || (connection->to_send && connection->unanswered < work.window)) {
        int variant = connection->sent % work.variants;
        struct buffer *head = &work.heads[variant], *batch = &work.batches[variant];
        size_t total = head->size + batch->size + sizeof tail;
        if (connection->sending_left == 0) {
            connection->sending_left = total;
            connection->sent_at[connection->sent % work.window] = now_ns();
        }
        set_partition(head, batch, connection->partition);
        size_t skip = total - connection->sending_left;
        struct iovec parts[3] = {{head->data, head->size}, {batch->data, batch->size}, {(void *)tail, sizeof tail}};
        int first = 0;
        while (skip >= parts[first].iov_len)
            skip -= parts[first++].iov_len;
        parts[first].iov_base = (uint8_t *)parts[first].iov_base + skip;
        parts[first].iov_len -= skip;
        ssize_t written = writev(connection->fd, parts + first, 3 - first);
        if (written < 0 && errno != EAGAIN)
            fail("send: %s", strerror(errno));
        if (written > 0)
            connection->sending_left -= written;
        if (connection->sending_left) {
            want_to_write(connection, 1);
            return;
        }
        connection->sent++, connection->to_send--, connection->unanswered++;
        connection->partition = (connection->partition + connection->step) % work.partitions;
        work.sent.records += work.records, work.sent.batches++;
        work.sent.bytes += batch->size, work.sent.checksum += work.crcs[variant];
    }
    want_to_write(connection, 0);
}

static void take_acknowledgement(struct connection *connection, struct reader *reply) {
    skip_tags(reply);
    if (take_varint(reply) != 2)
        fail("a produce reply does not have one topic");
    take(reply, take_varint(reply) - 1);
    if (take_varint(reply) != 2)
        fail("a produce reply does not have one partition");
    int32_t partition = take32(reply);
    int16_t error = take16(reply);
    if (error)
        fail("produce to partition %d: Kafka error %d", partition, error);
    int64_t taken = now_ns() - connection->sent_at[connection->answered++ % work.window];
    if (work.answered++ >= work.warm_until)
        sample(&work.times, taken);
    connection->unanswered--;
    send_requests(connection);
}

// ---- fetching

static void ask_for_more(struct connection *connection) {
    struct buffer *request = &connection->request;
    request->size = 0;
    connection->request_sent = 0;
    put_header(request, FETCH, FETCH_VERSION);
    put32(request, -1), put32(request, work.max_wait_ms), put32(request, 1), put32(request, 16 << 20);
    put8(request, 0), put32(request, 0), put32(request, -1);
    put_varint(request, 2), put_text(request, work.topic);
    int wanted = 0;
    for (int32_t i = connection->first; i < work.partitions; i += connection->step)
        wanted++;
    put_varint(request, wanted + 1);
    for (int32_t i = connection->first; i < work.partitions; i += connection->step) {
        put32(request, i), put32(request, -1), put64(request, connection->offsets[i]), put32(request, -1);
        put64(request, -1), put32(request, 1 << 20), put8(request, 0);
    }
    put8(request, 0);                                   // of the topic
    put_varint(request, 1), put_varint(request, 1), put8(request, 0);  // nothing forgotten, no rack, no tags
    set32(request->data, request->size - 4);
}

static void send_fetch(struct connection *connection) {
    struct buffer *request = &connection->request;
    ssize_t written = write(connection->fd, request->data + connection->request_sent,
                            request->size - connection->request_sent);
    if (written < 0 && errno != EAGAIN)
        fail("send: %s", strerror(errno));
    if (written > 0)
        connection->request_sent += written;
    want_to_write(connection, connection->request_sent < request->size);
}

static void take_batches(struct connection *connection, int32_t partition, const uint8_t *data, size_t size) {
    while (size >= BATCH_HEADER) {
        size_t length = get32(data + 8) + 12;
        if (length > size)
            break;  // a broker may cut the last batch short; the next fetch returns it again
        int64_t base = get64(data);
        uint32_t crc = crc32c(data + 21, length - 21);
        if (crc != get32(data + 17))
            fail("partition %d, offset %" PRId64 ": the CRC is wrong", partition, base);
        if (base != connection->offsets[partition])
            fail("partition %d: offset %" PRId64 " came instead of %" PRId64, partition, base,
                 connection->offsets[partition]);
        connection->offsets[partition] = base + (int32_t)get32(data + 23) + 1;
        connection->read.records += get32(data + 57);
        connection->read.batches++, connection->read.bytes += length, connection->read.checksum += crc;
        data += length, size -= length;
    }
}

static void take_fetched(struct connection *connection, struct reader *reply) {
    skip_tags(reply);
    take32(reply);
    int16_t error = take16(reply);
    if (error)
        fail("fetch: Kafka error %d", error);
    take32(reply);
    int is_at_end = 1;
    for (uint64_t topics = take_varint(reply) - 1; topics; topics--) {
        take(reply, take_varint(reply) - 1);
        for (uint64_t partitions = take_varint(reply) - 1; partitions; partitions--) {
            int32_t partition = take32(reply);
            if ((error = take16(reply)))
                fail("fetch of partition %d: Kafka error %d", partition, error);
            connection->ends[partition] = take64(reply);
            take64(reply), take64(reply);
            uint64_t aborted = take_varint(reply);
            for (; aborted > 1; aborted--)
                take(reply, 16), skip_tags(reply);
            take32(reply);
            uint64_t length = take_varint(reply);
            if (length > 1)
                take_batches(connection, partition, take(reply, length - 1), length - 1);
            skip_tags(reply);
        }
        skip_tags(reply);
    }
    for (int32_t i = connection->first; i < work.partitions; i += connection->step)
        is_at_end &= connection->offsets[i] == connection->ends[i];
    // A reader of all partitions knows how many records to expect; a reader of some reads to their ends.
    int64_t wanted = connection->step == 1 ? work.expected : 0;
    if (is_at_end && (int64_t)connection->read.records >= wanted) {
        connection->is_done = 1;
        return;
    }
    ask_for_more(connection);
    send_fetch(connection);
}

// ---- the loop

static void receive(struct connection *connection) {
    struct buffer *in = &connection->in;
    for (;;) {
        if (in->room - in->size < 65536)
            in->data = realloc(in->data, in->room = in->room ? in->room * 2 : 1 << 17);
        ssize_t size = read(connection->fd, in->data + in->size, in->room - in->size);
        if (size == 0)
            fail("the broker closed a connection");
        if (size < 0 && errno == EAGAIN)
            return;
        if (size < 0)
            fail("receive: %s", strerror(errno));
        in->size += size;
        size_t used = 0;
        while (in->size - used >= 4) {
            size_t length = get32(in->data + used);
            if (in->size - used - 4 < length)
                break;
            struct reader reply = {in->data + used + 8, in->data + used + 4 + length};
            if (connection->request.data)
                take_fetched(connection, &reply);
            else
                take_acknowledgement(connection, &reply);
            used += 4 + length;
        }
        memmove(in->data, in->data + used, in->size - used);
        in->size -= used;
    }
}

static void turn(const char *waiting_for) {
    struct epoll_event events[MOST_EVENTS];
    int count = epoll_wait(epoll, events, MOST_EVENTS, 100);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) {
            if (connection->request.data)
                send_fetch(connection);
            else
                send_requests(connection);
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            receive(connection);
    }
    check_deadline(waiting_for);
}

// Sends `--requests` produce requests in all over `--producers` connections, up to `--window` unanswered on each;
// meanwhile `--readers` connections read everything. With `--split` the readers divide the partitions among them.
void wire_run(void) {
    int producers = number_option("producers", 0), readers = number_option("readers", 0);
    int64_t requests = producers ? number_option("requests", REQUIRED) : 0;
    int is_split = number_option("split", 0);
    work.topic = text_option("topic", REQUIRED_TEXT);
    work.partitions = number_option("partitions", 1);
    work.window = number_option("window", 1);
    work.records = number_option("records", 1);
    work.acks = strcmp(text_option("acks", "all"), "all") == 0 ? -1 : 1;
    work.max_wait_ms = 500;
    work.expected = producers ? requests * work.records : number_option("count", REQUIRED);
    work.warm_until = requests / 10;
    epoll = epoll_create1(0);
    size_t size = number_option("size", 100);
    // No more variants than requests, and about 4 MB of them: they stay in the processor's caches.
    work.variants = VARIANTS;
    while (work.variants > 1 && work.variants * size * work.records > 4 << 20)
        work.variants /= 2;
    payload_prepare(size);
    if (producers)
        prepare_requests(size);
    int64_t connecting = now_ns();
    struct connection *all = calloc(producers + readers, sizeof *all);
    for (int i = 0; i < producers + readers; i++)
        connection_open(&all[i]);
    result_number("connect_seconds", (now_ns() - connecting) / 1e9);
    usage_begin();
    int64_t began = now_ns(), answered_at = 0;
    for (int i = 0; i < readers; i++) {
        struct connection *reader = &all[producers + i];
        reader->offsets = calloc(work.partitions, sizeof *reader->offsets);
        reader->ends = calloc(work.partitions, sizeof *reader->ends);
        reader->first = is_split ? i : 0, reader->step = is_split ? readers : 1;
        ask_for_more(reader);
        send_fetch(reader);
    }
    for (int i = 0; i < producers; i++) {
        all[i].to_send = requests / producers + (i < requests % producers);
        all[i].sent_at = calloc(work.window, sizeof *all[i].sent_at);
        all[i].partition = i % work.partitions;
        all[i].step = producers % work.partitions ? producers : 1;  // so that every partition gets its share
        send_requests(&all[i]);
    }
    for (int done = 0; work.answered < requests || done < readers;) {
        turn(work.answered < requests ? "acknowledgements" : "records");
        if (work.answered == requests && !answered_at)
            answered_at = now_ns();
        done = 0;
        for (int i = 0; i < readers; i++)
            done += all[producers + i].is_done;
    }
    double seconds = (now_ns() - began) / 1e9;
    usage_end();
    result_number("seconds", seconds);
    if (producers) {
        result_number("produce_seconds", (answered_at - began) / 1e9);
        result_number("requests", requests);
        result_number("messages", work.sent.records);
        result_number("bytes", work.sent.bytes);
        result_checksum("checksum", work.sent.checksum);
        result_percentiles("request", &work.times);
    }
    struct batch_sums read = {0};
    for (int i = 0; i < readers; i++) {
        struct batch_sums *one = &all[producers + i].read;
        read.records += one->records, read.bytes += one->bytes, read.checksum += one->checksum;
        if (producers && (one->records != work.sent.records || one->checksum != work.sent.checksum))
            fail("a reader has %" PRIu64 " records of %" PRIu64 ", or others than were sent", one->records,
                 work.sent.records);
    }
    if (readers) {
        result_number("read_messages", read.records);
        result_number("read_bytes", read.bytes);
        result_checksum("read_checksum", read.checksum);
    }
}

// Opens `--connections` connections, waits for the broker's answer on each, prints "ready", and keeps them until stdin
// ends.
void wire_hold(void) {
    int count = number_option("connections", REQUIRED);
    int64_t began = now_ns();
    for (int i = 0; i < count; i++)
        open_greeted();
    result_number("connect_seconds", (now_ns() - began) / 1e9);
    printf("ready\n");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
}
