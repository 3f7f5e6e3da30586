/* device/forms.h: what the plans of all backends keep track of: values in forms, and where these lie.
 *
 * A backend computes maps in forms of its own (blocked channels, channels last, 16 bits) beside form 0, the plain one. The node that makes a
 * value decides its home form; whoever wants another one gets it by a conversion, made once and kept for later nodes. Values lie in
 * buffers, which the core places (sodet/backend.h), or in arenas; a buffer is taken over where its value dies.
 *
 * In prepare(): open; sd_forms_node for every node; the backend sets `wanted` and `home` and its nodes' forms; sd_forms_use for what every
 * node reads and makes, then sd_forms_live; then over the nodes again in their order, with read, write and written. Functions that return a
 * place return 0 after an error. err is never NULL. */
#ifndef SD_DEVICE_FORMS_H
#define SD_DEVICE_FORMS_H

#include "core/base/base.h"
#include "sodet/backend.h"

enum { SD_FORM_PLAIN = 0, SD_MOST_FORMS = 4 };

/* ---- places: where something lies; an index into a table that bind resolves to addresses ---- */
typedef uint32_t sd_place; /* 0: nowhere */
enum { SD_IN_BUFFER = 1, SD_IN_PARAM, SD_IN_FROZEN, SD_IN_GRAD, SD_IN_STATE, SD_IN_HOST /* constant data of the graph */ };
typedef struct sd_place_info {
    uint32_t in, index; /* index: of the buffer, or the state's slot */
    uint64_t offset;    /* bytes */
    void *address;      /* SD_IN_HOST: from the start; others: from sd_forms_resolve on */
} sd_place_info;

typedef struct sd_form_buffer {
    uint32_t value, lifetime, first, last; /* as in sodet_plan_buffer */
    uint32_t busy;                         /* the last node that reads any value in it; UINT32_MAX: it is never free */
    uint64_t bytes;
    const void *constant; /* data that belong there before the first run, or NULL */
} sd_form_buffer;

typedef struct sd_form_value {
    uint32_t home;
    uint32_t producer;            /* node; UINT32_MAX: none */
    bool fixed;                   /* depends on parameters and constants alone */
    uint32_t wanted;              /* the backend's: the form that its readers compute fastest on */
    uint32_t last[SD_MOST_FORMS]; /* the last node that uses it in this form (0 if none); UINT32_MAX: an output */
    sd_place place[SD_MOST_FORMS];
} sd_form_value;

typedef struct sd_form_node { /* a node of the backend's, as far as forms go */
    const sodet_node *node;
    uint32_t index;
    uint8_t *form_in, *form_out;
    void *self; /* the backend's, for its functions */
} sd_form_node;

typedef struct sd_form_ops {
    const char *device;     /* for messages: "the CPU" */
    uint32_t forms;         /* at most SD_MOST_FORMS */
    uint64_t align;         /* buffers are multiples of so many bytes */
    bool constants_on_host; /* the device reads them where the graph has them */
    uint64_t (*bytes)(const void *plan, const sodet_shape *shape, uint32_t form);
    /* Each adds steps to the plan. add: `from` in from_form is added to `to`. */
    sodet_status (*convert)(void *plan, void *self, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to,
                            uint32_t to_form, bool prologue, sodet_err *err);
    sodet_status (*add)(void *plan, void *self, const sodet_shape *shape, sd_place from, uint32_t from_form, sd_place to, uint32_t to_form,
                        sodet_err *err);
    sodet_status (*copy)(void *plan, void *self, sd_place to, sd_place from, uint64_t bytes, sodet_err *err);
    /* The value is about to be used: what must happen before. NULL: nothing. */
    sodet_status (*before)(void *plan, void *self, sodet_value v, sodet_err *err);
} sd_form_ops;

