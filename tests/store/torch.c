/* PyTorch's files as they are (torch/make.py makes them): values, names, views of one storage; and refusals, each cut and each flip. */
#include "core/store/checkpoint.h"

#include "check.h"

static sodet_err err = SODET_ERR_INIT;

static sd_checkpoint *open_file(const char *name, uint32_t flags)
{
    char path[1000];
    sd_checkpoint *c = NULL;
    snprintf(path, sizeof path, "tests/store/torch/%s", name);
    err = (sodet_err)SODET_ERR_INIT;
    sd_checkpoint_open(check_source(path), flags, &c, &err);
    return c;
}

/* The tensor has these dims and, read as it is stored, these bytes. */
static void is(sd_checkpoint *c, const char *name, uint32_t type, uint32_t rank, uint64_t d0, uint64_t d1, const void *values, size_t bytes)
{
    const sd_tensor *t = c ? sd_checkpoint_find(c, name) : NULL;
    unsigned char got[200];
    check_count();
    if (!t || t->type != type || t->rank != rank || (rank > 0 && t->dims[0] != d0) || (rank > 1 && t->dims[1] != d1) ||
        sd_tensor_bytes(t) != bytes || sd_checkpoint_read(c, t, got, &err) != SODET_OK || (bytes && memcmp(got, values, bytes) != 0))
        check_fail(__FILE__, __LINE__, "%s is not what was saved (%s)", name, err.text);
}

static void state_dict(const char *file)
{
    sd_checkpoint *c = open_file(file, SD_CHECKPOINT_FOREIGN);
    CHECK(c && sd_checkpoint_count(c) == 7);
    float w[24], bias[] = {1.5f, -2};
    for (int i = 0; i < 24; i++)
        w[i] = (float)i / 8;
    const int64_t seven = 7;
    const uint16_t half[] = {0x3800, 0x4200}, brain[] = {0x3f80, 0xc080};
    is(c, "conv.weight", SD_F32, 3, 2, 3, w, sizeof w);
    is(c, "conv.bias", SD_F32, 1, 2, 0, bias, sizeof bias);
    is(c, "part", SD_F32, 1, 6, 0, w + 4, 24);
    is(c, "bn.num_batches_tracked", SD_I64, 0, 0, 0, &seven, 8);
    is(c, "half", SD_F16, 1, 2, 0, half, sizeof half);
    is(c, "brain", SD_BF16, 2, 2, 1, brain, sizeof brain);
    is(c, "none", SD_F32, 2, 0, 3, NULL, 0);
    sd_checkpoint_close(c);
}

static void nested(void)
{
    sd_checkpoint *c = open_file("nested.pth", SD_CHECKPOINT_FOREIGN);
    CHECK(c && sd_checkpoint_count(c) == 4);
    const float nine = 9, three = 3;
    const int32_t integers[] = {8, 7};
    is(c, "model.a", SD_F32, 1, 1, 0, &nine, 4);
    is(c, "model.1", SD_I32, 1, 2, 0, integers, 8);
    is(c, "optimizer.moments.1", SD_F32, 1, 1, 0, &three, 4);
    sd_checkpoint_close(c);
}

static void refused(const char *file, uint32_t flags, const char *part)
{
    sd_checkpoint *c = open_file(file, flags);
    check_count();
    if (c || !strstr(err.text, part))
        check_fail(__FILE__, __LINE__, "%s: \"%s\" lacks \"%s\"", file, err.text, part);
    sd_checkpoint_close(c);
}

/* Whatever is cut or flipped: an error with a sentence, or tensors that can be read. */
static void damaged(const char *file)
{
    char path[1000], *bytes;
    uint64_t n;
    snprintf(path, sizeof path, "%s/x.pth", check_scratch("torch"));
    char from[100];
    snprintf(from, sizeof from, "tests/store/torch/%s", file);
    CHECK_OK(sd_file_read(check_source(from), 1 << 20, &bytes, &n, &err));
    uint64_t opened = 0;
    for (uint64_t i = 0; i < 2 * n; i += i < n ? 1 : 5) { /* each byte flipped, cut at every fifth */
        bool cut = i >= n;
        if (!cut)
            bytes[i] = (char)(bytes[i] ^ (1 << i % 8));
        CHECK_OK(sd_file_write_atomic(path, bytes, cut ? i - n : n, &err));
        if (!cut)
            bytes[i] = (char)(bytes[i] ^ (1 << i % 8));
        sd_checkpoint *c = NULL;
        err = (sodet_err)SODET_ERR_INIT;
        sodet_status s = sd_checkpoint_open(path, SD_CHECKPOINT_FOREIGN, &c, &err);
        check_count();
        if ((s != SODET_OK && !*err.text) || (s == SODET_OK && cut))
            check_fail(__FILE__, __LINE__, "%s, %s %llu: status %d, \"%s\"", file, cut ? "cut at" : "flipped at", (unsigned long long)i,
                       (int)s, err.text);
        opened += s == SODET_OK;
        for (uint64_t k = 0; c && k < sd_checkpoint_count(c); k++) {
            const sd_tensor *t = sd_checkpoint_tensor(c, k);
            void *to = sd_alloc(sd_tensor_bytes(t) + 1, 1);
            CHECK_OK(sd_checkpoint_read(c, t, to, &err));
            sd_free(to);
        }
        sd_checkpoint_close(c);
    }
    CHECK(opened > n / 4); /* values and what does not matter */
    sd_free(bytes);
}

int main(void)
{
    state_dict("zip.pth");
    state_dict("old.pth");
    nested();
    refused("zip.pth", SD_CHECKPOINT_OWN,
            "zip.pth: is not a checkpoint: it is a zip archive, as PyTorch's .pt and .pth are; weights of another "
            "system come in by `sodet import`");
    refused("old.pth", SD_CHECKPOINT_OWN, "a Python pickle, as old PyTorch files are");
    refused("view.pth", SD_CHECKPOINT_FOREIGN, "the values of tensor \"w\" are not in the order of its axes");
    refused("short.pth", SD_CHECKPOINT_FOREIGN, "tensor \"w\" is a torch ShortStorage, which sodet does not read");
    refused("empty.pth", SD_CHECKPOINT_FOREIGN, "holds no tensors under names; if it is a whole module, save its state_dict()");
    damaged("zip.pth");
    damaged("old.pth");
    return check_done(5000);
}
