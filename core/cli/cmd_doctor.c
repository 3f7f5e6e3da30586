/* sodet doctor: what this machine offers to a run, and what to do where something is in the way. Changes nothing. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/parallel.h"
#include "core/cli/cli.h"
#include "core/data/send.h"
#include "core/device/pool.h"
#include "core/plugin/plugin.h"
#include "core/report/build.h"

enum { OK, NOTE, BAD };
static const char *const words[] = {"ok", "note", "bad"};
static const double GIB = 1024.0 * 1024.0 * 1024.0;

typedef struct doctor {
    sd_text out;
    bool json;
    uint64_t n, noted, bad, plugins, refused;
    char backends[16][64]; /* that can be loaded */
    uint32_t n_backends;
} doctor;

/* found: one sentence; advice: what to do, "" where nothing is. */
static void say(doctor *d, int how, const char *name, const char *found, const char *advice)
{
    d->n++;
    d->noted += how == NOTE;
    d->bad += how == BAD;
    if (d->json) {
        sd_text_printf(&d->out, "%s{\"name\": ", d->n > 1 ? ",\n  " : "\n  ");
        sd_json_write_string(&d->out, name);
        sd_text_printf(&d->out, ", \"state\": \"%s\", \"found\": ", words[how]);
        sd_json_write_string(&d->out, found);
        sd_text_printf(&d->out, ", \"advice\": ");
        sd_json_write_string(&d->out, advice);
        sd_text_printf(&d->out, "}");
        return;
    }
    sd_text_printf(&d->out, "%-5s %-18s %s\n", words[how], name, found);
    if (*advice)
        sd_text_printf(&d->out, "%-24s -> %s\n", "", advice);
}

/* The first line of a small file of the system; "" if it is not there. */
static void first_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    out[0] = '\0';
    if (f && fgets(out, (int)size, f))
        out[strcspn(out, "\n")] = '\0';
    else
        out[0] = '\0';
    if (f)
        fclose(f);
}

/* ---- processor ---- */
static void look_at_processor(doctor *d, const sd_build_info *b)
{
    const char *limit = getenv("ONEDNN_MAX_CPU_ISA") ? getenv("ONEDNN_MAX_CPU_ISA") : getenv("DNNL_MAX_CPU_ISA");
    char found[400];
    bool wide = strstr(b->isa, " avx2") && strstr(b->isa, " fma");
    say(d, wide ? OK : NOTE, "processor", b->isa,
        wide ? ""
             : "without AVX2 and FMA the backend cpu computes in narrow vectors: several times slower; use a newer machine for training");
    if (limit) {
        snprintf(found, sizeof found, "ONEDNN_MAX_CPU_ISA = %.200s: oneDNN uses no more than that", limit);
        say(d, NOTE, "processor/limit", found, "unset it, unless the limit is wanted");
    }
}

/* Processors' worth of time that the control group gives; 0: no limit. */
static double quota(void)
{
    char line[200], *rest;
    first_line("/sys/fs/cgroup/cpu.max", line, sizeof line);
    double most = strtod(line, &rest), period = strtod(rest, NULL);
    return most > 0 && period > 0 ? most / period : 0;
}

static void look_at_processors(doctor *d)
{
    long there = sysconf(_SC_NPROCESSORS_ONLN);
    int mine = (int)sd_processors();
    double q = quota();
    char found[200], advice[200] = "";
    snprintf(found, sizeof found, "%d of %ld may be used", mine, there);
    if (q > 0 && q < mine) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, ", but the control group gives the time of %.2g", q);
        snprintf(advice, sizeof advice, "write run.threads=%d: more threads than that wait for one another", q < 1 ? 1 : (int)q);
    } else if (mine < there) {
        snprintf(advice, sizeof advice, "the process is bound (taskset, a batch system); run.threads follows it by itself");
    }
    say(d, *advice ? NOTE : OK, "processors", found, advice);
}

/* ---- memory ---- */
static double meminfo(const char *key)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[200];
    double kib = 0;
    size_t n = strlen(key);
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, n) == 0 && line[n] == ':')
            kib = strtod(line + n + 1, NULL);
    if (f)
        fclose(f);
    return kib * 1024;
}

