#!/usr/bin/env python3
"""The network, data and recipe of conf/tinyssd_shapes.ini in PyTorch: the oracle for the quickstart's mAP. Nothing in the build needs it.

    sodet data export conf/tinyssd_shapes.ini --split train --output /tmp/shapes/train
    sodet data export conf/tinyssd_shapes.ini --split val   --output /tmp/shapes/val
    python3 scripts/train_shapes_torch.py /tmp/shapes/train /tmp/shapes/val [--epochs 4] [--seed 1] [--bf16]

Needs torch, torchvision, numpy and pillow. Prints VOC07 mAP (11 points, IoU 0.5) of the validation pictures.
"""
import argparse
import json
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torchvision.ops import batched_nms, box_iou

SIZES = [(0.12, 0.2), (0.2, 0.272), (0.37, 0.447), (0.54, 0.619), (0.88, 0.961)]


def load(folder):
    """Pictures as uint8 arrays, boxes as x1 y1 x2 y2 label with corners in fractions of the side."""
    with open(os.path.join(folder, "annotations.json"), encoding="utf-8") as f:
        truth = json.load(f)
    label = {c["id"]: i for i, c in enumerate(truth["categories"])}
    boxes = {i["id"]: [] for i in truth["images"]}
    for a in truth["annotations"]:
        x, y, w, h = a["bbox"]
        boxes[a["image_id"]].append([x, y, x + w, y + h, label[a["category_id"]]])
    out = []
    for i in truth["images"]:
        pixels = np.asarray(Image.open(os.path.join(folder, i["file_name"])).convert("RGB"))
        b = np.array(boxes[i["id"]], np.float32).reshape(-1, 5)
        b[:, :4] /= pixels.shape[0]
        out.append((pixels, b))
    return out, [c["name"] for c in truth["categories"]]


