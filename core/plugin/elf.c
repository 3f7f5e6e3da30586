#include "core/plugin/elf.h"

#include <elf.h>
#include <string.h>

enum { LARGEST = 512 << 20 };

#if UINTPTR_MAX == UINT64_MAX
typedef Elf64_Ehdr ehdr;
typedef Elf64_Shdr shdr;
typedef Elf64_Phdr phdr;
typedef Elf64_Sym sym;
enum { OWN_CLASS = ELFCLASS64, OWN_BITS = 64 };
#else
typedef Elf32_Ehdr ehdr;
typedef Elf32_Shdr shdr;
typedef Elf32_Phdr phdr;
typedef Elf32_Sym sym;
enum { OWN_CLASS = ELFCLASS32, OWN_BITS = 32 };
#endif

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { OWN_MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { OWN_MACHINE = EM_PPC64 };
#else
enum { OWN_MACHINE = EM_NONE }; /* not compared */
#endif

typedef struct image {
    const char *path, *bytes;
    uint64_t n;
    sodet_err *err;
} image;

/* count elements of `size` bytes at `offset` lie in the file. */
static bool inside(const image *f, uint64_t offset, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    return !__builtin_mul_overflow(count, size, &bytes) && offset <= f->n && bytes <= f->n - offset;
}

static sodet_status damaged(const image *f, const char *what)
{
    return SODET_FAIL(f->err, SODET_E_INVALID, "%s: a damaged shared object (%s lies outside the file); build it again", f->path, what);
}

static sodet_status check_header(const image *f, ehdr *h)
{
    if (f->n < EI_NIDENT || memcmp(f->bytes, ELFMAG, SELFMAG) != 0)
        return SODET_FAIL(f->err, SODET_E_INVALID, "%s: not a shared object (no ELF file)%s", f->path,
                          f->n == 0 ? "; it is empty" : "; a plugin is built by a C compiler with -shared");
    if (f->bytes[EI_CLASS] != OWN_CLASS)
        return SODET_FAIL(f->err, SODET_E_INVALID, "%s: built for machines of %d bits, this sodet has %d; build it for this machine",
                          f->path, f->bytes[EI_CLASS] == ELFCLASS32 ? 32 : 64, OWN_BITS);
    if (f->n < sizeof *h)
        return damaged(f, "its header");
    memcpy(h, f->bytes, sizeof *h);
    if (OWN_MACHINE != EM_NONE && h->e_machine != OWN_MACHINE)
        return SODET_FAIL(f->err, SODET_E_INVALID, "%s: built for another processor (ELF machine %u, here %u); build it for this machine",
                          f->path, (unsigned)h->e_machine, (unsigned)OWN_MACHINE);
    if (h->e_type != ET_DYN)
        return SODET_FAIL(f->err, SODET_E_INVALID, "%s: an object file or program, not a shared object; link it with -shared", f->path);
    return SODET_OK;
}

/* The bytes at a virtual address, through the loadable segments. */
static sodet_status read_address(const image *f, const ehdr *h, uint64_t address, void *out, size_t n)
{
    if (h->e_phentsize != sizeof(phdr) || !inside(f, h->e_phoff, h->e_phnum, sizeof(phdr)))
        return damaged(f, "its segment table");
    for (uint64_t i = 0; i < h->e_phnum; i++) {
        phdr p;
        memcpy(&p, f->bytes + h->e_phoff + i * sizeof p, sizeof p);
        if (p.p_type != PT_LOAD || address < p.p_vaddr || address - p.p_vaddr > p.p_filesz || n > p.p_filesz - (address - p.p_vaddr))
            continue;
        uint64_t at = p.p_offset + (address - p.p_vaddr);
        if (!inside(f, at, 1, n))
            return damaged(f, "a segment");
        memcpy(out, f->bytes + at, n);
        return SODET_OK;
    }
    /* Zero-initialised data has no bytes in the file. */
    memset(out, 0, n);
    return SODET_OK;
}

static sodet_status find(const image *f, const char *symbol, void *out, size_t n, uint64_t *size)
{
    ehdr h;
    sodet_status s = check_header(f, &h);
    if (s != SODET_OK)
        return s;
    if (h.e_shentsize != sizeof(shdr) || h.e_shnum == 0 || !inside(f, h.e_shoff, h.e_shnum, sizeof(shdr)))
        return damaged(f, "its section table");
    size_t length = strlen(symbol) + 1;
    for (uint64_t i = 0; i < h.e_shnum; i++) {
        shdr table, names;
        memcpy(&table, f->bytes + h.e_shoff + i * sizeof table, sizeof table);
        if (table.sh_type != SHT_DYNSYM)
            continue;
        if (table.sh_link >= h.e_shnum || table.sh_entsize != sizeof(sym) || !inside(f, table.sh_offset, table.sh_size, 1))
            return damaged(f, "its symbol table");
        memcpy(&names, f->bytes + h.e_shoff + table.sh_link * sizeof names, sizeof names);
        if (!inside(f, names.sh_offset, names.sh_size, 1))
            return damaged(f, "its string table");
        for (uint64_t k = 0; k < table.sh_size / sizeof(sym); k++) {
            sym y;
            memcpy(&y, f->bytes + table.sh_offset + k * sizeof y, sizeof y);
            if (y.st_shndx == SHN_UNDEF || y.st_name > names.sh_size || length > names.sh_size - y.st_name ||
                memcmp(f->bytes + names.sh_offset + y.st_name, symbol, length) != 0)
                continue;
            *size = y.st_size;
            return read_address(f, &h, y.st_value, out, n);
        }
    }
    return SODET_FAIL(f->err, SODET_E_INVALID,
                      "%s: exports no %s, so it is no sodet plugin; SODET_PLUGIN(...) of sodet/plugin.h defines it", f->path, symbol);
}

sodet_status sd_elf_read_symbol(const char *path, const char *symbol, void *out, size_t n, uint64_t *size, sodet_err *err)
{
    char *bytes;
    image f = {.path = path, .err = err};
    *size = 0;
    sodet_status s = sd_file_read(path, LARGEST, &bytes, &f.n, err);
    if (s != SODET_OK)
        return s;
    f.bytes = bytes;
    s = find(&f, symbol, out, n, size);
    sd_free(bytes);
    return s;
}
