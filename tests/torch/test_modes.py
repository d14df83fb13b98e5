"""Gradients under torch's modes: autocast, no_grad, inference mode, checkpoints, threads, and all that is as usual."""

import multiprocessing
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import brickwork as bw
from brickwork.ops.timex import timex

pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection")


@bw.op("bwmodes::product")
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply two matrices."""
    out = a.new_empty((a.shape[0], b.shape[1]))
    for i, j in bw.ndrange(a.shape[0], b.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        out[i, j] = s
    return out


@bw.op("bwmodes::total")
def total(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Add two matrices; nothing is kept for the gradients."""
    out = torch.empty_like(a)
    for i, j in bw.indices(a):
        out[i, j] = a[i, j] + b[i, j]
    return out


@bw.op("bwmodes::through_torch")
def through_torch(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply with torch, then double: the host part needs Python."""
    c = torch.mm(a, b)
    out = torch.empty_like(c)
    for i, j in bw.indices(c):
        out[i, j] = 2 * c[i, j]
    return out


@bw.op("bwmodes::replaced")
def replaced(a: torch.Tensor) -> torch.Tensor:
    """A copy, with a gradient of the user's that uses torch."""
    out = torch.empty_like(a)
    for i, j in bw.indices(a):
        out[i, j] = a[i, j]
    return out


@replaced.backward
def _(a, grad):
    return torch.mm(grad, torch.eye(a.shape[1], device=a.device)).float()


def pair(m=3, k=4, n=5, **options):
    """Return two matrices that can be multiplied."""
    a, b = torch.randn(m, k, **options), torch.randn(k, n, **options)
    return a.requires_grad_(), b.requires_grad_()


def gradients_of(function, *tensors):
    """Return the gradients of a sum, with tensors of their own."""
    own = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    function(*own).float().square().sum().backward()
    return [tensor.grad for tensor in own]


# ---------------------------------------------------------------- autocast


def test_autocast_leaves_the_types_of_arguments(device):
    a, b = pair()
    with torch.autocast(device, torch.bfloat16):
        found = product(a, b)
        low = torch.mm(a, b)
        mixed = product(low, b.detach().T.contiguous())
    assert (found.dtype, low.dtype, mixed.dtype) == (torch.float32, torch.bfloat16, torch.bfloat16)
    torch.testing.assert_close(found, product(a, b))
    found.sum().backward()
    mixed.float().sum().backward()
    assert a.grad.dtype == b.grad.dtype == torch.float32


def test_a_gradient_does_not_depend_on_autocast_around_it(device):
    tensors = pair()
    expected = gradients_of(product, *tensors)

    def inside(a, b):
        with torch.autocast(device, torch.bfloat16):
            return product(a, b)

    for found, wanted in zip(gradients_of(inside, *tensors), expected, strict=True):
        torch.testing.assert_close(found, wanted)
    with torch.autocast(device, torch.bfloat16):
        for found, wanted in zip(gradients_of(product, *tensors), expected, strict=True):
            torch.testing.assert_close(found, wanted)


def test_a_rule_for_autocast_can_be_registered(device):
    with torch.library._scoped_library("bwmodes", "FRAGMENT") as library:  # so that it is taken back
        torch.library.register_autocast("bwmodes::product", device, torch.bfloat16, lib=library)
        a, b = pair()
        with torch.autocast(device, torch.bfloat16):
            found = product(a, b)
        assert found.dtype == torch.bfloat16
        found.float().sum().backward()
        assert a.grad.dtype == torch.float32
    torch.testing.assert_close(a.grad, b.detach().bfloat16().float().sum(1).expand(3, 4), rtol=2e-2, atol=2e-2)


def test_torch_inside_of_a_host_part_is_cast(device):
    a, b = pair()
    with torch.autocast(device, torch.bfloat16):
        found = through_torch(a, b)
    assert found.dtype == torch.bfloat16
    found.float().sum().backward()
    assert a.grad.dtype == b.grad.dtype == torch.float32


def test_a_gradient_of_the_users_runs_as_the_forward_did(device):
    a = torch.full((2, 2), 1.0 + 2.0**-12, requires_grad=True)
    replaced(a).backward(a.detach())
    assert torch.equal(a.grad, a.detach())
    a.grad = None
    with torch.autocast(device, torch.bfloat16):
        out = replaced(a)
    out.backward(a.detach())
    assert torch.equal(a.grad, torch.ones_like(a))
    a.grad = None
    out = replaced(a)
    with torch.autocast(device, torch.bfloat16):
        out.backward(a.detach())
    assert torch.equal(a.grad, a.detach())


# ---------------------------------------------------------------- no gradients


def test_no_grad_keeps_nothing(device):
    a, b = pair()
    with torch.no_grad():
        found = product(a, b)
    assert not found.requires_grad
    assert found.grad_fn is None


def test_inference_mode(device):
    a, b = pair()
    with torch.inference_mode():
        found = product(a, b)
        again = product(found, found.T.contiguous())
    assert found.is_inference()
    assert again.is_inference()
    torch.testing.assert_close(found.clone(), product(a, b).detach())


def test_inference_tensors_are_saved_only_where_gradients_read_them(device):
    a, b = pair()
    with torch.inference_mode():
        frozen = torch.randn(3, 4, device=device)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        product(frozen, b)
    total(frozen, a).sum().backward()
    assert torch.equal(a.grad, torch.ones_like(a))


def test_forward_leaves_grad_alone(device):
    a, b = pair()
    a.grad = kept = torch.full_like(a, 7.0)
    out = product(a, b)
    assert a.grad is kept
    assert torch.equal(kept, torch.full_like(a, 7.0))
    assert b.grad is None
    out.sum().backward()
    assert a.grad is kept
    torch.testing.assert_close(kept, 7.0 + b.detach().sum(1).expand(3, 4))


# ---------------------------------------------------------------- graphs


def test_a_graph_is_used_again_only_if_retained(device):
    a, b = pair()
    out = product(a, b).sum()
    out.backward(retain_graph=True)
    first = a.grad.clone()
    out.backward()
    torch.testing.assert_close(a.grad, 2 * first)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_only_what_is_needed_is_computed(wanted, device):
    a, b = pair()
    a.requires_grad_(wanted[0])
    b.requires_grad_(wanted[1])
    with torch.profiler.profile() as seen:
        product(a, b).sum().backward()
    assert [tensor.grad is not None for tensor in (a, b)] == [*wanted]
    (name,) = {event.key for event in seen.key_averages() if "::product__backward" in event.key}
    assert name.startswith(f"bwmodes::product__backward_{''.join(str(int(each)) for each in wanted)}")


def test_gradients_of_any_layout(device):
    a, b = pair()
    expected = torch.autograd.grad(torch.mm(a, b), (a, b), torch.full((3, 5), 2.0))
    layouts = [
        torch.tensor(2.0).expand(3, 5),
        torch.full((5, 3), 2.0).T,
        torch.full((6, 10), 2.0)[::2, ::2],
        torch.full((15,), 2.0).as_strided((3, 5), (5, 1)),
    ]
    for gradient in layouts:
        found = torch.autograd.grad(product(a, b), (a, b), gradient)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


def test_what_was_saved_must_not_change(device):
    a, b = pair()
    out = product(a, b)
    with torch.no_grad():
        b.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_saved_tensors_can_be_packed(device):
    a, b = pair()
    packed = []

    def pack(tensor):
        packed.append(tensor.shape)
        return tensor.cpu().numpy()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda array: torch.from_numpy(array).to(device)):
        out = product(a.clone(), b.clone())
        nothing = total(a.clone(), a.clone())
    assert packed == [a.shape, b.shape]
    found = torch.autograd.grad(out.sum() + nothing.sum(), (a, b))
    torch.testing.assert_close(found[0], b.detach().sum(1).expand(3, 4) + 2.0)


