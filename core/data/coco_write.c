#include "core/data/coco_write.h"

#include "core/base/json.h"

static int64_t category(const sd_classes *classes, uint32_t label)
{
    for (uint32_t c = 1; c < classes->n; c++) {
        if (classes->category_id[c] <= classes->category_id[c - 1])
            return (int64_t)label + 1;
    }
    return classes->category_id[label];
}

void sd_coco_add_image(sd_coco_text *t, const char *file_name, uint32_t width, uint32_t height, const char *source)
{
    sd_text *out = &t->images;
    sd_text_printf(out, "%s{\"id\": %llu, \"file_name\": ", t->n_images ? ",\n" : "", (unsigned long long)(t->n_images + 1));
    sd_json_write_string(out, file_name);
    sd_text_printf(out, ", \"width\": %u, \"height\": %u", width, height);
    if (source) {
        sd_text_printf(out, ", \"source\": ");
        sd_json_write_string(out, source);
    }
    sd_text_printf(out, "}");
    t->n_images++;
}

void sd_coco_add_object(sd_coco_text *t, const sodet_object *o, const char *const bbox[4], const sd_classes *classes)
{
    sd_text *out = &t->annotations;
    double own = ((double)o->box.x2 - (double)o->box.x1) * ((double)o->box.y2 - (double)o->box.y1);
    sd_text_printf(out, "%s{\"id\": %llu, \"image_id\": %llu, \"category_id\": %lld, \"bbox\": [%s, %s, %s, %s], \"area\": ",
                   t->n_objects ? ",\n" : "", (unsigned long long)(t->n_objects + 1), (unsigned long long)t->n_images,
                   (long long)category(classes, (uint32_t)o->label), bbox[0], bbox[1], bbox[2], bbox[3]);
    sd_json_write_double(out, o->area > 0 ? o->area : own);
    sd_text_printf(out, ", \"iscrowd\": %d, \"ignore\": %d", (o->flags & SODET_BOX_CROWD) != 0, (o->flags & SODET_BOX_DIFFICULT) != 0);
    if (o->flags & SODET_BOX_DIFFICULT)
        sd_text_printf(out, ", \"difficult\": 1");
    if (o->flags & SODET_BOX_TRUNCATED)
        sd_text_printf(out, ", \"truncated\": 1");
    sd_text_printf(out, "}");
    t->n_objects++;
}

void sd_coco_whole(const sd_coco_text *t, const sd_classes *classes, sd_text *out)
{
    sd_text_printf(out, "{\"images\": [\n");
    sd_text_join(out, &t->images);
    sd_text_printf(out, "\n],\n\"annotations\": [\n");
    sd_text_join(out, &t->annotations);
    sd_text_printf(out, "\n],\n\"categories\": [");
    for (uint32_t c = 0; c < classes->n; c++) {
        sd_text_printf(out, "%s{\"id\": %lld, \"name\": ", c ? ", " : "", (long long)category(classes, c));
        sd_json_write_string(out, classes->names[c]);
        sd_text_printf(out, "}");
    }
    sd_text_printf(out, "]}\n");
}

sodet_status sd_coco_write(sd_coco_text *t, const char *path, const sd_classes *classes, sodet_err *err)
{
    sd_text text = {0};
    sd_coco_whole(t, classes, &text);
    sodet_status status =
        text.failed ? SODET_FAIL(err, SODET_E_MEMORY, "%s: no memory", path) : sd_file_write_atomic(path, text.text, text.length, err);
    sd_text_free(&text);
    return status;
}

void sd_coco_text_free(sd_coco_text *t)
{
    sd_text_free(&t->images);
    sd_text_free(&t->annotations);
    *t = (sd_coco_text){0};
}
