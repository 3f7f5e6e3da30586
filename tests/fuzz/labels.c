/* The text files of the data sets yolo, csv and voc. The first byte says which file of a small set the rest is. */
#include "plugins/folder.h"

#include "fuzz/fuzz.h"

static const struct {
    const char *name, *set; /* the file; the section that reads it */
} kinds[] = {
    {"labels/p.txt", "plugin = yolo\nroot = @\npolygons = yes\n"},
    {"data.yaml", "plugin = yolo\nroot = @\n"},
    {"some.txt", "plugin = yolo\nroot = @\nsplit = some\n"},
    {"rows.csv", "plugin = csv\nfile = @/rows.csv\nneed_pictures = no\n"},
    {"heads.csv", "plugin = csv\nfile = @/heads.csv\nneed_pictures = no\ncolumns = filename, class, xmin, ymin, xmax, ymax\n"},
    {"list.txt", "plugin = voc\nroot = @\nsplit = @/list.txt\nneed_pictures = no\n"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };
static const char *const whole[KINDS] = {"0 0.5 0.5 0.5 0.5\n",
                                         "names: [a, b]\n",
                                         "images/p.png\n",
                                         "images/p.png,1,1,4,4,a\n",
                                         "filename,class,xmin,ymin,xmax,ymax\nimages/p.png,a,1,1,4,4\n",
                                         "p\n"};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static bool made;
    const char *folder = fuzz_folder();
    if (!made) {
        write_picture(folder, "images/p.png", 8, 8);
        write_file(folder, "labels/p.txt", whole[0]);
        write_file(folder, "Annotations/p.xml", "<annotation><size><width>8</width><height>8</height></size></annotation>");
        for (uint32_t k = 1; k < KINDS; k++)
            write_file(folder, kinds[k].name, whole[k]);
        made = true;
    }
    if (n == 0)
        return 0;
    uint32_t kind = bytes[0] % KINDS;
    set s;
    fuzz_write(folder, kinds[kind].name, bytes + 1, n - 1);
    err = (sodet_err)SODET_ERR_INIT;
    sodet_status status = open_set(&s, folder, kinds[kind].set, bytes[0] / KINDS % 2);
    fuzz_said(status, err.text);
    if (status == SODET_OK)
        for (uint64_t i = 0; i < sd_dataset_size(s.d); i++)
            fuzz_said(sd_dataset_describe(s.d, i, s.s, &err), err.text);
    close_set(&s);
    fuzz_write(folder, kinds[kind].name, (const uint8_t *)whole[kind], strlen(whole[kind]));
    return 0;
}