static void look_at_memory(doctor *d)
{
    char line[200], found[200];
    double total = meminfo("MemTotal"), available = meminfo("MemAvailable");
    first_line("/sys/fs/cgroup/memory.max", line, sizeof line);
    double limit = strtod(line, NULL), most = limit > 0 && limit < available ? limit : available;
    struct rlimit space;
    bool bounded = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    if (!(total > 0)) {
        say(d, NOTE, "memory", "/proc/meminfo cannot be read", "mount /proc, as containers do by default");
    } else {
        snprintf(found, sizeof found, "%.1f GiB, %.1f GiB of it free%s", total / GIB, most / GIB,
                 most < available ? " by the control group's limit" : "");
        say(d, most < 2 * GIB ? NOTE : OK, "memory", found,
            most < 2 * GIB ? "take a smaller train.batch, with optimizer.accumulate to make up for it; `sodet summary x.ini` tells the need"
                           : "");
    }
    if (bounded) {
        snprintf(found, sizeof found, "address space is limited to %.1f GiB (ulimit -v)", (double)space.rlim_cur / GIB);
        say(d, NOTE, "memory/limit", found, "ulimit -v unlimited: weights are mapped, and arenas reserved, beyond what is used");
    }
}

static void look_at_pages(doctor *d)
{
    char line[200], found[300];
    first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
    const char *mode = strchr(line, '[');
    snprintf(found, sizeof found, mode ? "transparent huge pages: %s" : "no transparent huge pages in this kernel", line);
    bool off = !mode || strncmp(mode, "[never]", 7) == 0;
    say(d, off ? NOTE : OK, "huge pages", found,
        off ? "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; page faults of fresh memory cost up to a tenth of a "
              "step"
            : "");
}

/* ---- limits ---- */
static void look_at_limits(doctor *d)
{
    static const rlim_t FEW = 1024, PINNED = (rlim_t)64 << 20;
    struct rlimit r;
    char found[200];
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        bool few = r.rlim_cur != RLIM_INFINITY && r.rlim_cur < FEW;
        snprintf(found, sizeof found, "%" PRIu64 " open files", (uint64_t)r.rlim_cur);
        say(d, few ? NOTE : OK, "limits/nofile", found, few ? "ulimit -n 4096 before the run, or LimitNOFILE= of the service" : "");
    }
    if (getrlimit(RLIMIT_MEMLOCK, &r) == 0) {
        bool little = r.rlim_cur != RLIM_INFINITY && r.rlim_cur < PINNED;
        bool wanted = false; /* by a backend that is not of the processor */
        for (uint32_t i = 0; i < d->n_backends; i++)
            wanted = wanted || (strcmp(d->backends[i], "cpu") != 0 && strcmp(d->backends[i], "ref") != 0);
        if (r.rlim_cur == RLIM_INFINITY)
            snprintf(found, sizeof found, "locked memory: unlimited");
        else
            snprintf(found, sizeof found, "locked memory: %.1f MiB", (double)r.rlim_cur / (1 << 20));
        say(d, little && wanted ? NOTE : OK, "limits/memlock", found,
            little && wanted ? "ulimit -l unlimited: devices and networks that read memory by themselves need it locked"
            : little         ? "nothing that is installed locks memory; for GPUs over a network: ulimit -l unlimited"
                             : "");
    }
    if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY) {
        snprintf(found, sizeof found, "files are limited to %.1f MiB (ulimit -f)", (double)r.rlim_cur / (1 << 20));
        say(d, r.rlim_cur < ((rlim_t)256 << 20) ? BAD : NOTE, "limits/fsize", found,
            "ulimit -f unlimited: a checkpoint of SSD300 has about 200 MiB with the optimizer's state");
    }
}

static void look_at_disk(doctor *d)
{
    struct statvfs v;
    char found[4600], folder[4096];
    if (!getcwd(folder, sizeof folder) || statvfs(".", &v) != 0) {
        snprintf(found, sizeof found, "the working folder cannot be looked at: %s", strerror(errno));
        say(d, BAD, "disk", found, "change to a folder that is there");
        return;
    }
    double room = (double)v.f_bavail * (double)v.f_frsize;
    bool writable = access(".", W_OK | X_OK) == 0, files = v.f_files == 0 || v.f_favail > 1000;
    snprintf(found, sizeof found, "%.1f GiB free in %s%s%s", room / GIB, folder, writable ? "" : ", which cannot be written",
             files ? "" : ", but hardly a file more");
    say(d,
        !writable || room < 0.1 * GIB || !files ? BAD
        : room < 2 * GIB                        ? NOTE
                                                : OK,
        "disk", found,
        !writable ? "name a folder for results: run.output=/somewhere/run"
        : room < 2 * GIB
            ? "make room, or keep fewer checkpoints (checkpoint.keep=1); one of SSD300 has about 200 MiB with the optimizer's state"
        : !files ? "remove files: the file system has no room for more of them"
                 : "");
}

