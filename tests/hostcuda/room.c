/* See room.h. Two sets of calls and data take turns, so that one meeting per piece is enough: who arrives at a meeting has read all that
 * was brought to the one before, and what is filled in for the next lies in the other set. */
#include "room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "sodet-hostcuda-"; /* then the maker's process */
enum { POLL_NS = 20000000, MAX_MADE = 64 };

typedef struct shared {
    pthread_mutex_t mutex; /* robust: its owner may be killed */
    pthread_cond_t changed;
    int ranks;
    uint32_t inside, arrived, gone; /* bits of ranks; gone: left or aborted */
    uint64_t meeting;
    struct {
        pid_t process;
        int device;
    } member[HC_MAX_RANKS];
    hc_call call[2][HC_MAX_RANKS];
    unsigned char data[2][HC_MAX_RANKS][HC_ROOM_BYTES];
} shared;

struct hc_room {
    shared *at;
    int rank, ranks;
    unsigned fill; /* the set for the next meeting; the other is that of the last */
    atomic_bool aborted;
};

/* Made by this process and perhaps not closed. */
static char made[MAX_MADE][HC_ROOM_NAME];
static unsigned made_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((destructor)) static void close_all(void)
{
    for (unsigned i = 0; i < made_count && i < MAX_MADE; i++)
        hc_room_close(made[i]);
}

static void remove_stale(void)
{
    DIR *dir = opendir("/dev/shm");
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));) {
        if (strncmp(e->d_name, prefix, sizeof prefix - 1) != 0)
            continue;
        long process = strtol(e->d_name + sizeof prefix - 1, NULL, 10);
        char name[300];
        snprintf(name, sizeof name, "/%s", e->d_name);
        if (process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH)
            shm_unlink(name);
    }
    closedir(dir);
}

static shared *map(int file)
{
    void *p = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool hc_room_make(char name[HC_ROOM_NAME])
{
    static atomic_uint count;
    remove_stale();
    snprintf(name, HC_ROOM_NAME, "/%s%d-%u-%lx", prefix, (int)getpid(), atomic_fetch_add(&count, 1), (unsigned long)time(NULL));
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    shared *s = NULL;
    if (file >= 0 && ftruncate(file, sizeof(shared)) == 0) /* zero bytes, of which only those that are used cost memory */
        s = map(file);
    if (file >= 0)
        close(file);
    if (!s)
        return false;
    pthread_mutexattr_t mutex;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->mutex, &mutex);
    pthread_mutexattr_destroy(&mutex);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &condition);
    pthread_condattr_destroy(&condition);
    munmap(s, sizeof *s);
    pthread_mutex_lock(&lock);
    memcpy(made[made_count++ % MAX_MADE], name, HC_ROOM_NAME);
    pthread_mutex_unlock(&lock);
    return true;
}

void hc_room_close(const char *name)
{
    shm_unlink(name);
}

