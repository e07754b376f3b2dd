/* inflate.c: decompresses deflate streams (RFC 1951), and computes the checksum of zip files.
 *
 * Invariant: the caller gives the size of the output; no byte outside of it is written or copied, and every
 * damaged stream is an error. */
#include "value/value.h"

enum { LONGEST = 15, FAST = 10, LITERALS = 288, DISTANCES = 30 };

struct in {
    const unsigned char *p, *end;
    uint64_t hold; /* the next n bits, the first one lowest; the bits above are 0 */
    int n;
};

static mc_status damaged(const char *what)
{
    return mc_fail(MC_EFORMAT, "damaged compressed data: %s", what);
}

static void fill(struct in *in)
{
    while (in->n <= 56 && in->p < in->end) {
        in->hold |= (uint64_t)*in->p++ << in->n;
        in->n += 8;
    }
}

/* The next k <= 16 bits, or -1 at the end of the data. */
static int bits(struct in *in, int k)
{
    fill(in);
    if (in->n < k) {
        return -1;
    }
    int v = (int)(in->hold & ((1u << k) - 1));
    in->hold >>= k;
    in->n -= k;
    return v;
}

/* ---- Huffman codes: words of one length are consecutive numbers, ordered by symbol ---- */

struct code {
    uint16_t count[LONGEST + 1]; /* number of words of each length */
    uint16_t symbol[LITERALS];   /* ordered by word */
    uint16_t fast[1 << FAST];    /* by the next FAST bits: symbol * 16 + length; 0 if the word is longer */
};

/* Words are stored with their highest bit first, so the table is indexed by the reversed word. */
static void fill_fast(struct code *c)
{
    unsigned word = 0, at = 0;
    memset(c->fast, 0, sizeof c->fast);
    for (unsigned len = 1; len <= FAST; len++) {
        for (unsigned i = 0; i < c->count[len]; i++, word++, at++) {
            unsigned reversed = 0;
            for (unsigned b = 0; b < len; b++) {
                reversed |= (word >> b & 1) << (len - 1 - b);
            }
            for (unsigned k = reversed; k < 1u << FAST; k += 1u << len) {
                c->fast[k] = (uint16_t)(c->symbol[at] * 16 + len);
            }
        }
        word <<= 1;
    }
}

/* A code must be complete: every bit sequence starts with a word.  Only a code of no word, or of one word of
 * one bit, may be incomplete. */
static bool make_code(struct code *c, const unsigned char *length, int n)
{
    uint16_t start[LONGEST + 2] = { 0 };
    int left = 1;
    memset(c->count, 0, sizeof c->count);
    for (int s = 0; s < n; s++) {
        c->count[length[s]]++;
    }
    int used = n - c->count[0];
    c->count[0] = 0;
    for (int len = 1; len <= LONGEST; len++) {
        left = 2 * left - c->count[len];
        if (left < 0) {
            return false;
        }
        start[len + 1] = (uint16_t)(start[len] + c->count[len]);
    }
    for (int s = 0; s < n; s++) {
        if (length[s]) {
            c->symbol[start[length[s]]++] = (uint16_t)s;
        }
    }
    fill_fast(c);
    return left == 0 || used == 0 || (used == 1 && c->count[1] == 1);
}

/* The next symbol, or -1. */
static int decode(struct in *in, const struct code *c)
{
    fill(in);
    unsigned hit = c->fast[in->hold & ((1u << FAST) - 1)];
    if (hit && (int)(hit & 15) <= in->n) {
        in->hold >>= hit & 15;
        in->n -= (int)(hit & 15);
        return (int)(hit >> 4);
    }
    int word = 0, first = 0, at = 0; /* the first word of this length, and the index of its symbol */
    for (int len = 1; len <= LONGEST && len <= in->n; len++) {
        word |= (int)(in->hold >> (len - 1) & 1);
        if (word - first < c->count[len]) {
            in->hold >>= len;
            in->n -= len;
            return c->symbol[at + word - first];
        }
        at += c->count[len];
        first = (first + c->count[len]) << 1;
        word <<= 1;
    }
    return -1;
}

/* ---- blocks ---- */

struct out {
    unsigned char *at, *begin, *end;
};

static mc_status stored(struct in *in, struct out *o)
{
    bits(in, in->n & 7);
    int n = bits(in, 16), not_n = bits(in, 16);
    if (n < 0 || not_n < 0 || (n ^ 0xffff) != not_n) {
        return damaged("the length of a stored block");
    }
    for (; n > 0 && in->n > 0; n--) { /* bytes already in `hold` */
        if (o->at == o->end) {
            return damaged("more bytes than expected");
        }
        *o->at++ = (unsigned char)bits(in, 8);
    }
    if (n > in->end - in->p || n > o->end - o->at) {
        return damaged("the length of a stored block");
    }
    memcpy(o->at, in->p, (size_t)n);
    in->p += n;
    o->at += n;
    return MC_OK;
}

static const struct {
    uint16_t base;
    uint8_t extra; /* bits */
} lengths[] = { { 3, 0 },  { 4, 0 },  { 5, 0 },  { 6, 0 },  { 7, 0 },  { 8, 0 },   { 9, 0 },   { 10, 0 },
                { 11, 1 }, { 13, 1 }, { 15, 1 }, { 17, 1 }, { 19, 2 }, { 23, 2 },  { 27, 2 },  { 31, 2 },
                { 35, 3 }, { 43, 3 }, { 51, 3 }, { 59, 3 }, { 67, 4 }, { 83, 4 },  { 99, 4 },  { 115, 4 },
                { 131, 5 }, { 163, 5 }, { 195, 5 }, { 227, 5 }, { 258, 0 } },
  distances[] = { { 1, 0 },     { 2, 0 },     { 3, 0 },      { 4, 0 },      { 5, 1 },     { 7, 1 },
                  { 9, 2 },     { 13, 2 },    { 17, 3 },     { 25, 3 },     { 33, 4 },    { 49, 4 },
                  { 65, 5 },    { 97, 5 },    { 129, 6 },    { 193, 6 },    { 257, 7 },   { 385, 7 },
                  { 513, 8 },   { 769, 8 },   { 1025, 9 },   { 1537, 9 },   { 2049, 10 }, { 3073, 10 },
                  { 4097, 11 }, { 6145, 11 }, { 8193, 12 },  { 12289, 12 }, { 16385, 13 }, { 24577, 13 } };

