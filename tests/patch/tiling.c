// SPDX-License-Identifier: Apache-2.0
/* How rules divide the tensors of a state among ranks, and which rules are refused. */
#include "tests/patch/state.h"

#include "base/limits.h"

static const struct form forms[] = {{"model.norm", "BF16", {64}, 1, 0},
                                    {"model.layers.0.down.weight", "BF16", {6, 32}, 2, 0},
                                    {"model.layers.0.up.weight", "F32", {8, 2, 3}, 3, 0},
                                    {"model.embed", "F8_E4M3", {12, 6}, 2, 0},
                                    {"scale", "F32", {0}, 0, 0},
                                    {"nothing", "BF16", {0, 8}, 2, 0},
                                    {"packed", "F4", {2, 3}, 2, 0}};

/* A state is described; nobody looks at its data. */
static const struct ulp_tensor *described(void) {
    static struct ulp_tensor tensors[COUNT(forms)];

    for (size_t i = 0; !tensors[COUNT(forms) - 1].name && i < COUNT(forms); i++) {
        tensors[i] = (struct ulp_tensor){.name = forms[i].name,
                                         .dtype = forms[i].dtype,
                                         .shape = forms[i].shape,
                                         .rank = forms[i].rank};
        assert_ok(ulp_tensor_measure(&tensors[i]));
    }
    return tensors;
}

static struct ulp_tiling *tiling_of(const char *rules, unsigned count) {
    struct ulp_tiling *tiling = NULL;

    assert_ok(ulp_tiling_new(rules, count, &tiling));
    return tiling;
}

/* What a tile holds, as text: NAME row+rows column+columns, line by line. */
static void assert_tile(const struct ulp_tiling *tiling, unsigned tile, const char *expected) {
    struct ulp_region *regions = NULL;
    char text[1024] = "";
    size_t count = 99, used = 0;

    assert_ok(ulp_tiling_regions(tiling, described(), COUNT(forms), tile, &regions, &count));
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s %llu+%llu %llu+%llu\n", regions[i].tensor,
            (unsigned long long)regions[i].row, (unsigned long long)regions[i].rows,
            (unsigned long long)regions[i].column, (unsigned long long)regions[i].columns);
    assert_string_equal(text, expected);
    assert_true(count ? regions != NULL : !regions);
    ulp_regions_free(regions);
}

/* Rows where that is possible; the scalar, vectors and what does not divide are common. */
static void test_without_rules(void **unused) {
    static const char *const none[] = {NULL, "", "\n\n", "# rules\n \t \n#none"};

    (void)unused;
    for (size_t i = 0; i < COUNT(none); i++) {
        struct ulp_tiling *tiling = tiling_of(none[i], 2);

        assert_tile(tiling, 0,
                    "model.embed 0+12 0+6\nmodel.norm 0+1 0+64\npacked 0+1 0+3\n"
                    "scale 0+1 0+1\n");
        assert_tile(tiling, 1,
                    "model.layers.0.down.weight 0+3 0+32\n"
                    "model.layers.0.up.weight 0+8 0+3\n");
        assert_tile(tiling, 2,
                    "model.layers.0.down.weight 3+3 0+32\n"
                    "model.layers.0.up.weight 8+8 0+3\n");
        ulp_tiling_free(tiling);
    }
}

/* One tile and the common part: cuts that are none fall on every word. */
static void test_one_tile(void **unused) {
    struct ulp_tiling *tiling = tiling_of("packed columns\nscale rows", 1);

    (void)unused;
    assert_tile(tiling, 0, "model.norm 0+1 0+64\n");
    assert_tile(tiling, 1,
                "model.embed 0+12 0+6\nmodel.layers.0.down.weight 0+6 0+32\n"
                "model.layers.0.up.weight 0+16 0+3\npacked 0+1 0+3\nscale 0+1 0+1\n");
    ulp_tiling_free(tiling);
}

/* Twelve rows of six bytes divide into three times 24 bytes, but not into words by four. */
static void test_first_match_wins(void **unused) {
    struct ulp_tiling *tiling = tiling_of("*.down.*\tcolumns  \n"
                                          "  *norm columns\n"
                                          "# the rest of the layers\n"
                                          "model.layers.*.weight common",
                                          4);

    (void)unused;
    assert_tile(tiling, 0,
                "model.embed 0+12 0+6\nmodel.layers.0.up.weight 0+16 0+3\n"
                "packed 0+1 0+3\nscale 0+1 0+1\n");
    assert_tile(tiling, 1, "model.layers.0.down.weight 0+6 0+8\nmodel.norm 0+1 0+16\n");
    assert_tile(tiling, 4, "model.layers.0.down.weight 0+6 24+8\nmodel.norm 0+1 48+16\n");
    ulp_tiling_free(tiling);
    tiling = tiling_of("model.embed rows\n* common\nmodel.* columns", 3);
    assert_tile(tiling, 2, "model.embed 4+4 0+6\n");
    ulp_tiling_free(tiling);
}

