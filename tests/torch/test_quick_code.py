"""Code of these tests has not seen LLVM's passes, that of the ready operators has, and the cache tells them apart."""

import torch

from brickwork.frontend.definition import define
from brickwork.ir.signature import Signature
from brickwork.ops import sin
from brickwork.runtime import compile as compilation
from brickwork.target.cpu import host_target
from support.quick_code import quick_code
from support.tensors import argument_type

OPTIMISED = True


def tripled(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * 3
    return out


def test_code_of_tests_alone_is_made_without_passes():
    def code(definition):
        signature = Signature((argument_type(torch.ones(4)),))
        return compilation.compile_operator(definition, signature, host_target()).artifact.code

    ours, ready = code(define(tripled)), code(sin.definition)
    with quick_code():
        assert code(define(tripled)) != ours
        assert code(sin.definition) == ready
    assert code(define(tripled)) == ours