/* ---- libraries ---- */
typedef struct loaded { /* a library of the process, by the beginning of its name */
    const char *begin;
    char path[4096];
} loaded;

static int find_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
    loaded *l = context;
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!slash || strncmp(slash + 1, l->begin, strlen(l->begin)) != 0)
        return 0;
    snprintf(l->path, sizeof l->path, "%s", info->dlpi_name);
    return 1;
}

/* Releases of oneDNN with what is known of them; measured by shared tests of convolutions against a plain loop. */
static const struct {
    int major, minor; /* minor -1: all of them */
    int state;
    const char *what, *advice;
} known_dnnl[] = {
    {3, 7, NOTE, "3.7.2 computes wrong convolutions where the processor tells no cache sizes, as in virtual machines",
     "use oneDNN 2.6 or 3.13, unless device cpu opens: it tests itself and refuses then"},
    {3, 0, OK, "", ""},
    {3, 1, OK, "", ""},
    {3, -1, NOTE, "releases since 3.2 have no Winograd convolutions for x86",
     "the backend has its own where the processor has AVX2; without, 2.6 is faster"},
};

/* The backend that uses it has been loaded. The struct begins so in every release. */
static void look_at_dnnl(doctor *d)
{
    typedef struct dnnl_head {
        int major, minor, patch;
    } dnnl_head;
    loaded l = {.begin = "libdnnl.so"};
    if (!dl_iterate_phdr(find_loaded, &l))
        return;
    void *library = dlopen(l.path, RTLD_LAZY | RTLD_NOLOAD), *symbol = library ? dlsym(library, "dnnl_version") : NULL;
    const dnnl_head *(*version)(void);
    char found[4600];
    if (symbol) {
        memcpy(&version, &symbol, sizeof version);
        const dnnl_head *v = version();
        int state = OK;
        const char *what = "", *advice = "";
        for (size_t i = 0; i < sizeof known_dnnl / sizeof known_dnnl[0]; i++) {
            if (known_dnnl[i].major == v->major && (known_dnnl[i].minor < 0 || known_dnnl[i].minor == v->minor)) {
                state = known_dnnl[i].state;
                what = known_dnnl[i].what;
                advice = known_dnnl[i].advice;
                break;
            }
        }
        snprintf(found, sizeof found, "oneDNN %d.%d.%d (%s)%s%s", v->major, v->minor, v->patch, l.path, *what ? ": " : "", what);
        say(d, state, "libraries/onednn", found, advice);
    }
    if (library)
        dlclose(library);
}

/* ---- plugins ---- */
static void count_plugin(void *context, uint32_t kind, const char *name, const char *path, const sd_plugin *plugin, const sodet_err *err)
{
    doctor *d = context;
    (void)path;
    char title[200];
    d->plugins++;
    if (!plugin) {
        d->refused++;
        snprintf(title, sizeof title, "plugin %s/%s", sd_kind_name(kind), name);
        say(d, BAD, title, err->text, "build it again against this sodet, or remove the file");
    } else if (strcmp(sd_kind_name(kind), "backend") == 0 && d->n_backends < 16) {
        snprintf(d->backends[d->n_backends++], sizeof d->backends[0], "%.60s", name);
    }
}

static void look_at_plugins(doctor *d)
{
    char found[4600] = "";
    sd_plugin_each(0, count_plugin, d);
    for (const char *const *f = sd_plugin_folders(); *f; f++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s%s", used ? ":" : "", *f);
    }
    char *folders = sd_strdup(found);
    snprintf(found, sizeof found, "%" PRIu64 " found, %" PRIu64 " refused, in %.4000s", d->plugins, d->refused, folders ? folders : "");
    sd_free(folders);
    bool none = d->plugins == d->refused;
    say(d, none ? BAD : OK, "plugins", found,
        none ? "install sodet's plugins, or name their folder: --plugin-dir DIR, SODET_PLUGIN_PATH" : "");
}

