#include "core/store/pickle.h"

#include <stdlib.h>
#include <string.h>

typedef struct machine {
    sd_pool *pool;
    const char *name;
    const unsigned char *bytes;
    uint64_t at, n;
    sd_pickle **stack, **memo;
    uint64_t depth, stack_room, n_memo, memo_room;
    uint64_t *marks, n_marks, marks_room;
    sodet_err *err;
    sodet_status status;
} machine;

static void give_up(machine *m, sodet_status status, const char *what)
{
    if (m->status == SODET_OK)
        m->status = SODET_FAIL(m->err, status, "%s: its pickle at byte %llu: %s", m->name, (unsigned long long)m->at, what);
}

static sd_pickle *no_memory(machine *m)
{
    give_up(m, SODET_E_MEMORY, "out of memory");
    return NULL;
}

static sd_pickle *value(machine *m, uint32_t kind)
{
    sd_pickle *v = sd_pool_alloc(m->pool, sizeof *v);
    if (!v)
        return no_memory(m);
    *v = (sd_pickle){.kind = kind, .text = ""};
    return v;
}

/* The next n bytes; NULL: there are fewer. */
static const unsigned char *take(machine *m, uint64_t n)
{
    if (n > m->n - m->at) {
        m->at = m->n;
        give_up(m, SODET_E_INVALID, "it is cut off");
        return NULL;
    }
    m->at += n;
    return m->bytes + m->at - n;
}