static mc_status copy_back(struct in *in, struct out *o, int symbol, const struct code *dist)
{
    if (symbol >= (int)NELEM(lengths)) {
        return damaged("a length");
    }
    int more = bits(in, lengths[symbol].extra), d = decode(in, dist);
    if (more < 0 || d < 0 || d >= DISTANCES) {
        return damaged("a distance");
    }
    int n = lengths[symbol].base + more, far = bits(in, distances[d].extra);
    ptrdiff_t back = distances[d].base + far;
    if (far < 0 || back > o->at - o->begin) {
        return damaged("a distance");
    }
    if (n > o->end - o->at) {
        return damaged("more bytes than expected");
    }
    for (; n > 0; n--, o->at++) { /* byte by byte: source and destination may overlap */
        *o->at = *(o->at - back);
    }
    return MC_OK;
}

static mc_status compressed(struct in *in, struct out *o, const struct code *lit, const struct code *dist)
{
    for (;;) {
        int symbol = decode(in, lit);
        if (symbol < 0) {
            return damaged("an invalid code");
        }
        if (symbol == 256) {
            return MC_OK;
        }
        if (symbol > 256) {
            TRY(copy_back(in, o, symbol - 257, dist));
        } else if (o->at < o->end) {
            *o->at++ = (unsigned char)symbol;
        } else {
            return damaged("more bytes than expected");
        }
    }
}

static void fixed_codes(struct code *lit, struct code *dist)
{
    unsigned char length[LITERALS];
    for (int i = 0; i < LITERALS; i++) {
        length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    }
    make_code(lit, length, LITERALS);
    memset(length, 5, DISTANCES);
    make_code(dist, length, DISTANCES);
}

/* The word lengths of both codes are themselves Huffman-coded, with symbols for repetition. */
static mc_status read_codes(struct in *in, struct code *lit, struct code *dist)
{
    static const unsigned char order[19] = {
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15
    };
    unsigned char length[LITERALS + 32] = { 0 };
    int nlit = bits(in, 5), ndist = bits(in, 5), nlen = bits(in, 4);
    if (nlit < 0 || ndist < 0 || nlen < 0 || nlit > 29 || ndist > 29) {
        return damaged("the number of codes");
    }
    nlit += 257;
    ndist += 1;
    for (int i = 0; i < nlen + 4; i++) {
        int n = bits(in, 3);
        if (n < 0) {
            return damaged("the end");
        }
        length[order[i]] = (unsigned char)n;
    }
    if (!make_code(lit, length, 19)) {
        return damaged("the code of code lengths");
    }
    for (int i = 0; i < nlit + ndist;) {
        int symbol = decode(in, lit), times = 1, value = symbol;
        if (symbol >= 16) {
            static const struct {
                uint8_t base, extra;
            } repeat[3] = { { 3, 2 }, { 3, 3 }, { 11, 7 } };
            int more = bits(in, repeat[symbol - 16].extra);
            times = more < 0 ? -1 : repeat[symbol - 16].base + more;
            value = symbol > 16 ? 0 : i > 0 ? length[i - 1] : -1;
        }
        if (value < 0 || times < 0 || times > nlit + ndist - i) {
            return damaged("the code lengths");
        }
        memset(length + i, value, (size_t)times);
        i += times;
    }
    if (length[256] == 0 || !make_code(lit, length, nlit) || !make_code(dist, length + nlit, ndist)) {
        return damaged("the code lengths");
    }
    return MC_OK;
}

mc_status mc_inflate(void *dst, size_t n, const void *src, size_t nsrc)
{
    struct in in = { .p = src, .end = (const unsigned char *)src + nsrc };
    struct out o = { dst, dst, (unsigned char *)dst + n };
    struct code lit, dist;
    int last;
    do {
        last = bits(&in, 1);
        int kind = bits(&in, 2);
        if (last < 0 || kind < 0 || kind == 3) {
            return damaged("an unknown type of block");
        }
        if (kind == 0) {
            TRY(stored(&in, &o));
            continue;
        }
        if (kind == 1) {
            fixed_codes(&lit, &dist);
        } else {
            TRY(read_codes(&in, &lit, &dist));
        }
        TRY(compressed(&in, &o, &lit, &dist));
    } while (!last);
    return o.at == o.end ? MC_OK : damaged("fewer bytes than expected");
}

/* ---- CRC-32, eight bytes at a time: table k is for a byte that is followed by k more ---- */

static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int b = 0; b < 8; b++) {
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        }
        tables[0][i] = c;
    }
    for (int k = 1; k < 8; k++) {
        for (int i = 0; i < 256; i++) {
            uint32_t c = tables[k - 1][i];
            tables[k][i] = c >> 8 ^ tables[0][c & 0xff];
        }
    }
}

uint32_t mc_crc32(uint32_t crc, const void *data, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *p = data;
    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
              tables[4][crc >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
    }
    for (; n > 0; n--, p++) {
        crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
    }
    return ~crc;
}
