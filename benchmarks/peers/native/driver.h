// Shared by all parts of the driver: options, time, payloads, checksums, percentiles, the result.
#ifndef DRIVER_H
#define DRIVER_H

#include <stddef.h>
#include <stdint.h>

// Options are `--name value` pairs; the first word is the mode. A missing one without a default ends the program.
const char *text_option(const char *name, const char *otherwise);
int64_t number_option(const char *name, int64_t otherwise);
#define REQUIRED_TEXT NULL
#define REQUIRED INT64_MIN

int64_t now_ns(void);
void sleep_until_ns(int64_t when);

// Ends the program with {"ok": false, "error": ...} on stdout: the figures of this run must not be used.
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The deadline of the whole run; after it `check_deadline` fails and reports what the driver was waiting for.
void set_deadline(int64_t seconds);
void check_deadline(const char *waiting_for);

// Payloads look like JSON events (zstd compresses them to a fifth); the first eight bytes are the message's number.
void payload_prepare(size_t size);
void payload_fill(uint8_t *room, size_t size, uint64_t number);
// A checksum of many values in any order is the sum of their hashes.
uint64_t hash64(const uint8_t *data, size_t size);
uint32_t crc32c(const uint8_t *data, size_t size);

struct samples {
    int64_t *values;
    size_t count, room;
};
void sample(struct samples *to, int64_t value_ns);

// The result: one JSON object on one line of stdout.
void result_number(const char *name, double value);
void result_text(const char *name, const char *value);
void result_checksum(const char *name, uint64_t value);
// name_p50_us, name_p99_us, name_p999_us, name_max_us; sorts the samples.
void result_percentiles(const char *name, struct samples *of);
// The CPU seconds of this process since `usage_begin`, and the share of the time in which its busiest thread ran: near
// 1 the client is the limit. The measurement is between the two calls; the harness reads the broker's CPU at both.
void usage_begin(void);
void usage_end(void);
void result_print(void);

void client_produce(void);
void client_consume(void);
void client_latency(void);
void client_round_trips(void);
void client_catch_up(void);
void client_group(void);
void wire_run(void);
void wire_hold(void);

#endif
