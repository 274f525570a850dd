/* The walk of `walk.py` in C: the same checks in the same order with the same results; a property test compares the
 * two. And the fast path of `frames.py`: compressed data in its usual form; rare or invalid data is left to Python.
 * Built at install time if there is a compiler (`hatch_build.py`); uses the limited API, so that one file works for
 * every Python from 3.11 on.
 *
 * Every read is checked against the end of the record, or of the data, before it is done: the bytes are not trusted.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* As `Flaw` in walk.py. */
enum flaw {
    NONE = 0,
    CUT_OFF,
    BAD_VARINT,
    BAD_LENGTH,
    SHORT_RECORD,
    BAD_OFFSET_DELTA,
    BAD_TIMESTAMP,
    BAD_FIELD,
    BAD_HEADER_COUNT,
    BAD_HEADER_KEY,
    NOT_UTF8,
    LONG_RECORD,
    LEFT_OVER,
};

enum { BAD, END, FINE };

#define NO_TIMESTAMP (-1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* The demands on the records besides being valid, and the results. */
struct demands {
    bool keys;
    int64_t oldest, newest;
    Py_ssize_t most_named;
};

static int long_varint(const uint8_t **at, const uint8_t *end, int most_bytes, uint8_t last_byte, uint64_t *value)
{
    const uint8_t *p = *at;
    uint64_t bits = 0;
    for (int n = 0; n < most_bytes; n++) {
        if (p >= end)
            return END;
        uint8_t byte = *p++;
        if (n == most_bytes - 1 && byte > last_byte)
            return BAD;
        bits |= (uint64_t)(byte & 0x7F) << (7 * n);
        if (byte < 0x80)
            break;
    }
    *at = p;
    *value = bits;
    return FINE;
}

/* Zig-zag, at most 5 bytes and 32 bits, as every client can read it. */
static inline int varint32(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    const uint8_t *p = *at;
    uint64_t bits;
    if (LIKELY(end - p >= 2)) {
        bits = p[0];
        if (LIKELY(bits < 0x80)) {
            *at = p + 1;
            *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return FINE;
        }
        if (LIKELY(p[1] < 0x80)) {
            bits = (bits & 0x7F) | (uint64_t)p[1] << 7;
            *at = p + 2;
            *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return FINE;
        }
    }
    int read = long_varint(at, end, 5, 0x0F, &bits);
    if (read == FINE)
        *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return read;
}

/* Zig-zag, at most 10 bytes and 64 bits. */
static inline int varint64(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    uint64_t bits;
    if (LIKELY(end > *at && **at < 0x80)) {
        bits = *(*at)++;
    } else {
        int read = long_varint(at, end, 10, 0x01, &bits);
        if (read != FINE)
            return read;
    }
    *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return FINE;
}

/* As strict as Python's decoder: no surrogates, nothing above U+10FFFF, no overlong forms. */
static bool is_utf8(const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        uint8_t first = *p++;
        if (first < 0x80)
            continue;
        int more;
        uint8_t low = 0x80, high = 0xBF;
        if (first >= 0xC2 && first <= 0xDF) {
            more = 1;
        } else if ((first & 0xF0) == 0xE0) {
            more = 2;
            if (first == 0xE0)
                low = 0xA0;
            if (first == 0xED)
                high = 0x9F;
        } else if (first >= 0xF0 && first <= 0xF4) {
            more = 3;
            if (first == 0xF0)
                low = 0x90;
            if (first == 0xF4)
                high = 0x8F;
        } else {
            return false;
        }
        if (end - p < more || *p < low || *p > high)
            return false;
        for (p++; --more > 0; p++)
            if ((*p & 0xC0) != 0x80)
                return false;
    }
    return true;
}

#define READ(call)                                                     \
    do {                                                               \
        int read_ = (call);                                            \
        if (UNLIKELY(read_ != FINE))                                   \
            return read_ == END ? SHORT_RECORD : BAD_VARINT;           \
    } while (0)

/* One nullable field; sets `*is_null`. */
static inline enum flaw skip_field(const uint8_t **at, const uint8_t *end, bool *is_null)
{
    int64_t length;
    READ(varint32(at, end, &length));
    *is_null = length == -1;
    if (length < 0)
        return *is_null ? NONE : BAD_FIELD;
    if (UNLIKELY(length > end - *at))
        return BAD_FIELD;
    *at += length;
    return NONE;
}

static enum flaw skip_headers(const uint8_t **at, const uint8_t *end, int64_t count)
{
    if (count < 0 || count > (end - *at) / 2) /* a header has at least two bytes */
        return BAD_HEADER_COUNT;
    for (; count > 0; count--) {
        int64_t length;
        bool is_null;
        READ(varint32(at, end, &length));
        if (length < 0 || length > end - *at)
            return BAD_HEADER_KEY;
        if (!is_utf8(*at, *at + length))
            return NOT_UTF8;
        *at += length;
        enum flaw flaw = skip_field(at, end, &is_null);
        if (flaw)
            return flaw;
    }
    return NONE;
}

