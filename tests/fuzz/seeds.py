"""The seeds of the fuzz targets: python3 seeds.py, in this folder; Pillow and gcc."""
import io, json, os, pathlib, struct, subprocess
from PIL import Image

def put(path, data):
    p = pathlib.Path('seeds') / path
    p.parent.mkdir(parents=True, exist_ok=True)
    p.write_bytes(data.encode() if isinstance(data, str) else data)

put('ini/small', '[run]\nname = a\nseed = 0x10\n[input]\nsize = 64x48\nmean = 1, 2, 3\n')
put('ini/bom_crlf', b'\xef\xbb\xbf[run]\r\nname = "a;b#c" ; says\r\n[data]\r\nmax_pixels = 64MiB\r\n[optimizer]\r\nlr = 1e-3')
put('ini/chain', '[transform]\ntrain = a, b\n[transform.a]\nplugin = resize\n[transform.b]\nplugin = hflip\n[checkpoint]\nunit = minutes\n')
put('ini/broken', '[run]\nname=a\nname=b\n[run]\n= x\n[\n]')

put('voc_xml/one', '<annotation><size><width>9</width><height>8</height><depth>3</depth></size><object><name>a</name><difficult>1</difficult>'
    '<bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object></annotation>')
put('voc_xml/parts', '<?xml version="1.0" encoding="UTF-8"?>\n<annotation>\n<object><name>&lt;a&#38;</name><part><name>h</name><bndbox>'
    '<xmin>1</xmin></bndbox></part><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>nan</xmax></bndbox></object></annotation>')
put('voc_xml/entities', '<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><annotation><object><name>&d;</name></object></annotation>')

put('coco/instances', '{"images":[{"id":3,"file_name":"b/a.jpg","width":9,"height":8},{"id":"7","file_name":"\\u00e4.png","width":4,"height":4}],'
    '"categories":[{"id":5,"name":"x"},{"id":2,"name":"y","supercategory":null}],"annotations":[{"id":1,"image_id":3,"category_id":5,'
    '"bbox":[0,0,2.5,1e0],"area":2,"iscrowd":0,"segmentation":[[1,2,3,4]]},{"id":2,"image_id":3,"category_id":2,"bbox":[1,1,1,1],"iscrowd":1,'
    '"segmentation":{"counts":"ab","size":[8,9]}}]}')
put('coco/results', '[{"image_id":1,"category_id":1,"bbox":[1,1,2,2],"score":0.5},{"image_id":1,"category_id":1,"bbox":[1.5,1,2,2],"score":1e-3}]')
put('coco/named', '{"images":[{"id":9,"file_name":"a.jpg"}],"categories":[{"id":4,"name":"a"}],"annotations":[{"image_id":9,"category_id":4,'
    '"bbox":[0,0,1,1],"score":0.25}]}')
put('coco/metrics', '{"step": 1, "epoch": 0.5, "lr": 1e-3, "loss": 2.5, "loss/box": null}\n'
    '{"step": 2, "epoch": 1, "eval": {"voc/mAP": 0.5}, "best": 0.5, "seconds": 1}\n')

im = Image.new('RGB', (7, 5))
im.putdata([(i * 7 % 256, i * 31 % 256, i * 53 % 256) for i in range(35)])
def picture(name, image, kind, **more):
    b = io.BytesIO()
    image.save(b, kind, **more)
    put('picture/' + name, b.getvalue())
exif = Image.Exif()
exif[0x112] = 6 # turned by a quarter
picture('jpeg', im, 'JPEG', quality=60)
picture('jpeg_progressive', im, 'JPEG', quality=50, progressive=True)
picture('jpeg_grey', im.convert('L'), 'JPEG')
picture('jpeg_cmyk', im.convert('CMYK'), 'JPEG')
picture('jpeg_exif', im, 'JPEG', exif=exif)
picture('png', im, 'PNG')
picture('png_palette', im.convert('P'), 'PNG')
picture('png_16', Image.new('I;16', (4, 3), 9000), 'PNG')
picture('bmp', im, 'BMP')
picture('bmp_palette', im.convert('P'), 'BMP')
picture('tga', im, 'TGA')
picture('tga_rle', im, 'TGA', compression='tga_rle')
picture('ppm', im, 'PPM')
picture('pgm', im.convert('L'), 'PPM')
put('picture/pgm_long_number', b'P5' + b'2' * 26 + b'\n7 5\n255\n' + bytes(35))

def tensors(name, header, data):
    h = json.dumps(header).encode()
    h += b' ' * (-len(h) % 8)
    put('checkpoint/' + name, struct.pack('<Q', len(h)) + h + data)
tensors('two', {'a': {'dtype': 'F32', 'shape': [2, 3], 'data_offsets': [0, 24]}, 'b': {'dtype': 'I64', 'shape': [], 'data_offsets': [24, 32]},
                '__metadata__': {'k': 'v'}}, bytes(32))
tensors('half', {'x': {'dtype': 'BF16', 'shape': [4], 'data_offsets': [0, 8]}, 'y': {'dtype': 'F16', 'shape': [0], 'data_offsets': [8, 8]}}, bytes(8))
put('checkpoint/map', '# names\nbackbone.*.weight -> net/*/w\nfc.weight -> fc/w transpose\nx -> -\n')

for i, text in enumerate(['0 0.5 0.5 0.5 0.5\n1 0.1 0.1 0.2 0.1 0.2 0.2\n', 'names:\n  0: cat\n  1: "big dog"\ntrain: images\n',
                          './images/p.png\r\n\nimages/none.png\n', 'images/p.png,1,1,4,4,a\nimages/q.png,,,,,\n"images/""p"".png",0,0,1,1,b\n',
                          'filename,class,xmin,ymin,xmax,ymax,more\nimages/p.png,a,1,1,4,4,x\n', 'p 1\nq.jpg -1\n']):
    put(f'labels/{i}', bytes([i]) + text.encode())

for name, code in (('none', 'int x;'), ('desc', 'const struct { unsigned magic, major; } sodet_plugin_desc = {1, 2};')):
    os.makedirs('seeds/elf', exist_ok=True)
    subprocess.run(['gcc', '-shared', '-nostdlib', '-s', '-Wl,--build-id=none', '-Wl,-z,noseparate-code', '-o', f'seeds/elf/{name}', '-xc', '-'],
                   input=code.encode(), check=True)
    os.chmod(f'seeds/elf/{name}', 0o644)
put('elf/head', (pathlib.Path('seeds/elf/desc').read_bytes())[:64])