/* Of a backend that decodes JPEGs if a library is there for it. */
static void look_at_decoder(doctor *d, const char *backend, sd_device_pool *pool)
{
    char title[100];
    sodet_err err = SODET_ERR_INIT;
    if (!sd_device_pool_replica(pool, 0)->ops->decode)
        return;
    snprintf(title, sizeof title, "device %.60s/jpeg", backend);
    if (sd_send_ready(pool, true, &err) == SODET_OK)
        say(d, OK, title, "decodes JPEGs: [data] decode = device with pixels = device", "");
    else
        say(d, NOTE, title, err.text, "nothing, unless a run is to decode JPEGs on the device");
}

/* Opening a device is what finds the faults of its library: the backend cpu tests itself then. */
static void look_at_devices(doctor *d)
{
    for (uint32_t i = 0; i < d->n_backends; i++) {
        char text[100], title[100], found[700];
        sodet_err err = SODET_ERR_INIT;
        sd_config *cfg = NULL;
        sd_device_pool *pool = NULL;
        snprintf(text, sizeof text, "run.devices=%s", d->backends[i]);
        snprintf(title, sizeof title, "device %s", d->backends[i]);
        const sd_override only = {text, NULL};
        sodet_status s = sd_config_open(NULL, &only, 1, &cfg, &err);
        if (s == SODET_OK)
            s = sd_device_pool_open(cfg, &pool, &err);
        if (s == SODET_OK)
            snprintf(found, sizeof found, "opens: %s, %u threads", sd_device_pool_replica(pool, 0)->name, sd_device_pool_threads(pool));
        else
            snprintf(found, sizeof found, "%s", err.text);
        /* cpu and ref run everywhere; what another backend needs may just not be in this machine. */
        const bool everywhere = strcmp(d->backends[i], "cpu") == 0 || strcmp(d->backends[i], "ref") == 0;
        say(d,
            s == SODET_OK ? OK
            : everywhere  ? BAD
                          : NOTE,
            title, found, s == SODET_OK ? "" : "use another of the devices: run.devices=NAME");
        if (s == SODET_OK)
            look_at_decoder(d, d->backends[i], pool);
        sd_device_pool_close(pool);
        sd_config_close(cfg);
    }
}

static sodet_status run(sd_cli *cli, sodet_err *err)
{
    doctor d = {.json = cli->json};
    sd_build_info b;
    sd_build_info_get(&b);
    cli->started = true;
    if (d.json)
        sd_text_printf(&d.out, "{\"version\": \"%s\", \"checks\": [", b.version);
    look_at_processor(&d, &b);
    look_at_processors(&d);
    look_at_memory(&d);
    look_at_pages(&d);
    look_at_plugins(&d);
    say(&d, OK, "libraries", b.libraries, "");
    look_at_dnnl(&d);
    look_at_devices(&d);
    look_at_limits(&d);
    look_at_disk(&d);
    if (d.json)
        sd_text_printf(&d.out, "\n], \"notes\": %" PRIu64 ", \"bad\": %" PRIu64 "}\n", d.noted, d.bad);
    sodet_status s = sd_cli_say(&d.out, err);
    if (s == SODET_OK && d.bad)
        s = SODET_FAIL(err, SODET_E_INVALID, "%" PRIu64 " of %" PRIu64 " checks are bad", d.bad, d.n);
    return s;
}

const sd_command sd_cmd_doctor;
const sd_command sd_cmd_doctor = {
    .name = "doctor",
    .synopsis = "[--json]",
    .summary = "what this machine offers, and what to do where something is in the way",
    .help = "Looks at processor, memory, huge pages, plugins, libraries with known faults, every device by opening it (cpu tests itself "
            "then), limits\n"
            "and the working folder's disk. ok: as it should be; note: works, but could be better; bad: a run will fail (exit code 1). "
            "Lines with ->\n"
            "say what to do.\n"
            "\n"
            "--json: {\"version\", \"checks\": [{\"name\", \"state\": \"ok\" | \"note\" | \"bad\", \"found\", \"advice\"}], \"notes\", "
            "\"bad\"}",
    .takes = SD_TAKES_JSON,
    .run = run,
};
