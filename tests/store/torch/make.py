"""PyTorch's files for tests/store/torch.c: python3 make.py, in this folder; torch 2."""
import torch, collections

torch.manual_seed(1)
w = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) / 8
state = collections.OrderedDict([
    ('conv.weight', w), ('conv.bias', torch.tensor([1.5, -2.0])), ('part', w.reshape(-1)[4:10]),  # shares the storage of conv.weight
    ('bn.num_batches_tracked', torch.tensor(7)), ('half', torch.tensor([0.5, 3.0], dtype=torch.float16)),
    ('brain', torch.tensor([[1.0], [-4.0]], dtype=torch.bfloat16)), ('none', torch.zeros(0, 3))])
torch.save(state, 'zip.pth')
torch.save(state, 'old.pth', _use_new_zipfile_serialization=False)
torch.save({'epoch': 3, 'loss': 0.25, 'model': {'a': torch.nn.Parameter(torch.tensor([9.0])), 1: torch.tensor([8, 7], dtype=torch.int32)},
            'optimizer': {'state': {}, 'param_groups': [{'lr': 0.1, 'params': [0]}], 'moments': [torch.tensor([2.0]), torch.tensor([3.0])]},
            'args': collections.Counter()}, 'nested.pth')
torch.save({'w': w.permute(2, 0, 1)}, 'view.pth')
torch.save({'w': torch.tensor([1], dtype=torch.int16)}, 'short.pth')
torch.save({'epoch': 3}, 'empty.pth')
