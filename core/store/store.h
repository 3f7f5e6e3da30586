/* store/store.h: what the files of this folder share; nothing outside it includes this. */
#ifndef SD_STORE_STORE_H
#define SD_STORE_STORE_H

#include "core/store/checkpoint.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are little-endian and are written as they lie in memory"
#endif

/* The checksum of a checkpoint: four lanes over 64-bit words, each multiplied and rotated (so that no two flipped bits cancel), folded
 * by splitmix64's mixer. It runs over the tensors' bytes and then the header with the checksum's own digits as zeros. It is there for
 * broken disks and cut files, not against people. */
typedef struct sd_sum {
    uint64_t lane[4], total;
    uint32_t n_tail;
    unsigned char tail[32];
} sd_sum;
void sd_sum_begin(sd_sum *s);
void sd_sum_add(sd_sum *s, const void *bytes, uint64_t n);
uint64_t sd_sum_end(sd_sum *s);

#define SD_FORMAT "sodet/1"
enum { SD_SUM_DIGITS = 16 };

struct sd_checkpoint {
    int fd;
    char *path;
    sd_pool pool;
    sd_tensor *tensors;
    uint64_t n, capacity;
    uint64_t *offsets; /* of each tensor, from the beginning of the file */
    uint64_t offsets_capacity;
    uint64_t *by_name; /* indices in the order of the names */
    sd_meta *meta;
    uint64_t n_meta, meta_capacity;
};
/* Adds a tensor; its name is copied. */
sodet_status sd_store_add(sd_checkpoint *c, const sd_tensor *t, uint64_t offset, sodet_err *err);
/* After the last one: sorts by name and refuses two of one name. */
sodet_status sd_store_index(sd_checkpoint *c, sodet_err *err);
/* An empty checkpoint with an open file of `size` bytes; a folder is refused. */
sodet_status sd_store_open_file(const char *path, sd_checkpoint **out, uint64_t *size, sodet_err *err);
/* torch.c: whether a file that begins so is PyTorch's, and its tensors added and indexed. */
bool sd_store_is_torch(const unsigned char *begin, uint64_t n);
sodet_status sd_store_read_torch(sd_checkpoint *c, uint64_t size, const unsigned char *begin, sodet_err *err);

sodet_status sd_store_pread(const sd_checkpoint *c, void *to, uint64_t n, uint64_t offset, sodet_err *err);

/* "[64, 3, 3, 3]"; "[]" is a scalar. Returns text. */
const char *sd_store_shape(char text[200], uint32_t rank, const uint64_t *dims);

/* What a name map says about a tensor of the file. */
enum { SD_MAP_TRANSPOSE = 1, SD_MAP_RESHAPE = 2 };
typedef struct sd_map_hit {
    const char *ours; /* in the caller's pool; NULL: left out */
    uint32_t flags;
    uint32_t n_axes; /* of an explicit transposition; 0: the two axes of a matrix */
    uint8_t axes[SD_TENSOR_RANK];
    uint64_t line; /* of the map's text */
} sd_map_hit;
enum { SD_MAP_NO_LINE, SD_MAP_LEFT_OUT, SD_MAP_HIT, SD_MAP_NO_MEMORY };
int sd_name_map_find(const sd_name_map *map, const char *theirs, sd_pool *pool, sd_map_hit *hit);
const char *sd_name_map_where(const sd_name_map *map);

#endif