/* One record whose length has been read. */
static inline enum flaw read_record(const uint8_t *p, const uint8_t *end, int64_t index, int64_t *timestamp_delta,
                                    bool *is_keyless)
{
    int64_t number;
    bool is_null;
    enum flaw flaw;
    if (UNLIKELY(p >= end))
        return SHORT_RECORD;
    p++; /* attributes, unused */
    READ(varint64(&p, end, timestamp_delta));
    READ(varint32(&p, end, &number));
    if (UNLIKELY(number != index))
        return BAD_OFFSET_DELTA;
    flaw = skip_field(&p, end, is_keyless);
    if (UNLIKELY(flaw))
        return flaw;
    flaw = skip_field(&p, end, &is_null);
    if (UNLIKELY(flaw))
        return flaw;
    READ(varint32(&p, end, &number));
    if (UNLIKELY(number)) {
        flaw = skip_headers(&p, end, number);
        if (flaw)
            return flaw;
    }
    return UNLIKELY(p != end) ? LONG_RECORD : NONE;
}

/* Returns false, with an exception set, on failure. */
static bool name(PyObject *named, int64_t index, bool is_keyless, int64_t timestamp)
{
    PyObject *entry = is_keyless ? Py_BuildValue("(LO)", (long long)index, Py_None)
                                 : Py_BuildValue("(LL)", (long long)index, (long long)timestamp);
    if (entry == NULL)
        return false;
    int failed = PyList_Append(named, entry);
    Py_DECREF(entry);
    return !failed;
}

static PyObject *walked(enum flaw flaw, int64_t index, int64_t max_timestamp, int64_t refused, PyObject *named)
{
    PyObject *shown = named ? named : Py_None;
    PyObject *result = Py_BuildValue("(iLLLO)", (int)flaw, (long long)index, (long long)max_timestamp,
                                     (long long)refused, shown);
    Py_XDECREF(named);
    return result;
}

/* A record in its usual form: varints of one or two bytes, a short key, no headers. Returns false for any other form,
 * valid or not; then `read_record` decides. */
static inline bool is_plain_record(const uint8_t *p, const uint8_t *end, int64_t index, int64_t *timestamp_delta,
                                   bool *is_keyless)
{
    if (UNLIKELY(end - p < 9)) /* the bytes that are read below without another check, if the key is null */
        return false;
    uint32_t bits = p[1];
    p += 2;
    if (bits >= 0x80) {
        bits = (bits & 0x7F) | (uint32_t)*p++ << 7;
        if (UNLIKELY(bits >= 0x4000))
            return false;
    }
    *timestamp_delta = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    bits = *p++;
    if (bits >= 0x80) {
        bits = (bits & 0x7F) | (uint32_t)*p++ << 7;
        if (UNLIKELY(bits >= 0x4000))
            return false;
    }
    if (UNLIKELY(bits != (uint64_t)index << 1))
        return false;
    bits = *p++;
    *is_keyless = bits == 1;
    if (!*is_keyless) {
        if (UNLIKELY(bits & 0x81 || end - p < (bits >> 1) + 3)) /* the key, two bytes of a length, and one of a count */
            return false;
        p += bits >> 1;
    }
    bits = *p++;
    if (bits >= 0x80) {
        bits = (bits & 0x7F) | (uint32_t)*p++ << 7;
        if (UNLIKELY(bits >= 0x4000))
            return false;
    }
    if (UNLIKELY(bits & 1)) {
        if (bits != 1)
            return false;
        bits = 0;
    }
    return end - p == (bits >> 1) + 1 && p[bits >> 1] == 0;
}

