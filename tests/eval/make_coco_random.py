"""usage: make_coco_random.py OUTFOLDER : writes coco-random-gt.json, coco-random-dt.json and coco-random-expected.json.
Seeded random boxes with everything that the rules distinguish: crowds, all area ranges (and areas exactly 1024 and 9216), area other than
w * h, equal scores, IoU exactly at a threshold, several hits on one object, images without objects or without detections, more than 100
detections of one image and class, a class without objects, gaps in the category ids, annotation id 0, images out of order.
The expected numbers are pycocotools'."""
import contextlib, io, json, os, sys
from importlib.metadata import version
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

out = sys.argv[1]
r = np.random.default_rng(20240603)
ids = [900, 3, 17, 4, 2**40 + 1, 55, 56, 57, 58, 1000]
cats = [2, 3, 5, 11, 90]
sizes = [(10, 31), (24, 60), (60, 99), (90, 190)]
images = [dict(id=i, width=640, height=480, file_name="%d.jpg" % i) for i in ids]
gt = [dict(id=0, image_id=900, category_id=3, bbox=[500, 400, 50, 60], area=3000.0, iscrowd=0)]
dt = [dict(image_id=900, category_id=3, bbox=[500, 400, 50, 55], score=0.95)]
for n, image in enumerate(ids):
    for k in range(0 if n == 3 else int(r.integers(2, 12))):
        lo, hi = sizes[r.integers(0, 4)]
        w, h = [round(float(v), 2) for v in r.uniform(lo, hi, 2)]
        x, y = [round(float(v), 2) for v in r.uniform(0, 400, 2)]
        area = [w * h, w * h * 0.6, 1024.0, 9216.0][r.integers(0, 4)]
        gt.append(dict(id=len(gt), image_id=image, category_id=int(r.choice(cats[:4])), bbox=[x, y, w, h], area=area, iscrowd=int(r.random() < 0.12)))
    if n == 5:
        continue
    for g in [g for g in gt if g["image_id"] == image]:
        for k in range(r.integers(0, 4)):
            b = np.array(g["bbox"]); j = [0.02, 0.08, 0.2][r.integers(0, 3)]
            b = b + r.normal(0, j, 4) * np.array([b[2], b[3], b[2], b[3]]); b[2:] = b[2:].clip(1)
            c = g["category_id"] if r.random() < 0.9 else int(r.choice(cats))
            dt.append(dict(image_id=image, category_id=c, bbox=[round(float(v), 2) for v in b], score=round(float(r.uniform(0.2, 1)), 1)))
    for k in range(int(r.integers(0, 15))):
        w, h = r.uniform(10, 150, 2)
        dt.append(dict(image_id=image, category_id=int(r.choice(cats)), bbox=[round(float(v), 1) for v in (r.uniform(0, 400), r.uniform(0, 400), w, h)], score=round(float(r.uniform(0, 0.7)), 1)))
for k in range(130):  # more than 100 of one image and class; the object is found by a late one too
    dt.append(dict(image_id=17, category_id=2, bbox=[round(float(v), 1) for v in r.uniform(20, 300, 4)], score=round(float(r.uniform(0, 1)), 2)))
for k, score in enumerate((0.5, 0.0001)):  # found by one of the first 100, and only by one behind them
    gt.append(dict(id=len(gt), image_id=17, category_id=2, bbox=[400, 300 * k, 80, 70], area=5600.0, iscrowd=0))
    dt.append(dict(image_id=17, category_id=2, bbox=[400, 300 * k, 80, 70], score=score))
for k, i in enumerate((0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)):  # IoU exactly at each threshold, as far as doubles go
    gt.append(dict(id=len(gt), image_id=1000, category_id=5, bbox=[200 * k, 0, 100, 100], area=10000.0, iscrowd=0))
    dt.append(dict(image_id=1000, category_id=5, bbox=[200 * k, 0, 100, 100 * i], score=0.9))
order = r.permutation(len(dt)); dt = [dt[i] for i in order]
json.dump(dict(annotations=gt, images=images, categories=[dict(id=c, name="c%d" % c) for c in cats[::-1]]), open(os.path.join(out, "coco-random-gt.json"), "w"))
json.dump(dt, open(os.path.join(out, "coco-random-dt.json"), "w"))
with contextlib.redirect_stdout(io.StringIO()):
    a = COCO(os.path.join(out, "coco-random-gt.json")); b = a.loadRes(os.path.join(out, "coco-random-dt.json"))
    e = COCOeval(a, b, "bbox"); e.evaluate(); e.accumulate(); e.summarize()
names = "AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl".split()
expected = {n: float(v) for n, v in zip(names, e.stats)}
for k, c in enumerate(e.params.catIds):
    p = e.eval["precision"][:, :, k, 0, 2]; p = p[p > -1]
    expected["AP/c%d" % c] = float(p.mean()) if p.size else -1.0
json.dump(dict(pycocotools=version("pycocotools"), numpy=np.__version__, metrics=expected), open(os.path.join(out, "coco-random-expected.json"), "w"), indent=1)
print(len(gt), "objects,", len(dt), "detections", expected)