static uint64_t number(machine *m, uint32_t n)
{
    const unsigned char *p = take(m, n);
    uint64_t v = 0;
    for (uint32_t i = n; p && i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static void push(machine *m, sd_pickle *v)
{
    if (!v || m->status != SODET_OK)
        return;
    if (sd_grow(&m->stack, &m->stack_room, m->depth + 1, sizeof *m->stack, m->err) != SODET_OK)
        no_memory(m);
    else
        m->stack[m->depth++] = v;
}

static uint64_t floor_of(const machine *m)
{
    return m->n_marks ? m->marks[m->n_marks - 1] : 0;
}

/* Never NULL: after an error it is a value of no meaning. */
static sd_pickle *pop(machine *m)
{
    static sd_pickle nothing = {.kind = SD_PICKLE_NONE, .text = ""};
    if (m->status == SODET_OK && m->depth > floor_of(m))
        return m->stack[--m->depth];
    give_up(m, SODET_E_INVALID, "an operation has too few operands");
    return &nothing;
}

static sd_pickle *top(machine *m)
{
    sd_pickle *v = pop(m);
    m->depth += m->status == SODET_OK;
    return v;
}

static void add(machine *m, sd_pickle *to, sd_pickle *const *items, uint64_t n)
{
    if (to->n + n > to->room) {
        uint64_t room = to->room < 4 ? 4 : to->room * 2;
        room = room < to->n + n ? to->n + n : room;
        sd_pickle **fresh = sd_pool_alloc(m->pool, room * sizeof *fresh);
        if (!fresh) {
            no_memory(m);
            return;
        }
        if (to->n)
            memcpy(fresh, to->items, to->n * sizeof *fresh);
        to->items = fresh;
        to->room = room;
    }
    if (n)
        memcpy(to->items + to->n, items, n * sizeof *items);
    to->n += n;
}

/* Takes what lies above the last mark; the pointer is good until the next push. */
static sd_pickle **above_mark(machine *m, uint64_t *n)
{
    *n = 0;
    if (m->n_marks == 0) {
        give_up(m, SODET_E_INVALID, "a mark is missing");
        return m->stack;
    }
    uint64_t from = m->marks[--m->n_marks];
    *n = m->depth - from;
    m->depth = from;
    return from ? m->stack + from : m->stack; /* which may be NULL yet */
}

static void put_text(machine *m, const unsigned char *p, uint64_t n, uint32_t kind)
{
    sd_pickle *v = p ? value(m, kind) : NULL;
    char *text = v ? sd_pool_alloc(m->pool, n + 1) : NULL;
    if (!p || !v)
        return;
    if (!text) {
        no_memory(m);
        return;
    }
    memcpy(text, p, n);
    text[n] = 0;
    v->text = text;
    v->n = n;
    push(m, v);
}

static void put_int(machine *m, int64_t i)
{
    sd_pickle *v = value(m, SD_PICKLE_INT);
    if (v)
        v->number = i;
    push(m, v);
}

static void put_long(machine *m, uint64_t n)
{
    const unsigned char *p = take(m, n);
    if (!p)
        return;
    if (n > 8) {
        push(m, value(m, SD_PICKLE_OTHER));
        return;
    }
    uint64_t v = n && p[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    put_int(m, (int64_t)v);
}

static void put_list(machine *m, uint64_t n)
{
    sd_pickle *v = value(m, SD_PICKLE_LIST), *items[3];
    for (uint64_t i = n; i-- > 0;)
        items[i] = pop(m);
    if (v)
        add(m, v, items, n);
    push(m, v);
}

static void put_above_mark(machine *m, uint32_t kind)
{
    uint64_t n;
    sd_pickle *v = value(m, kind), **items = above_mark(m, &n);
    if (v)
        add(m, v, items, n);
    push(m, v);
}

static void append_above_mark(machine *m, uint32_t kind)
{
    uint64_t n;
    sd_pickle **items = above_mark(m, &n), *to = top(m);
    if (kind == SD_PICKLE_DICT && n % 2)
        give_up(m, SODET_E_INVALID, "a key without a value");
    else if (to->kind == kind) /* what has other methods is not looked at */
        add(m, to, items, n);
}

/* "module name": two lines, or two texts. */
static void put_global(machine *m, const char *module, uint64_t n_module, const char *name, uint64_t n_name)
{
    sd_pickle *v = value(m, SD_PICKLE_GLOBAL);
    char *text = v ? sd_pool_alloc(m->pool, n_module + n_name + 2) : NULL;
    if (!v)
        return;
    if (!text) {
        no_memory(m);
        return;
    }
    memcpy(text, module, n_module);
    text[n_module] = ' ';
    memcpy(text + n_module + 1, name, n_name);
    text[n_module + 1 + n_name] = 0;
    v->text = text;
    v->n = n_module + n_name + 1;
    push(m, v);
}

static const char *line(machine *m, uint64_t *n)
{
    const unsigned char *from = m->bytes + m->at, *end = memchr(from, '\n', m->n - m->at);
    *n = end ? (uint64_t)(end - from) : 0;
    return take(m, end ? *n + 1 : m->n - m->at + 1) ? (const char *)from : "";
}

static void call(machine *m)
{
    sd_pickle *arguments = pop(m), *what = pop(m);
    bool dict = sd_pickle_is(what, SD_PICKLE_GLOBAL, "collections OrderedDict");
    sd_pickle *v = value(m, dict ? SD_PICKLE_DICT : SD_PICKLE_CALL), *items[2] = {what, arguments};
    if (v && !dict)
        add(m, v, items, 2);
    push(m, v);
}

static void remember(machine *m, uint64_t index)
{
    if (index > m->at) { /* Python counts; so more than there are bytes is damage, not memory to be taken */
        give_up(m, SODET_E_INVALID, "a place of its memory is out of range");
        return;
    }
    sd_pickle *v = top(m);
    if (m->status != SODET_OK)
        return;
    if (sd_grow(&m->memo, &m->memo_room, index + 1, sizeof *m->memo, m->err) != SODET_OK) {
        no_memory(m);
        return;
    }
    m->memo[index] = v;
    m->n_memo = index + 1 > m->n_memo ? index + 1 : m->n_memo;
}

static void recall(machine *m, uint64_t index)
{
    if (m->status != SODET_OK)
        return;
    if (index < m->n_memo && m->memo[index])
        push(m, m->memo[index]);
    else
        give_up(m, SODET_E_INVALID, "a place of its memory is empty");
}

static void mark(machine *m)
{
    if (sd_grow(&m->marks, &m->marks_room, m->n_marks + 1, sizeof *m->marks, m->err) != SODET_OK)
        no_memory(m);
    else
        m->marks[m->n_marks++] = m->depth;
}

/* One operation (Python's Lib/pickletools.py describes them); false: the pickle has ended. */
static bool step(machine *m)
{
    const unsigned char *code = take(m, 1);
    sd_pickle *pair[2];
    uint64_t n, n_name;
    const char *module, *name;
    switch (code ? *code : '.') {
    case '.':
        return false;
    case 0x80:
        take(m, 1);
        break;
    case 0x95:
        take(m, 8);
        break;
    case '(':
        mark(m);
        break;
    case '0':
        pop(m);
        break;
    case '1':
        above_mark(m, &n);
        break;
    case '2':
        push(m, top(m));
        break;
    case 'N':
        push(m, value(m, SD_PICKLE_NONE));
        break;
    case 0x88:
    case 0x89:
        put_int(m, *code == 0x88);
        break;
    case 'J':
        put_int(m, (int32_t)number(m, 4));
        break;
    case 'K':
        put_int(m, (int64_t)number(m, 1));
        break;
    case 'M':
        put_int(m, (int64_t)number(m, 2));
        break;
    case 0x8a:
        put_long(m, number(m, 1));
        break;
    case 0x8b:
        put_long(m, number(m, 4));
        break;
    case 'G':
        take(m, 8);
        push(m, value(m, SD_PICKLE_OTHER));
        break;
    case 'X':
    case 'T':
    case 'B':
        n = number(m, 4);
        put_text(m, take(m, n), n, SD_PICKLE_TEXT);
        break;
    case 0x8c:
    case 'U':
    case 'C':
        n = number(m, 1);
        put_text(m, take(m, n), n, SD_PICKLE_TEXT);
        break;
    case 0x8d:
    case 0x8e:
        n = number(m, 8);
        put_text(m, take(m, n), n, SD_PICKLE_TEXT);
        break;
    case ']':
    case ')':
    case 0x8f:
        push(m, value(m, SD_PICKLE_LIST));
        break;
    case '}':
        push(m, value(m, SD_PICKLE_DICT));
        break;
    case 'a':
        pair[0] = pop(m);
        if (top(m)->kind == SD_PICKLE_LIST)
            add(m, top(m), pair, 1);
        break;
    case 'e':
    case 0x90:
        append_above_mark(m, SD_PICKLE_LIST);
        break;
    case 's':
        pair[1] = pop(m);
        pair[0] = pop(m);
        if (top(m)->kind == SD_PICKLE_DICT)
            add(m, top(m), pair, 2);
        break;
    case 'u':
        append_above_mark(m, SD_PICKLE_DICT);
        break;
    case 't':
    case 'l':
    case 0x91:
        put_above_mark(m, SD_PICKLE_LIST);
        break;
    case 'd':
        put_above_mark(m, SD_PICKLE_DICT);
        break;
    case 0x85:
    case 0x86:
    case 0x87:
        put_list(m, *code - 0x84u);
        break;
    case 'c':
        module = line(m, &n);
        name = line(m, &n_name);
        if (m->status == SODET_OK)
            put_global(m, module, n, name, n_name);
        break;
    case 0x93:
        pair[1] = pop(m);
        pair[0] = pop(m);
        if (pair[0]->kind != SD_PICKLE_TEXT || pair[1]->kind != SD_PICKLE_TEXT)
            give_up(m, SODET_E_INVALID, "a name that is no text");
        else
            put_global(m, pair[0]->text, pair[0]->n, pair[1]->text, pair[1]->n);
        break;
    case 'R':
    case 0x81:
        call(m);
        break;
    case 0x92: /* keyword arguments: they do not matter */
        pop(m);
        call(m);
        break;
    case 'b':
        pop(m);
        break;
    case 'Q': {
        sd_pickle *id = pop(m), *v = value(m, SD_PICKLE_OUTER);
        if (v)
            add(m, v, &id, 1);
        push(m, v);
        break;
    }
    case 'h':
        recall(m, number(m, 1));
        break;
    case 'j':
        recall(m, number(m, 4));
        break;
    case 'q':
        remember(m, number(m, 1));
        break;
    case 'r':
        remember(m, number(m, 4));
        break;
    case 0x94:
        remember(m, m->n_memo);
        break;
    default:
        give_up(m, SODET_E_INVALID, "an operation that PyTorch does not write");
    }
    return m->status == SODET_OK;
}

sodet_status sd_pickle_read(sd_pool *pool, const char *name, const unsigned char *bytes, uint64_t n, uint64_t *used, sd_pickle **out,
                            sodet_err *err)
{
    machine m = {.pool = pool, .name = name, .bytes = bytes, .n = n, .err = err};
    while (step(&m))
        ;
    *out = top(&m);
    *used = m.at;
    sd_free(m.stack);
    sd_free(m.memo);
    sd_free(m.marks);
    return m.status;
}

bool sd_pickle_is(const sd_pickle *p, uint32_t kind, const char *text)
{
    return p->kind == kind && strcmp(p->text, text) == 0;
}