static PyObject *walk_data(const uint8_t *p, const uint8_t *end, int64_t count, int64_t base_timestamp, bool is_fixed,
                           const struct demands *demands)
{
    int64_t max_timestamp = INT64_MIN, refused = 0, index;
    PyObject *named = NULL;
    for (index = 0; index < count; index++) {
        int64_t length, delta, timestamp = base_timestamp;
        bool is_keyless;
        int read = varint32(&p, end, &length);
        if (UNLIKELY(read != FINE))
            return walked(read == END ? CUT_OFF : BAD_VARINT, index, 0, 0, named);
        if (UNLIKELY(length < 0 || length > end - p))
            return walked(BAD_LENGTH, index, 0, 0, named);
        if (UNLIKELY(!is_plain_record(p, p + length, index, &delta, &is_keyless))) {
            enum flaw flaw = read_record(p, p + length, index, &delta, &is_keyless);
            if (UNLIKELY(flaw))
                return walked(flaw, index, 0, 0, named);
        }
        p += length;
        if (!is_fixed && UNLIKELY(__builtin_add_overflow(base_timestamp, delta, &timestamp)))
            return walked(BAD_TIMESTAMP, index, 0, 0, named);
        if (timestamp > max_timestamp)
            max_timestamp = timestamp;
        bool lacks_key = is_keyless && demands->keys;
        if (UNLIKELY(lacks_key || ((timestamp < demands->oldest || timestamp > demands->newest) &&
                                   timestamp != NO_TIMESTAMP))) {
            if (refused++ < demands->most_named) {
                if (named == NULL && (named = PyList_New(0)) == NULL)
                    return NULL;
                if (!name(named, index, lacks_key, timestamp)) {
                    Py_DECREF(named);
                    return NULL;
                }
            }
        }
    }
    if (p != end)
        return walked(LEFT_OVER, index, 0, 0, named);
    return walked(NONE, index, max_timestamp, refused, named);
}

/* Arguments are read by hand: `PyArg_ParseTuple` takes as long as the walk over twenty records. */
static bool read_numbers(PyObject *const *args, Py_ssize_t count, long long *numbers)
{
    for (Py_ssize_t n = 0; n < count; n++) {
        numbers[n] = PyLong_AsLongLong(args[n]);
        if (numbers[n] == -1 && PyErr_Occurred())
            return false;
    }
    return true;
}

static PyObject *walk(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    enum { START, COUNT, BASE_TIMESTAMP, IS_FIXED, KEYS, OLDEST, NEWEST, MOST_NAMED, NUMBERS };
    long long numbers[NUMBERS];
    Py_buffer data;
    if (given != 1 + NUMBERS) {
        PyErr_Format(PyExc_TypeError, "walk takes %d arguments, not %zd", 1 + NUMBERS, given);
        return NULL;
    }
    if (!read_numbers(args + 1, NUMBERS, numbers) || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) != 0)
        return NULL;
    PyObject *result;
    if (numbers[START] < 0 || numbers[START] > data.len) {
        PyErr_SetString(PyExc_ValueError, "start is outside the data");
        result = NULL;
    } else {
        const uint8_t *bytes = data.buf;
        struct demands demands = {numbers[KEYS] != 0, numbers[OLDEST], numbers[NEWEST],
                                  (Py_ssize_t)numbers[MOST_NAMED]};
        result = walk_data(bytes + numbers[START], bytes + data.len, numbers[COUNT], numbers[BASE_TIMESTAMP],
                           numbers[IS_FIXED] != 0, &demands);
    }
    PyBuffer_Release(&data);
    return result;
}

/* Frames of compressed data: an upper bound of their content, or its exact size if the frame states it. UNUSUAL: left
 * to Python. */

#define UNUSUAL (-1)
enum { GZIP = 1, SNAPPY, LZ4, ZSTD };

static inline uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

