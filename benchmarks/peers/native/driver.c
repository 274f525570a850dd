// The benchmark's load generator. Modes `produce`, `consume`, `latency`, `round-trips`, `catch-up` and `group` drive
// librdkafka; `wire` and `hold` speak the protocol over bare sockets, for thousands of connections or a client that
// costs almost nothing. Prints one JSON object; {"ok": false, ...} if anything failed.
#define _GNU_SOURCE
#include "driver.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

static int option_count;
static char **option_words;
static int64_t deadline_ns;

const char *text_option(const char *name, const char *otherwise) {
    for (int i = 2; i + 1 < option_count; i += 2)
        if (strncmp(option_words[i], "--", 2) == 0 && strcmp(option_words[i] + 2, name) == 0)
            return option_words[i + 1];
    if (otherwise == NULL)
        fail("the option --%s is missing", name);
    return otherwise;
}

int64_t number_option(const char *name, int64_t otherwise) {
    const char *text = text_option(name, otherwise == REQUIRED ? REQUIRED_TEXT : "");
    return *text ? strtoll(text, NULL, 10) : otherwise;
}

int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void sleep_until_ns(int64_t when) {
    struct timespec time = {when / 1000000000, when % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

_Noreturn void fail(const char *format, ...) {
    char message[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    for (char *at = message; *at; at++)
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = '\'';
    printf("{\"ok\": false, \"error\": \"%s\"}\n", message);
    fflush(stdout);
    _exit(1);
}

void set_deadline(int64_t seconds) { deadline_ns = now_ns() + seconds * INT64_C(1000000000); }

void check_deadline(const char *waiting_for) {
    if (now_ns() > deadline_ns)
        fail("timed out waiting for %s", waiting_for);
}

// ---- payloads and checksums

#define POOL_SIZE (4 << 20)
static uint8_t *pool;
static size_t pool_span;
static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void) {  // xorshift: the same payloads in every run
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

void payload_prepare(size_t size) {
    static const char *events[] = {"view", "click", "purchase", "refund", "search", "login", "logout", "signup"};
    static const char *pages[] = {"/home", "/cart", "/product/list", "/product/detail", "/help", "/account/orders"};
    size_t used = 0;
    pool = malloc(POOL_SIZE + size + 1000);
    while (used < POOL_SIZE + size)
        used += sprintf((char *)pool + used,
                        "{\"id\":%" PRIu64 ",\"user\":\"u%06u\",\"event\":\"%s\",\"page\":\"%s\",\"amount\":%u.%02u,"
                        "\"session\":\"%016" PRIx64 "\",\"ok\":%s}\n",
                        random64() >> 20, (unsigned)(random64() % 50000), events[random64() % 8],
                        pages[random64() % 6], (unsigned)(random64() % 500), (unsigned)(random64() % 100), random64(),
                        random64() % 20 ? "true" : "false");
    pool_span = POOL_SIZE;
}

void payload_fill(uint8_t *room, size_t size, uint64_t number) {
    memcpy(room, pool + number * 2654435761u % pool_span, size);
    memcpy(room, &number, size < 8 ? size : 8);
}

static inline uint64_t load64(const uint8_t *data) {
    uint64_t value;
    memcpy(&value, data, 8);
    return value;
}

static inline uint64_t mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash64(const uint8_t *data, size_t size) {
    uint64_t hash = size * 0x9e3779b97f4a7c15u;
    for (; size >= 16; data += 16, size -= 16)
        hash = mix(load64(data) ^ 0xa0761d6478bd642fu ^ hash, load64(data + 8) ^ 0xe7037ed1a0b428dbu);
    uint8_t rest[16] = {0};
    memcpy(rest, data, size);
    return mix(load64(rest) ^ 0x8ebc6af09c88c6e3u ^ hash, load64(rest + 8) ^ 0x589965cc75374cc3u);
}

uint32_t crc32c(const uint8_t *data, size_t size) {
#ifdef __SSE4_2__
    uint64_t crc = 0xffffffff;
    for (; size >= 8; data += 8, size -= 8)
        crc = _mm_crc32_u64(crc, load64(data));
    for (; size; data++, size--)
        crc = _mm_crc32_u8((uint32_t)crc, *data);
    return (uint32_t)crc ^ 0xffffffff;
#else
    static uint32_t table[256];
    uint32_t crc = 0xffffffff;
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++)
                table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
        }
    for (; size; data++, size--)
        crc = crc >> 8 ^ table[(crc ^ *data) & 255];
    return crc ^ 0xffffffff;
#endif
}

// ---- the result

static char result[16384] = "{\"ok\": true";
static size_t result_size = sizeof "{\"ok\": true" - 1;

static void add(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    result_size += vsnprintf(result + result_size, sizeof result - result_size, format, arguments);
    va_end(arguments);
    if (result_size >= sizeof result)
        fail("the result is too long");
}

void result_number(const char *name, double value) { add(", \"%s\": %.9g", name, value); }
void result_text(const char *name, const char *value) { add(", \"%s\": \"%s\"", name, value); }
void result_checksum(const char *name, uint64_t value) { add(", \"%s\": \"%016" PRIx64 "\"", name, value); }

void result_print(void) {
    printf("%s}\n", result);
    fflush(stdout);
}

void sample(struct samples *to, int64_t value_ns) {
    if (to->count == to->room) {
        to->room = to->room ? to->room * 2 : 1 << 16;
        to->values = realloc(to->values, to->room * sizeof *to->values);
    }
    to->values[to->count++] = value_ns;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void result_percentiles(const char *name, struct samples *of) {
    static const struct {
        const char *name;
        double share;
    } wanted[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    if (of->count == 0)
        fail("nothing was timed for %s", name);
    qsort(of->values, of->count, sizeof *of->values, compare);
    for (int i = 0; i < 4; i++) {
        size_t at = (size_t)(wanted[i].share * of->count);
        char full[100];
        snprintf(full, sizeof full, "%s_%s_us", name, wanted[i].name);
        result_number(full, of->values[at < of->count ? at : of->count - 1] / 1e3);
    }
}

// ---- the CPU time of the client itself

static int64_t usage_began_ns;
static double usage_began_cpu;
struct thread_cpu {
    long id;
    double seconds;
};
static struct thread_cpu threads_before[4096];
static int threads_before_count;

static double own_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int read_threads(struct thread_cpu *room, int most) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && count < most && (entry = readdir(tasks));) {
        char path[300], line[1000];
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(line, sizeof line, file))
            room[count++] = (struct thread_cpu){strtol(entry->d_name, NULL, 10), strtoull(line, NULL, 10) / 1e9};
        fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

// With `--phases 1` the harness is notified, and its answer awaited: it reads the broker's CPU time then.
static void announce(const char *phase) {
    char byte;
    if (!number_option("phases", 0))
        return;
    printf("%s\n", phase);
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        fail("the harness is gone");
}

void usage_begin(void) {
    announce("begin");
    threads_before_count = read_threads(threads_before, 4096);
    usage_began_cpu = own_cpu();
    usage_began_ns = now_ns();
}

void usage_end(void) {
    static struct thread_cpu threads[4096];
    double seconds = (now_ns() - usage_began_ns) / 1e9, busiest = 0;
    result_number("client_cpu_seconds", own_cpu() - usage_began_cpu);
    int count = read_threads(threads, 4096);
    for (int i = 0; i < count; i++) {
        double used = threads[i].seconds;
        for (int j = 0; j < threads_before_count; j++)
            if (threads_before[j].id == threads[i].id)
                used -= threads_before[j].seconds;
        if (used > busiest)
            busiest = used;
    }
    result_number("client_busiest_thread", busiest / seconds);
    announce("end");
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"produce", client_produce},   {"consume", client_consume}, {"latency", client_latency},
        {"round-trips", client_round_trips}, {"catch-up", client_catch_up}, {"group", client_group},
        {"wire", wire_run},            {"hold", wire_hold},
    };
    option_count = count;
    option_words = words;
    prctl(PR_SET_TIMERSLACK, 1000);  // for exact short sleeps
    set_deadline(number_option("timeout", 120));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (count > 1 && strcmp(words[1], modes[i].name) == 0) {
            modes[i].run();
            result_print();
            return 0;
        }
    fail("there is no mode %s", count > 1 ? words[1] : "without a name");
}