static void take(shared *s)
{
    if (pthread_mutex_lock(&s->mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&s->mutex); /* every change is a single store: nothing is half done */
}

hc_room *hc_room_enter(const char *name, int rank, int ranks, int device)
{
    int file = shm_open(name, O_RDWR, 0);
    shared *s = file >= 0 ? map(file) : NULL;
    hc_room *room = calloc(1, sizeof *room);
    if (file >= 0)
        close(file);
    if (!s || !room) {
        /* No finding: a rank that comes late may find that another one has given up. The library's answer is an error. */
        fprintf(stderr, "hostcuda: nccl: rank %d: no communicator %s: its maker has ended, a rank gave it up, or all came already\n", rank,
                name);
        if (s)
            munmap(s, sizeof *s);
        free(room);
        return NULL;
    }
    *room = (hc_room){.at = s, .rank = rank, .ranks = ranks};
    take(s);
    int others = s->ranks;
    bool taken = s->inside >> rank & 1;
    if (!taken && (others == 0 || others == ranks)) {
        s->ranks = ranks;
        s->inside |= 1u << rank;
        s->member[rank].process = getpid();
        s->member[rank].device = device;
    } else {
        room->ranks = 0;
    }
    pthread_mutex_unlock(&s->mutex);
    if (room->ranks == 0) {
        if (taken)
            hc_report("nccl: rank %d came twice", rank);
        else
            hc_report("nccl: rank %d says there are %d ranks, another says %d", rank, ranks, others);
        munmap(s, sizeof *s);
        free(room);
        return NULL;
    }
    return room;
}

static void mark_gone(hc_room *room)
{
    take(room->at);
    room->at->gone |= 1u << room->rank;
    pthread_cond_broadcast(&room->at->changed);
    pthread_mutex_unlock(&room->at->mutex);
}

void hc_room_leave(hc_room *room)
{
    mark_gone(room);
    munmap(room->at, sizeof *room->at);
    free(room);
}

void hc_room_abort(hc_room *room)
{
    atomic_store(&room->aborted, true);
    mark_gone(room);
}

/* Killed and waited for, or killed and not waited for. */
static bool has_died(pid_t process)
{
    char path[40], state = 0;
    if (kill(process, 0) != 0 && errno == ESRCH)
        return true;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *f = fopen(path, "r");
    bool dead = f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'Z';
    if (f)
        fclose(f);
    return dead;
}

/* A rank that will never come to this meeting. */
static bool is_lost(const hc_room *room)
{
    const shared *s = room->at;
    for (int r = 0; r < room->ranks; r++)
        if (!(s->arrived >> r & 1) && s->inside >> r & 1 && has_died(s->member[r].process))
            return true;
    return false;
}

/* "1 (never came), 2 (its process has died)" */
static void list_missing(const hc_room *room, char *text, size_t size)
{
    const shared *s = room->at;
    size_t n = 0;
    text[0] = 0;
    for (int r = 0; r < room->ranks; r++) {
        if (s->arrived >> r & 1 || n >= size)
            continue;
        const char *why = "";
        if (!(s->inside >> r & 1))
            why = " (never came)";
        else if (s->gone >> r & 1)
            why = " (has left)";
        else if (has_died(s->member[r].process))
            why = " (its process has died)";
        n += (size_t)snprintf(text + n, size - n, "%s%d%s", n ? ", " : "", r, why);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool hc_room_meet(hc_room *room, const char *what)
{
    shared *s = room->at;
    double begin = now();
    bool said = false;
    take(s);
    uint64_t meeting = s->meeting;
    s->arrived |= 1u << room->rank;
    if (s->arrived == (1u << room->ranks) - 1) {
        s->arrived = 0;
        s->meeting++;
        pthread_cond_broadcast(&s->changed);
    }
    while (s->meeting == meeting && !atomic_load(&room->aborted)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += POLL_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!said && (now() - begin >= hc_setting()->nccl_timeout || is_lost(room))) {
            char missing[400];
            list_missing(room, missing, sizeof missing);
            said = true;
            hc_report("nccl: rank %d of %d waits in %s for rank %s", room->rank, room->ranks, what, missing);
        }
        if (pthread_cond_timedwait(&s->changed, &s->mutex, &until) == EOWNERDEAD)
            pthread_mutex_consistent(&s->mutex);
    }
    bool met = s->meeting != meeting;
    pthread_mutex_unlock(&s->mutex);
    if (met)
        room->fill ^= 1;
    return met && !atomic_load(&room->aborted);
}

hc_call *hc_room_own_call(hc_room *room)
{
    return &room->at->call[room->fill][room->rank];
}

unsigned char *hc_room_own_data(hc_room *room)
{
    return room->at->data[room->fill][room->rank];
}

const hc_call *hc_room_call(const hc_room *room, int rank)
{
    return &room->at->call[room->fill ^ 1][rank];
}

const unsigned char *hc_room_data(const hc_room *room, int rank)
{
    return room->at->data[room->fill ^ 1][rank];
}

int hc_room_twin(const hc_room *room)
{
    const shared *s = room->at;
    for (int r = 0; r < room->ranks; r++)
        if (r != room->rank && s->member[r].process == s->member[room->rank].process && s->member[r].device == s->member[room->rank].device)
            return r;
    return -1;
}