/* Everything is in common, or nothing is. */
static void test_empty_tiles(void **unused) {
    struct ulp_tiling *tiling = tiling_of("* common", 5);

    (void)unused;
    assert_tile(tiling, 5, "");
    ulp_tiling_free(tiling);
    tiling = tiling_of("* rows", 1);
    assert_tile(tiling, 0, "");
    ulp_tiling_free(tiling);
}

/* Whether a rule with this pattern takes the tensor, which would be common otherwise. */
static void check_pattern(const char *pattern, const char *name, int expected) {
    struct ulp_tensor tensor = {.name = name, .dtype = "U8", .shape = &(uint64_t){8}, .rank = 1};
    struct ulp_region *regions = NULL;
    struct ulp_tiling *tiling;
    size_t count = 0;
    char rules[64];

    assert_ok(ulp_tensor_measure(&tensor));
    snprintf(rules, sizeof rules, "%s columns", pattern);
    tiling = tiling_of(rules, 1);
    assert_ok(ulp_tiling_regions(tiling, &tensor, 1, 1, &regions, &count));
    if ((int)count != expected)
        fail_msg("%s matches %s: %zu", pattern, name, count);
    ulp_regions_free(regions);
    ulp_tiling_free(tiling);
}

static void test_patterns(void **unused) {
    static const char *const match[] = {"model.norm",  "*",    "***",         "*norm",    "model*",
                                        "m*o*m",       "*.*",  "model.norm*", "m*m",      "*o*o*",
                                        "*model.norm", "*rm*", "*o*norm",     "model.*rm"};
    static const char *const differ[] = {"model.nor",  "model.norm.", "*.*.*",        "*o*o*o*",
                                         "*n*rx",      "norm",        "*mo*mo*",      "?*",
                                         "Model.norm", "*norm*norm",  "model.norm**x"};

    (void)unused;
    for (size_t i = 0; i < COUNT(match); i++)
        check_pattern(match[i], "model.norm", 1);
    for (size_t i = 0; i < COUNT(differ); i++)
        check_pattern(differ[i], "model.norm", 0);
    check_pattern("*ab", "aab", 1); /* the second a, too, is tried */
    check_pattern("*a*ab*b", "aaabxab", 1);
    check_pattern("*\xc3\xa9", "caf\xc3\xa9", 1);
}

static void refused(const char *rules, unsigned count, enum ulp_status status, const char *text) {
    struct ulp_tiling *tiling = NULL;

    assert_fails(ulp_tiling_new(rules, count, &tiling), status, text);
    assert_null(tiling);
}

static void test_text_that_is_no_rules(void **unused) {
    (void)unused;
    refused(NULL, 0, ULP_E_USAGE, "0 tiles");
    refused(NULL, LIMIT_TILES + 1, ULP_E_LIMIT, "1025 tiles");
    refused("a rows\nb", 2, ULP_E_USAGE,
            "line 2 of the tiling: behind the pattern 'b' stands nothing");
    refused("\n\na row", 2, ULP_E_USAGE,
            "line 3 of the tiling: behind the pattern 'a' stands 'row'");
    refused("a Rows", 2, ULP_E_USAGE, "'Rows'");
    refused("a rows columns", 2, ULP_E_USAGE, "line 1 of the tiling has more than");
    refused("a rows # why", 2, ULP_E_USAGE, "line 1 of the tiling has more than");
    refused("a rows\r\n", 2, ULP_E_USAGE, "control character");
    refused("a\x01 rows", 2, ULP_E_USAGE, "control character");
    refused("a\x7f rows", 2, ULP_E_USAGE, "control character");
    refused("x rows\n\xff rows", 2, ULP_E_USAGE, "line 2 of the tiling has");
    refused("# \xc3\n", 2, ULP_E_USAGE, "not UTF-8");
    refused("a rows\n# again\na common", 2, ULP_E_USAGE,
            "line 3 of the tiling: 'a' has a rule already, on line 1");
}

