"""Host parts that ask for values of tensors: explained, inspected and warmed up with the arguments of a call."""

import pytest
import torch

import brickwork as bw


@bw.op("bwvalues::places")
def places(x: torch.Tensor) -> torch.Tensor:
    found = torch.nonzero(x > 0.5)
    out = torch.zeros(found.shape[0], dtype=x.dtype)
    for i in range(found.shape[0]):
        out[i] = x[found[i, 0]]
    return out


@bw.op("bwvalues::masked_")
def masked_(x: torch.Tensor) -> torch.Tensor:
    """A mask of what a loop has stored into the argument, and draws of both kinds."""
    for i in range(x.shape[0]):
        x[i] = x[i] * 2
    kept = x[x > 0.2] + torch.rand(1)
    out = torch.empty_like(kept)
    for i in range(kept.shape[0]):
        out[i] = kept[i] * bw.rand()
    return out


@bw.op("bwvalues::distinct")
def distinct(x: torch.Tensor) -> torch.Tensor:
    found = torch.unique(x)
    out = torch.zeros(int(found.sum().item()), dtype=x.dtype)
    for i in range(out.shape[0]):
        out[i] = found[0]
    return out


@pytest.mark.parametrize(("operator", "pieces"), [(places, 1), (masked_, 2), (distinct, 1)])
def test_real_arguments_answer_the_host_part(operator: bw.Op, pieces: int):
    x = torch.tensor([0.0, 1.0, 0.75, 0.25])
    before, state = x.clone(), torch.get_rng_state()
    operator.warmup(x.to("meta"))
    assert len(operator.stats().specialisations) == pieces - 1  # up to where values are asked for
    assert "not compiled yet" not in operator.explain(x)
    assert len(operator.stats().specialisations) == pieces
    assert "define" in operator.inspect("llvm", x)
    operator.warmup(x)
    assert ".visible .entry" in operator.inspect("ptx", x, device="sm_90")
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)
    made = len(operator.stats().specialisations)
    operator(x.clone())
    assert len(operator.stats().specialisations) == made


def test_a_host_part_that_fails_says_so():
    @bw.op("bwvalues::failing")
    def failing(x: torch.Tensor) -> torch.Tensor:
        found = torch.nonzero(x).reshape(7, 7)
        out = torch.zeros(found.shape[0])
        for i in range(found.shape[0]):
            out[i] = found[i, 0]
        return out

    with pytest.raises(RuntimeError, match=r"shape '\[7, 7\]' is invalid"):
        failing.explain(torch.ones(3))