def photometric(x):
    """SSD's: brightness, contrast before or after saturation and hue; each with probability one half."""
    def contrast(v):
        return v * random.uniform(0.5, 1.5) if random.random() < 0.5 else v

    if random.random() < 0.5:
        x = x + random.uniform(-32, 32)
    first = random.random() < 0.5
    if first:
        x = contrast(x)
    if random.random() < 0.5:  # saturation, about the grey value
        grey = x.max(axis=2, keepdims=True)
        x = grey + (x - grey) * random.uniform(0.5, 1.5)
    if not first:
        x = contrast(x)
    return x


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()

        def block(i, o):
            layers = []
            for c in (i, o):
                layers += [nn.Conv2d(c, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
            return nn.Sequential(*layers, nn.MaxPool2d(2))

        self.columns = classes + 1
        self.stages = nn.ModuleList([nn.Sequential(block(3, 16), block(16, 32), block(32, 64)), block(64, 128), block(128, 128), block(128, 128),
                                     nn.AdaptiveMaxPool2d(1)])
        channels = [64, 128, 128, 128, 128]
        self.cls = nn.ModuleList([nn.Conv2d(c, 4 * self.columns, 3, padding=1) for c in channels])
        self.box = nn.ModuleList([nn.Conv2d(c, 16, 3, padding=1) for c in channels])
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        logits, codes, sides = [], [], []
        for stage, c, b in zip(self.stages, self.cls, self.box):
            x = stage(x)
            sides.append(x.shape[-1])
            logits.append(c(x).permute(0, 2, 3, 1).reshape(len(x), -1, self.columns))
            codes.append(b(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4))
        return torch.cat(logits, 1), torch.cat(codes, 1), sides


def anchors(sides):
    out = []
    for n, (a, b) in zip(sides, SIZES):
        shapes = [(a, a), (b, b), (a * 2**0.5, a / 2**0.5), (a / 2**0.5, a * 2**0.5)]
        for y in range(n):
            for x in range(n):
                out += [[(x + 0.5) / n, (y + 0.5) / n, w, h] for w, h in shapes]
    return torch.tensor(out, dtype=torch.float32)


def targets(anchor, corners, boxes):
    label, code = torch.zeros(len(anchor), dtype=torch.long), torch.zeros(len(anchor), 4)
    if len(boxes):
        truth = torch.from_numpy(boxes)
        iou = box_iou(corners, truth[:, :4])
        value, index = iou.max(1)
        best = iou.argmax(0)
        value[best], index[best] = 2, torch.arange(len(truth))
        positive = value >= 0.5
        t = truth[index]
        label[positive] = t[positive, 4].long() + 1
        centre, size = (t[:, :2] + t[:, 2:4]) / 2, (t[:, 2:4] - t[:, :2]).clamp(1e-4)
        code = torch.cat([(centre - anchor[:, :2]) / anchor[:, 2:] / 0.1, torch.log(size / anchor[:, 2:]) / 0.2], 1)
    return label, code


def average_precision(scored, truth):
    """VOC07: 11 points; each detection is compared with its best box alone."""
    n = sum(len(v) for v in truth.values())
    used = {k: [False] * len(v) for k, v in truth.items()}
    hits = []
    for _, image, box in sorted(scored, key=lambda d: -d[0]):
        hit = False
        if image in truth:
            iou = box_iou(box[None], torch.tensor(np.array(truth[image])))[0]
            best = int(iou.argmax())
            hit = bool(iou[best] >= 0.5) and not used[image][best]
            used[image][best] |= hit
        hits.append(hit)
    hits = np.cumsum(hits)
    recall, precision = hits / n, hits / (np.arange(len(hits)) + 1)
    return float(np.mean([precision[recall >= t].max() if (recall >= t).any() else 0 for t in np.arange(11) / 10]))


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("train")
    parse.add_argument("val")
    parse.add_argument("--epochs", type=float, default=4)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--lr", type=float, default=0.02)
    parse.add_argument("--bf16", action="store_true")
    args = parse.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)

    train, names = load(args.train)
    val, _ = load(args.val)
    net = Net(len(names)).to(memory_format=torch.channels_last)
    with torch.no_grad():
        net.eval()
        anchor = anchors(net(torch.zeros(1, 3, 128, 128))[2])
        net.train()
    corners = torch.cat([anchor[:, :2] - anchor[:, 2:] / 2, anchor[:, :2] + anchor[:, 2:] / 2], 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
    batch, step, begin = 16, 0, time.time()
    total = int(args.epochs * len(train) / batch)
    while step < total:
        random.shuffle(train)
        for i in range(0, len(train) - batch + 1, batch):
            if step == total:
                break
            images, labels, codes = [], [], []
            for pixels, boxes in train[i:i + batch]:
                x, b = pixels.astype(np.float32), boxes.copy()
                if random.random() < 0.5:
                    x = x[:, ::-1]
                    b[:, [0, 2]] = 1 - b[:, [2, 0]]
                x = (photometric(x) - 127.5) / 64
                images.append(np.ascontiguousarray(x.transpose(2, 0, 1)))
                label, code = targets(anchor, corners, b)
                labels.append(label)
                codes.append(code)
            label, code = torch.stack(labels), torch.stack(codes)
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * step / total))
            x = torch.from_numpy(np.stack(images).astype(np.float32)).contiguous(memory_format=torch.channels_last)
            with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
                logits, raw, _ = net(x)
            logits, raw = logits.float(), raw.float()
            positive = label > 0
            loss = F.cross_entropy(logits.reshape(-1, net.columns), label.reshape(-1), reduction="none").view(label.shape)
            rank = loss.detach().masked_fill(positive, -1).argsort(1, descending=True).argsort(1)
            chosen = positive | (rank < 3 * positive.sum(1, keepdim=True))
            total_loss = (loss[chosen].sum() + F.smooth_l1_loss(raw[positive], code[positive], reduction="sum")) / positive.sum().clamp(1)
            optimizer.zero_grad()
            total_loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 10.0)
            optimizer.step()
            step += 1
        print(f"step {step}/{total} loss {total_loss.item():.3f} {step * batch / (time.time() - begin):.1f} img/s", flush=True)

    net.eval()
    found, truth = [[] for _ in names], [{} for _ in names]
    with torch.no_grad():
        for k, (pixels, boxes) in enumerate(val):
            x = torch.from_numpy((pixels.astype(np.float32).transpose(2, 0, 1) - 127.5) / 64)[None]
            logits, raw, _ = net(x)
            score = logits[0].softmax(1)[:, 1:]
            centre = anchor[:, :2] + raw[0, :, :2] * 0.1 * anchor[:, 2:]
            size = anchor[:, 2:] * (raw[0, :, 2:] * 0.2).exp()
            box = torch.cat([centre - size / 2, centre + size / 2], 1).clamp(0, 1)
            at, label = (score > 0.01).nonzero(as_tuple=True)
            for q in batched_nms(box[at], score[at, label], label, 0.45)[:200]:
                found[label[q]].append((float(score[at[q], label[q]]), k, box[at[q]]))
            for b in boxes:
                truth[int(b[4])].setdefault(k, []).append(b[:4])
    aps = [average_precision(f, t) for f, t in zip(found, truth)]
    for name, ap in zip(names, aps):
        print(f"{name:10s} {ap:.4f}")
    print(f"VOC07 mAP {np.mean(aps):.4f} after {total} steps, {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
