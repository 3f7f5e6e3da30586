/* The formula behind every golden input, against formula.json; and that a comparison can fail. */
#include "golden.h"

static uint64_t integer(const char *text)
{
    return strtoull(text, NULL, 0);
}

static void hashes(gold_tally *t, const gold *root)
{
    const gold *fnv = gold_get(root, "fnv1a64"), *mix = gold_get(root, "splitmix64"), *hash = gold_get(root, "hash");
    for (uint64_t i = 0; i < gold_size(fnv); i++)
        gold_count(t, gold_key(fnv, i), gold_fnv1a64(gold_key(fnv, i)) == integer(gold_text(gold_at(fnv, i))));
    for (uint64_t i = 0; i < gold_size(mix); i++)
        gold_count(t, gold_key(mix, i), gold_mix(integer(gold_key(mix, i))) == integer(gold_text(gold_at(mix, i))));
    for (uint64_t i = 0; i < gold_size(hash); i++)
        for (uint64_t k = 0; k < gold_size(gold_at(hash, i)); k++)
            gold_count(t, gold_key(hash, i), gold_hash(gold_key(hash, i), k) == integer(gold_text(gold_at(gold_at(hash, i), k))));
    const gold *u24 = gold_path(root, "u24", "input", NULL), *u53 = gold_path(root, "u53", "input", NULL),
               *index = gold_get(root, "sample_indices_mod_1000003");
    for (uint64_t k = 0; k < gold_size(u24); k++)
        gold_count(t, "u24", gold_u("input", k) == gold_number(gold_at(u24, k)));
    for (uint64_t k = 0; k < gold_size(u53); k++)
        gold_count(t, "u53", gold_u53("input", k) == gold_number(gold_at(u53, k)));
    for (uint64_t k = 0; k < gold_size(index); k++)
        gold_count(t, "sample index", (double)gold_sample(k, 1000003) == gold_number(gold_at(index, k)));
}

static void kinds(gold_tally *t, const gold *root)
{
    static const uint64_t conv[] = {64, 3, 3, 3}, vector[] = {64};
    static const struct {
        const char *key, *name;
        uint32_t rank;
        double gain;
        bool norm;
    } row[] = {
        {"conv weight, backbone.features.0.weight, fan_in 27, gain 1", "backbone.features.0.weight", 4, 1, false},
        {"conv weight, backbone.features.0.weight, fan_in 27, gain 0.5", "backbone.features.0.weight", 4, 0.5, false},
        {"conv bias, backbone.features.0.bias", "backbone.features.0.bias", 1, 1, false},
        {"norm weight, backbone.body.bn1.weight", "backbone.body.bn1.weight", 1, 1, true},
        {"norm bias, backbone.body.bn1.bias", "backbone.body.bn1.bias", 1, 1, true},
        {"running mean, backbone.body.bn1.running_mean", "backbone.body.bn1.running_mean", 1, 1, true},
        {"running var, backbone.body.bn1.running_var", "backbone.body.bn1.running_var", 1, 1, true},
        {"input image", "input", 0, 1, false},
    };
    CHECK_EQ(gold_size(gold_get(root, "kinds")), sizeof row / sizeof *row);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        float out[64 * 27];
        const gold *want = gold_path(root, "kinds", row[i].key, NULL);
        if (row[i].rank)
            gold_fill_state(out, row[i].name, row[i].rank == 4 ? conv : vector, row[i].rank, row[i].gain, row[i].norm);
        else
            gold_fill_u(out, 8, row[i].name);
        for (uint64_t k = 0; k < gold_size(want); k++)
            gold_count(t, row[i].key, (double)out[k] == gold_number(gold_at(want, k)));
    }
    float scale[3];
    gold_fill_state(scale, "backbone.scale_weight", (const uint64_t[]){3}, 1, 1, false);
    CHECK(scale[0] == 20 && scale[2] == 20);
}

int main(void)
{
    const gold *root = gold_open("formula.json");
    gold_tally t = GOLD_TALLY("formula");
    hashes(&t, root);
    kinds(&t, root);
    gold_done(&t);
    gold_close(root);
    return check_done(150);
}