def test_anomaly_mode_names_the_operator(device):
    a, b = pair()
    with pytest.raises(RuntimeError, match="product"), torch.autograd.detect_anomaly(check_nan=True):
        product(a, b).backward(torch.full((3, 5), float("nan")))


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(reentrant, device):
    w, k = torch.randn(4, 6), torch.randn(2, 4, 6)
    expected = gradients_of(lambda w, k: timex(w, k, 0.1), w, k)
    found = gradients_of(lambda w, k: checkpoint(timex, w, k, 0.1, use_reentrant=reentrant), w, k)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


class Calls(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.called = []

    def __torch_dispatch__(self, called, types, arguments=(), named=None):
        self.called.append(called)
        return called(*arguments, **(named or {}))


@pytest.mark.parametrize("saved", [True, False])
def test_selective_checkpoints(saved, device):
    a, b = pair()
    policy = CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE
    operator = torch.ops.bwmodes.product.default

    def choose(_, called, *arguments, **named):
        return policy if called == operator else CheckpointPolicy.PREFER_RECOMPUTE

    def forward(a, b):
        return product(a, b).sin()

    def contexts():
        return create_selective_checkpoint_contexts(choose)

    with Calls() as seen:
        out = checkpoint(forward, a, b, use_reentrant=False, context_fn=contexts)
        found = torch.autograd.grad(out.sum(), (a, b))
    assert seen.called.count(operator) == (1 if saved else 2)
    for one, other in zip(found, torch.autograd.grad(torch.mm(a, b).sin().sum(), (a, b)), strict=True):
        torch.testing.assert_close(one, other)


# ---------------------------------------------------------------- threads and processes


def test_threads_run_backward_at_once(device):
    b = torch.randn(4, 5, requires_grad=True)
    inputs = [torch.randn(3, 4) for _ in range(4)]
    expected = sum(x.T @ torch.ones(3, 5) for x in inputs)
    threads = [threading.Thread(target=lambda x=x: product(x, b).sum().backward()) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(b.grad, expected)


def _child(queue):
    a, b = pair()
    product(a, b).sum().backward()
    queue.put(torch.allclose(a.grad, b.detach().sum(1).expand(3, 4)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="with GPUs, torch refuses any backward in a forked process")
def test_a_forked_process_computes_gradients():
    a, b = pair()
    product(a, b).sum().backward()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_child, args=(queue,))
    process.start()
    assert queue.get(timeout=60)
    process.join()
