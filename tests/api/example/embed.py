"""A program in Python that finds objects with a checkpoint, by libsodet.so and ctypes alone: sodet/detector.h as classes.

    embed.py libsodet.so best.safetensors pictures ... [--bytes | --rgb] [--threads N]

--bytes hands over the files' contents, --rgb the pixels of binary PPM files, in rows with a gap between them. One detector serves all
threads: ctypes lets go of the interpreter's lock during a call, and the library has its own.
"""
import argparse
import ctypes as c
import sys
import threading


class Err(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("code", c.c_int32), ("line", c.c_int32), ("file", c.c_char * 64), ("text", c.c_char * 500)]


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("threads", c.c_uint32), ("devices", c.c_char_p), ("plugin_folder", c.c_char_p),
                ("overrides", c.POINTER(c.c_char_p)), ("n_overrides", c.c_uint32), ("threshold", c.c_float)]


class Picture(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("name", c.c_char_p), ("path", c.c_char_p), ("bytes", c.c_char_p), ("n_bytes", c.c_size_t),
                ("rgb", c.c_char_p), ("width", c.c_uint32), ("height", c.c_uint32), ("stride", c.c_size_t)]


class Found(c.Structure):
    _fields_ = [("box", c.c_float * 4), ("score", c.c_float), ("label", c.c_int32), ("name", c.c_char_p)]


class Result(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("width", c.c_uint32), ("height", c.c_uint32), ("n", c.c_uint32), ("found", c.POINTER(Found))]


class Detector:
    """open, warm_up, detect, close. Errors are RuntimeError with the library's sentence."""

    def __init__(self, library, checkpoint, threads=0, threshold=0.0, overrides=()):
        self.lib = c.CDLL(library)
        self.lib.sodet_detector_open.argtypes = [c.c_char_p, c.POINTER(Options), c.POINTER(c.c_void_p), c.POINTER(Err)]
        self.lib.sodet_detector_warm_up.argtypes = [c.c_void_p, c.c_uint32, c.c_uint32, c.c_uint32, c.POINTER(Err)]
        self.lib.sodet_detect.argtypes = [c.c_void_p, c.POINTER(Picture), c.POINTER(c.POINTER(Result)), c.POINTER(Err)]
        self.lib.sodet_result_free.argtypes = [c.POINTER(Result)]
        self.lib.sodet_result_free.restype = None
        self.lib.sodet_detector_close.argtypes = [c.c_void_p]
        self.lib.sodet_detector_close.restype = None
        self.lib.sodet_detector_class.argtypes = [c.c_void_p, c.c_uint32]
        self.lib.sodet_detector_class.restype = c.c_char_p
        self.lib.sodet_detector_class_count.argtypes = [c.c_void_p]
        self.lib.sodet_detector_class_count.restype = c.c_uint32
        texts = (c.c_char_p * len(overrides))(*[o.encode() for o in overrides])
        options = Options(struct_size=c.sizeof(Options), threads=threads, threshold=threshold, overrides=texts, n_overrides=len(overrides))
        self.handle = c.c_void_p()
        self._call(self.lib.sodet_detector_open, checkpoint.encode(), options, c.byref(self.handle))

    def _call(self, function, *arguments):
        err = Err(struct_size=c.sizeof(Err))
        if function(*arguments, c.byref(err)) != 0:
            raise RuntimeError(err.text.decode())

    def classes(self):
        return [self.lib.sodet_detector_class(self.handle, i).decode() for i in range(self.lib.sodet_detector_class_count(self.handle))]

    def warm_up(self, width=0, height=0, n=1):
        self._call(self.lib.sodet_detector_warm_up, self.handle, width, height, n)

    def detect(self, **form):
        """path=..., or bytes=..., or rgb=... with width, height and, where rows have a gap, stride. [(name, score, x1, y1, x2, y2)]"""
        if "bytes" in form:
            form["n_bytes"] = len(form["bytes"])
        if "path" in form:
            form["path"] = form["path"].encode()
        if "name" in form:
            form["name"] = form["name"].encode()
        result = c.POINTER(Result)()
        self._call(self.lib.sodet_detect, self.handle, Picture(struct_size=c.sizeof(Picture), **form), c.byref(result))
        r = result.contents
        found = [(r.found[i].name.decode(), r.found[i].score, *r.found[i].box) for i in range(r.n)]
        self.lib.sodet_result_free(result)
        return found

    def close(self):
        self.lib.sodet_detector_close(self.handle)
        self.handle = None


def read_ppm(path, gap):
    """Width, height, stride and bytes of a P6 file whose header is three lines."""
    with open(path, "rb") as f:
        magic, size, most = f.readline().split(), f.readline().split(), f.readline()
        if magic != [b"P6"] or int(most) != 255:
            raise RuntimeError(path + ": not a binary PPM of 8 bits")
        width, height = int(size[0]), int(size[1])
        rows = [f.read(width * 3) + b"\xa5" * gap for _ in range(height)]
    return width, height, width * 3 + gap, b"".join(rows)


def lines(detector, path, form):
    if form == "--bytes":
        with open(path, "rb") as f:
            found = detector.detect(bytes=f.read(), name=path)
    elif form == "--rgb":
        width, height, stride, rgb = read_ppm(path, 7)
        found = detector.detect(rgb=rgb, width=width, height=height, stride=stride, name=path)
    else:
        found = detector.detect(path=path)
    return ["%s\t%s\t%.3f\t%.1f %.1f %.1f %.1f" % (path, *f) for f in found] or [path + "\tnothing"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("checkpoint")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--bytes", action="store_const", const="--bytes", dest="form")
    parser.add_argument("--rgb", action="store_const", const="--rgb", dest="form")
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    paths, threads = a.paths, a.threads
    try:
        detector = Detector(a.library, a.checkpoint, threads=1)
        detector.warm_up()
    except RuntimeError as e:
        print(e, file=sys.stderr)
        return 2
    said, wrong = {}, []

    def work(first):
        for i in range(first, len(paths), threads):
            try:
                said[i] = lines(detector, paths[i], a.form)
            except RuntimeError as e:
                wrong.append(str(e))

    workers = [threading.Thread(target=work, args=(t,)) for t in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    detector.close()
    for i in sorted(said):
        print("\n".join(said[i]))
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
