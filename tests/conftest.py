"""What all tests share: one thread, which is faster for tiny tensors and repeats bit for bit."""

import torch

torch.set_num_threads(1)