static void test_limits(void **unused) {
    char *text = malloc(LIMIT_TILING_BYTES + 2), line[32];
    struct ulp_tiling *tiling = NULL;
    size_t used = 0;

    (void)unused;
    assert_non_null(text);
    memset(text, '\n', LIMIT_TILING_BYTES + 1);
    text[LIMIT_TILING_BYTES + 1] = 0;
    refused(text, 2, ULP_E_LIMIT, "exceed 65536 bytes");
    text[LIMIT_TILING_BYTES] = 0;
    ulp_tiling_free(tiling_of(text, 2));
    memset(text, 'x', LIMIT_NAME_BYTES + 1);
    memcpy(text + LIMIT_NAME_BYTES + 1, " rows", 6);
    refused(text, 2, ULP_E_LIMIT, "a pattern of 4097 bytes");
    ulp_tiling_free(tiling_of(text + 1, LIMIT_TILES));
    for (unsigned i = 0; i <= LIMIT_TILING_RULES; i++) {
        snprintf(line, sizeof line, "x%u rows\n", i);
        memcpy(text + used, line, strlen(line) + 1);
        used += strlen(line);
        if (i + 1 == LIMIT_TILING_RULES)
            assert_ok(ulp_tiling_new(text, 2, &tiling));
    }
    refused(text, 2, ULP_E_LIMIT, "line 1025 of the tiling: there are more than 1024 rules");
    ulp_tiling_free(tiling);
    free(text);
}

/* Whichever tile is asked for, so that all ranks fail alike. */
static void cannot(const char *rules, unsigned count, const char *text) {
    struct ulp_tiling *tiling = tiling_of(rules, count);
    struct ulp_region *regions = NULL;
    size_t region_count = 99;

    for (unsigned tile = 0; tile <= count; tile++) {
        assert_fails(
            ulp_tiling_regions(tiling, described(), COUNT(forms), tile, &regions, &region_count),
            ULP_E_REGIONS, text);
        assert_true(!regions && region_count == 99);
    }
    ulp_tiling_free(tiling);
}

static void test_rules_that_cannot_be_met(void **unused) {
    (void)unused;
    cannot("model.embed rows", 5,
           "tensor 'model.embed', 12 rows of 6 columns of 1 bytes, cannot be");
    cannot("# cuts\nmodel.embed rows", 4, "4 bands of rows, as line 2 of the tiling says");
    cannot("model.embed columns", 2, "model.embed");
    cannot("*down* columns", 16, "down.weight");
    cannot("*norm rows", 2, "model.norm");
    cannot("*norm columns", 32, "model.norm");
    cannot("scale columns", 2, "scale");
    cannot("packed rows", 3, "packed");
}

static void test_arguments(void **unused) {
    struct ulp_tiling *tiling = tiling_of(NULL, 2);
    struct ulp_tensor twice[2] = {described()[0], described()[0]};
    struct ulp_region *regions = NULL;
    size_t count = 0;

    (void)unused;
    assert_fails(ulp_tiling_regions(tiling, described(), 1, 3, &regions, &count), ULP_E_USAGE,
                 "no tile 3");
    assert_fails(ulp_tiling_regions(tiling, twice, 2, 0, &regions, &count), ULP_E_DUPLICATE, "");
    assert_fails(ulp_tiling_regions(NULL, twice, 2, 0, &regions, &count), ULP_E_USAGE, "NULL");
    assert_fails(ulp_tiling_new(NULL, 2, NULL), ULP_E_USAGE, "NULL");
    assert_ok(ulp_tiling_regions(tiling, NULL, 0, 0, &regions, &count));
    assert_int_equal(count, 0);
    ulp_tiling_free(tiling);
    ulp_tiling_free(NULL);
    ulp_regions_free(NULL);
}

static void test_memory_runs_out(void **unused) {
    enum ulp_status status;
    uint64_t calls = 1;

    (void)unused;
    described();
    for (uint64_t at = 0; at <= calls; at++) {
        struct ulp_tiling *tiling = NULL;
        struct ulp_region *regions = NULL;
        size_t count = 0;

        failing_allocator_start(at < calls ? at : UINT64_MAX, 1);
        status = ulp_tiling_new("*norm columns\n*.up.* common", 2, &tiling);
        if (!status)
            status = ulp_tiling_regions(tiling, described(), COUNT(forms), 1, &regions, &count);
        ulp_regions_free(regions);
        ulp_tiling_free(tiling);
        if (status) {
            assert_int_equal(status, ULP_E_NOMEM);
            failing_allocator_stop();
            calls = at + 2;
        } else {
            calls = failing_allocator_stop();
            assert_true(at >= calls);
            return;
        }
    }
}

TEST_MAIN(test_without_rules, test_one_tile, test_first_match_wins, test_empty_tiles, test_patterns,
          test_text_that_is_no_rules, test_limits, test_rules_that_cannot_be_met, test_arguments,
          test_memory_runs_out)