typedef struct sd_forms {
    const sd_form_ops *ops;
    void *plan;
    const sodet_graph *graph;
    uint32_t n_nodes, n_values;
    sd_form_value *value; /* [n_values + 1], by id */
    sd_place_info *place;
    sd_form_buffer *buffer;
    uint64_t n_places, place_capacity, n_buffers, buffer_capacity;
    sd_place prologue_scratch;
    sodet_plan_buffer *out; /* what the core sees */
} sd_forms;

sodet_status sd_forms_open(sd_forms *f, const sd_form_ops *ops, void *plan, const sodet_graph *g, sodet_err *err);
void sd_forms_close(sd_forms *f); /* accepts one that is all zero */
sodet_status sd_forms_out_of_memory(const sd_form_ops *ops, sodet_err *err);

/* ---- who makes and uses what ---- */
void sd_forms_node(sd_forms *f, const sodet_node *node, uint32_t index);
void sd_forms_settle(sd_forms *f,
                     const sd_form_node *n); /* the homes of what it makes: its form_out, or where it is added to, or plain in an arena */
void sd_forms_use(sd_forms *f, sodet_value v, uint32_t form, uint32_t node);
void sd_forms_uses(sd_forms *f, const sd_form_node *n, bool inputs); /* what it makes and, if asked, reads */
sodet_status sd_forms_live(sd_forms *f, sodet_err *err);             /* outputs, and the places of values that no node makes */

/* ---- places and buffers ---- */
sd_place sd_forms_buffer(sd_forms *f, uint32_t value, uint32_t lifetime, uint64_t bytes, uint32_t first, uint32_t last, sodet_err *err);
sd_place sd_forms_temporary(sd_forms *f, const sodet_node *node, uint32_t index, uint64_t bytes, sodet_err *err); /* for this node */
/* Scratch of one step; steps of the prologue share theirs, for they follow each other before node 0. */
sd_place sd_forms_scratch(sd_forms *f, uint32_t node, bool prologue, uint64_t bytes, sodet_err *err);
sd_form_buffer *sd_forms_buffer_of(const sd_forms *f, sd_place place); /* NULL: it lies in an arena */
void sd_forms_until(sd_forms *f, sd_place place, uint32_t node);       /* what lies there is needed until then */
sd_place sd_forms_arena(sd_forms *f, const sodet_value_info *info);    /* 0 also where it lies in none */
/* The value lies where another one does. */
void sd_forms_same(sd_forms *f, sodet_value v, uint32_t form, sd_place place);

/* ---- values ---- */
sd_place sd_forms_in(sd_forms *f, const sd_form_node *n, sodet_value v, const sodet_shape *shape, uint32_t form, sodet_err *err);
sd_place sd_forms_read(sd_forms *f, const sd_form_node *n, uint32_t input, sodet_err *err); /* in form_in; 0 also where it is absent */
bool sd_forms_dies(const sd_forms *f, const sd_form_node *n, uint32_t input);               /* its buffer may be overwritten by this node */
/* Where output `o` is to be written in form_out: over input `over` if that dies here (UINT32_MAX: not). Where the output is added to
 * another value, or its home is another form, this is a temporary that `written` takes over. */
sd_place sd_forms_write(sd_forms *f, const sd_form_node *n, uint32_t o, uint32_t over, sodet_err *err);
sodet_status sd_forms_written(sd_forms *f, const sd_form_node *n, uint32_t o, sd_place where, sodet_err *err);
/* Where value `v`, which a fusion makes in another node's place, is written; over value `over` in over_form if that dies here. */
sd_place sd_forms_write_value(sd_forms *f, uint32_t index, sodet_value v, uint32_t form, sodet_value over, uint32_t over_form,
                              sodet_err *err);
/* Where an output of the plain form that is added to another value is summed up: the base's place, or a copy of it in the output's arena. */
sd_place sd_forms_base(sd_forms *f, const sd_form_node *n, uint32_t o, sodet_err *err);

/* ---- at the end ---- */
sodet_status sd_forms_export(sd_forms *f, sodet_plan *out, sodet_err *err); /* buffers */
void sd_forms_resolve(sd_forms *f, const sodet_binding *b);                 /* addresses of all places */

#endif
