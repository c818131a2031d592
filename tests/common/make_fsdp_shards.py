"""Writes fsdp_shards.h: what torch.distributed.fsdp makes of some modules, for layout_fsdp_test.cc.

python3 make_fsdp_shards.py > fsdp_shards.h

It was run with PyTorch 1.13.1, whose FlatParamHandle is the one that use_orig_params=False has had ever since. Nothing
else of the project needs Python's torch.
"""

import torch
from torch import nn
from torch.distributed.fsdp.flat_param import FlatParamHandle, HandleConfig, HandleShardingStrategy

# Name, shapes of the parameters p0, p1, …, and which of them are the same storage as an earlier one.
CASES = [
    ("OddSizes", [(3, 5), (7,), (2, 2, 2)], {}),
    ("ZeroDimAndEmpty", [(), (0, 4), (3,), (2, 0)], {}),
    ("LargerThanAShard", [(2,), (17,), (1,)], {}),
    ("FewerElementsThanShards", [(2,), ()], {}),
    ("Tied", [(3, 2), (5,), (3, 2)], {2: 0}),
    ("NoPadding", [(4, 2), (8,)], {}),
]
WORLDS = [1, 2, 4, 5, 8]


def make_module(shapes, tied):
    """Element i of parameter p is 100 * (p + 1) + i."""
    module = nn.Module()
    for p, shape in enumerate(shapes):
        values = torch.arange(100 * (p + 1), 100 * (p + 1) + torch.Size(shape).numel(), dtype=torch.float32)
        parameter = getattr(module, f"p{tied[p]}") if p in tied else nn.Parameter(values.reshape(shape))
        module.register_parameter(f"p{p}", parameter)
    return module


def braces(values):
    return "{" + ", ".join(values) + "}"


print("// Written by make_fsdp_shards.py; what it means is said there and in layout_fsdp_test.cc.")
print("#ifndef HOLDFAST_TESTS_COMMON_FSDP_SHARDS_H_\n#define HOLDFAST_TESTS_COMMON_FSDP_SHARDS_H_\n")
print("#include <cstdint>\n#include <string>\n#include <vector>\n")
print("namespace holdfast {\n")
print("struct FsdpShards {\n  std::string name;\n  std::vector<std::vector<int64_t>> shapes;")
print("  // The earlier parameter that each is tied to, or -1.\n  std::vector<int> tied_to;")
print("  // Of each rank.\n  std::vector<std::vector<int>> shards;\n};\n")
print("inline const std::vector<FsdpShards>& AllFsdpShards() {\n  static const std::vector<FsdpShards> all = {")
for name, shapes, tied in CASES:
    for world in WORLDS:
        module = make_module(shapes, tied)
        config = HandleConfig(HandleShardingStrategy.FULL_SHARD, False, None, None, False)
        flat = FlatParamHandle(list(module.parameters()), module, torch.device("cpu"), config).flat_param
        shards = [FlatParamHandle._get_shard(flat, rank, world)[0].int().tolist() for rank in range(world)]
        print(f'      {{"{name}Over{world}",')
        print("       " + braces(braces(map(str, shape)) for shape in shapes) + ",")
        print("       " + braces(str(tied.get(p, -1)) for p in range(len(shapes))) + ",")
        print("       " + braces(braces(map(str, shard)) for shard in shards) + "},")
print("  };\n  return all;\n}\n\n}  // namespace holdfast\n\n#endif  // HOLDFAST_TESTS_COMMON_FSDP_SHARDS_H_")