static inline uint32_t rotated(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

/* xxHash of less than 16 bytes, with seed 0. */
static uint32_t xxh32_of_few(const uint8_t *p, uint32_t size)
{
    uint32_t value = 0x165667B1u + size;
    for (; size >= 4; size -= 4, p += 4)
        value = rotated(value + le32(p) * 0xC2B2AE3Du, 17) * 0x27D4EB2Fu;
    for (; size > 0; size--, p++)
        value = rotated(value + *p * 0x165667B1u, 11) * 0x9E3779B1u;
    value = (value ^ value >> 15) * 0x85EBCA77u;
    value = (value ^ value >> 13) * 0xC2B2AE3Du;
    return value ^ value >> 16;
}

static int64_t gzip_bound(const uint8_t *p, int64_t size)
{
    if (size < 20 || p[0] != 0x1F || p[1] != 0x8B || p[2] != 8 || p[3] & 0xE0)
        return UNUSUAL;
    return size * 1032;
}

static int64_t snappy_block_bound(const uint8_t *p, int64_t size)
{
    int64_t content = 0;
    for (int n = 0; n < 5; n++) {
        if (n >= size)
            return UNUSUAL;
        content |= (int64_t)(p[n] & 0x7F) << (7 * n);
        if (p[n] < 0x80)
            return content > 64 * size ? UNUSUAL : content;
    }
    return UNUSUAL;
}

static int64_t snappy_bound(const uint8_t *p, int64_t size)
{
    static const uint8_t magic[8] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
    int64_t at = 16, total = 0;
    if (size < 8 || memcmp(p, magic, 8) != 0)
        return snappy_block_bound(p, size);
    if (at >= size)
        return UNUSUAL;
    while (at < size) {
        if (size - at < 4)
            return UNUSUAL;
        int64_t length = be32(p + at);
        at += 4;
        if (length == 0 || length > size - at)
            return UNUSUAL;
        int64_t content = snappy_block_bound(p + at, length);
        if (content < 0)
            return UNUSUAL;
        total += content;
        at += length;
    }
    return total;
}

static int64_t lz4_bound(const uint8_t *p, int64_t size)
{
    if (size < 7 || le32(p) != 0x184D2204u)
        return UNUSUAL;
    uint8_t flags = p[4], block = p[5];
    if (flags >> 6 != 1 || flags & 0x03 || !(flags & 0x20) || block & 0x8F || block >> 4 < 4)
        return UNUSUAL;
    int64_t largest = (int64_t)1 << (8 + 2 * (block >> 4)), most = 0, content = UNUSUAL;
    int descriptor = flags & 0x08 ? 10 : 2;
    if (size < 5 + descriptor || p[4 + descriptor] != (xxh32_of_few(p + 4, descriptor) >> 8 & 0xFF))
        return UNUSUAL;
    if (flags & 0x08) {
        if (p[13] & 0x80)
            return UNUSUAL;
        content = (int64_t)le32(p + 6) | (int64_t)le32(p + 10) << 32;
    }
    int64_t at = 5 + descriptor;
    for (;;) {
        if (size - at < 4)
            return UNUSUAL;
        uint32_t head = le32(p + at);
        int64_t length = head & 0x7FFFFFFF;
        at += 4;
        if (head == 0)
            break;
        if (length > largest)
            return UNUSUAL;
        if (head >> 31)
            most += length;
        else
            most += length * 255 < largest ? length * 255 : largest;
        at += length + (flags & 0x10 ? 4 : 0);
        if (at > size)
            return UNUSUAL;
    }
    if (at + (flags & 0x04 ? 4 : 0) != size || content > most)
        return UNUSUAL;
    return content >= 0 ? content : most;
}

static int64_t zstd_bound(const uint8_t *p, int64_t size)
{
    if (size < 6 || le32(p) != 0xFD2FB528u)
        return UNUSUAL;
    uint8_t flags = p[4];
    if (flags & 0x0B) /* reserved, or a dictionary */
        return UNUSUAL;
    bool is_single = flags >> 5 & 1;
    int width = flags >> 6 ? 1 << (flags >> 6) : is_single;
    int64_t at = 6 - is_single, most = 0, content = UNUSUAL;
    if (size - at < width)
        return UNUSUAL;
    if (width) {
        content = 0;
        for (int n = 0; n < width; n++)
            content |= (int64_t)p[at + n] << (8 * n);
        if (content < 0)
            return UNUSUAL;
        if (width == 2)
            content += 256;
        at += width;
    }
    for (;;) {
        if (size - at < 3)
            return UNUSUAL;
        uint32_t head = (uint32_t)p[at] | (uint32_t)p[at + 1] << 8 | (uint32_t)p[at + 2] << 16;
        int kind = head >> 1 & 3;
        int64_t length = head >> 3;
        at += 3;
        if (kind == 3 || length > 128 << 10)
            return UNUSUAL;
        most += kind == 2 ? 128 << 10 : length;
        at += kind == 1 ? 1 : length;
        if (at > size)
            return UNUSUAL;
        if (head & 1)
            break;
    }
    if (at + (flags & 0x04 ? 4 : 0) != size || content > most)
        return UNUSUAL;
    return content >= 0 ? content : most;
}

static PyObject *frame_bound(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    long long codec, start;
    Py_buffer data;
    if (given != 3) {
        PyErr_Format(PyExc_TypeError, "frame_bound takes 3 arguments, not %zd", given);
        return NULL;
    }
    if (!read_numbers(args, 1, &codec) || !read_numbers(args + 2, 1, &start) ||
        PyObject_GetBuffer(args[1], &data, PyBUF_SIMPLE) != 0)
        return NULL;
    int64_t bound = UNUSUAL;
    if (start >= 0 && start <= data.len) {
        const uint8_t *bytes = (const uint8_t *)data.buf + start;
        int64_t size = data.len - start;
        if (codec == GZIP)
            bound = gzip_bound(bytes, size);
        else if (codec == SNAPPY)
            bound = snappy_bound(bytes, size);
        else if (codec == LZ4)
            bound = lz4_bound(bytes, size);
        else if (codec == ZSTD)
            bound = zstd_bound(bytes, size);
    }
    PyBuffer_Release(&data);
    return PyLong_FromLongLong(bound);
}

static PyMethodDef methods[] = {
    {"walk", (PyCFunction)(void (*)(void))walk, METH_FASTCALL, "See tidelog.records.walk."},
    {"frame_bound", (PyCFunction)(void (*)(void))frame_bound, METH_FASTCALL, "See tidelog.records.frames."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_walk", "The walk over the records of a batch, in C.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__walk(void) { return PyModule_Create(&definition); }
