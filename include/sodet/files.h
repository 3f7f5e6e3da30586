/* sodet/files.h: what a data set in a plain-text layout needs beside sodet/data.h: the lines of a file, strict numbers, the files of a
 * folder, and the size of a picture by its header.
 *
 * Threads: a sodet_lines belongs to one thread while its lines are written; everything else may be called from any. */
#ifndef SODET_FILES_H
#define SODET_FILES_H

#include "sodet/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lines of text, or names of files: freed by sodet_lines_free, which accepts NULL. Line i stands in line i + 1 of the file. */
typedef struct sodet_lines sodet_lines;
/* A UTF-8 byte order mark is left out; lines end with LF or CR LF; blanks and tabs at both ends are cut; empty lines stay, so that numbers of
 * lines are right. A NUL byte is an error: such a file is no text. */
SODET_EXPORT sodet_status sodet_lines_read(const char *path, sodet_lines **out, sodet_err *err);
/* The pictures (ending = NULL), or the files of that ending (".txt", case apart), in the folder and below, as paths relative to it in the order
 * of their bytes. Names that begin with a dot are left out, links are followed to files but not to folders. A folder without any gives 0 lines;
 * one that is not there is an error. */
SODET_EXPORT sodet_status sodet_lines_of_folder(const char *folder, const char *ending, sodet_lines **out, sodet_err *err);
SODET_EXPORT uint64_t sodet_lines_count(const sodet_lines *lines);
SODET_EXPORT char *sodet_lines_at(const sodet_lines *lines, uint64_t i); /* may be written and cut, not lengthened */
SODET_EXPORT void sodet_lines_free(sodet_lines *lines);

/* 1 if the whole text is a finite decimal number; no blanks, hexadecimal, inf or nan. */
SODET_EXPORT uint32_t sodet_parse_number(const char *text, double *out);
/* 1 if the text is UTF-8, as names of classes must be: they are written into files for others. */
SODET_EXPORT uint32_t sodet_is_utf8(const char *text);
SODET_EXPORT uint32_t sodet_path_exists(const char *path);
SODET_EXPORT uint32_t sodet_is_folder(const char *path);
/* By its ending, case apart: .jpg .jpeg .png .bmp .ppm .pgm .tga */
SODET_EXPORT uint32_t sodet_is_picture(const char *name);

/* Width and height as stored, and EXIF's orientation (1..8), from the picture's header: no pixel is decoded, so that a picture cut off behind
 * its header passes. */
SODET_EXPORT sodet_status sodet_picture_size(const char *path, uint32_t *width, uint32_t *height, uint32_t *orientation, sodet_err *err);
/* 1 if the run will turn a picture of this orientation by a quarter, so that width and height change places ([data] ignore_orientation
 * forbids it). Boxes are in pixels of the picture as it then stands. */
SODET_EXPORT uint32_t sodet_sample_turns(const sodet_sample *s, uint32_t orientation);

#ifdef __cplusplus
}
#endif
#endif
