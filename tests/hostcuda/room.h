/* room.h: where the ranks of one communicator meet: shared memory with a name, so that ranks may be threads of a process or processes of a
 * machine. A rank has one thread in a room at a time. */
#ifndef HC_ROOM_H
#define HC_ROOM_H

#include "internal.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HC_MAX_RANKS = 16, HC_ROOM_NAME = 64, HC_ROOM_BYTES = 512 << 10 };

/* What a rank brings to a meeting: the call it makes, and a piece of its data. */
typedef struct hc_call {
    int kind, type, op, root;
    uint64_t count, sequence;
} hc_call;

typedef struct hc_room hc_room;

/* Makes a room that can be entered by its name, and removes rooms whose makers have died. False: errno says why. */
bool hc_room_make(char name[HC_ROOM_NAME]);
/* From now on it cannot be entered; those inside stay. Does nothing if there is none. */
void hc_room_close(const char *name);
/* NULL after a report: no such room, a rank that is taken, another number of ranks. */
hc_room *hc_room_enter(const char *name, int rank, int ranks, int device);
void hc_room_leave(hc_room *room);
/* This rank's meetings, now and later, fail. The others are not woken: with the real library they hang until they abort too. Any thread. */
void hc_room_abort(hc_room *room);
/* What this rank brings to the next meeting: to be filled before it. */
hc_call *hc_room_own_call(hc_room *room);
unsigned char *hc_room_own_data(hc_room *room); /* HC_ROOM_BYTES */
/* Waits for all ranks. After HC_NCCL_TIMEOUT seconds, or when the process of one has died, those that are missing are reported, once; it
 * goes on waiting. False: aborted. */
bool hc_room_meet(hc_room *room, const char *what);
/* What a rank brought to the last meeting; stays until the next. */
const hc_call *hc_room_call(const hc_room *room, int rank);
const unsigned char *hc_room_data(const hc_room *room, int rank);
/* Another rank that is the same device of the same process; -1: none. */
int hc_room_twin(const hc_room *room);

/* out[i] = the reduction of element i over the ranks, in their order; sums of real numbers in double, rounded once. False: unknown type or
 * operation. */
bool hc_reduce(int type, int op, int ranks, const void *const *in, void *out, size_t n);
size_t hc_type_size(int type); /* 0: unknown */

#ifdef __cplusplus
}
#endif
#endif
