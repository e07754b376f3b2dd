/* t_inflate.c: compressed streams: what deflate wrote is read to the byte, and no damage to it does harm. */
#include "check.h"
#include "unhex.h"
#include <string.h>

/* The letters of `letters` below, deflated in three ways. */
static const char stored_text[] =
    "013c00c3ff63636161616161616263626462626164616461636361646464636461616162616163616161626161626262"
    "6464636261616161616261616363646161";
static const char fixed_text[] =
    "4b4e4e0483a4e4a494a4a4c414204c4e4e4c4949494e018926262643a8a4a424a05812442d5014240d52950c92026949"
    "4a06ca2625a780cd4b0129824098f1294036c42eb02949202a196800500a6c04d07ab0680a58770ad44e1009b42b19a2"
    "0c6c520a844e81da02a440d6405c02b504845252929293a00aa0ce003a02e809b0a340ca92602e02fb076a30540fd8b0"
    "24901793215e49013b6434ac880d2b00";
static const char dynamic_text[] =
    "ed50c111c030089a5560ff190a68ff1da0492ee61401434e170801236f722451c9ce700300e7b05867530e8a29a50574"
    "1554f914d0ee975e7eaf5659904013b8540acb37ab76eb34735b8b0b2b9336ea541c22b34e4e2447027180b361131ea2"
    "a602c3eba8f31cf1f5940c19913b8a6ae4ffabaf7ff500";

static const struct {
    const char *name, *hex;
    size_t n;
} packed_texts[] = { { "stored", stored_text, 60 }, { "fixed", fixed_text, 600 }, { "dynamic", dynamic_text, 600 } };

static void letters(char text[600]) /* 300 of them, twice */
{
    uint32_t x = 1;
    for (int i = 0; i < 300; i++) {
        x = (x * 1103515245u + 12345u) & 0x7fffffffu;
        text[i] = text[i + 300] = "aaaabbcd"[x >> 16 & 7];
    }
}

TEST(every_kind_of_block_is_inflated)
{
    char want[600], have[601];
    letters(want);
    for (size_t i = 0; i < NELEM(packed_texts); i++) {
        size_t n = packed_texts[i].n;
        struct mc_str b = unhex(packed_texts[i].hex);
        have[n] = 77;
        CHECK((b.s[0] >> 1 & 3) == (int)i, "%s is of kind %d", packed_texts[i].name, b.s[0] >> 1 & 3);
        CHECK(mc_inflate(have, n, b.s, b.n) == MC_OK && memcmp(have, want, n) == 0 && have[n] == 77, "%s: %s",
              packed_texts[i].name, mc_last_error());
        CHECK(mc_inflate(have, n - 1, b.s, b.n) == MC_EFORMAT &&
                  strstr(mc_last_error(), "more bytes than expected"),
              "%s: %s", packed_texts[i].name, mc_last_error());
        CHECK(mc_inflate(have, n + 1, b.s, b.n) == MC_EFORMAT &&
                  strstr(mc_last_error(), "fewer bytes than expected"),
              "%s: %s", packed_texts[i].name, mc_last_error());
        for (size_t k = 0; k < b.n; k++) {
            char *part = mc_alloc(k, "tests");
            memcpy(part, b.s, k);
            CHECK(mc_inflate(have, n, part, k) == MC_EFORMAT, "%s cut to %zu of %zu bytes",
                  packed_texts[i].name, k, b.n);
            mc_free(part);
        }
        mc_str_free(&b);
    }
}

TEST(impossible_streams_are_refused)
{
    static const struct {
        const char *hex, *want;
    } rows[] = {
        { "", "damaged compressed data: an unknown type of block" },
        { "07", "damaged compressed data: an unknown type of block" },
        { "010500faff", "damaged compressed data: the length of a stored block" },
        { "0105000000", "damaged compressed data: the length of a stored block" },
        { "034202", "damaged compressed data: a distance" },          /* back to before the beginning */
        { "fdffff", "damaged compressed data: the number of codes" }, /* more symbols than there are */
        { "0500000000", "damaged compressed data: the code lengths" },
        { "05c0ffffffffffffffff", "damaged compressed data: the code of code lengths" },
    };
    char out[16];
    for (size_t i = 0; i < NELEM(rows); i++) {
        struct mc_str b = unhex(rows[i].hex);
        CHECK(mc_inflate(out, sizeof out, b.s, b.n) == MC_EFORMAT, "%s was inflated", rows[i].hex);
        CHECK(strcmp(mc_last_error(), rows[i].want) == 0, "%s: %s", rows[i].hex, mc_last_error());
        mc_str_free(&b);
    }
}

TEST(check_sums)
{
    CHECK(mc_crc32(0, "123456789", 9) == 0xcbf43926u, "%x", mc_crc32(0, "123456789", 9));
    char text[600];
    letters(text);
    for (size_t i = 0; i < sizeof text; i += 37) {
        CHECK(mc_crc32(mc_crc32(0, text, i), text + i, sizeof text - i) == mc_crc32(0, text, sizeof text),
              "parted at %zu", i);
    }
}
