"""A name that is used for several things, one after the other, is a name for each of them; else it stays one."""

import ast
import textwrap

import pytest
import torch

import brickwork as bw
from brickwork.frontend.names_apart import tell_names_apart

Tensor = torch.Tensor


def renamed(text: str) -> str:
    tree = ast.parse(textwrap.dedent(text))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    tell_names_apart(function)
    return ast.unparse(tree)


APART = [
    ("v = x[0]\nx[1] = v\nfor v in range(3):\n x[v] = v", "v = x[0]\nx[1] = v\nfor v_2 in range(3):\n x[v_2] = v_2"),
    ("for i in range(3):\n t = n[i]\n x[t] = 1\n t = x[i]\n x[i] = t * t",
     "for i in range(3):\n t = n[i]\n x[t] = 1\n t_2 = x[i]\n x[i] = t_2 * t_2"),
    ("k = 3\nwhile k > 0:\n k -= 1\nk = 0.5\nx[0] = k", "k = 3\nwhile k > 0:\n k -= 1\nk_2 = 0.5\nx[0] = k_2"),
    ("x = x + 1\nx = 2\ny[x] = 1", "x = x + 1\nx_2 = 2\ny[x_2] = 1"),
    ("k, k_2 = 1, 2\nx[k] = k_2\nk = 1.5\nx[0] = k", "k, k_2 = 1, 2\nx[k] = k_2\nk_3 = 1.5\nx[0] = k_3"),
    ("t = n[0]\ny[t] = 1\nwhile True:\n t = x[0]\n if t > 0:\n  break\ny[1] = t",
     "t = n[0]\ny[t] = 1\nwhile True:\n t_2 = x[0]\n if t_2 > 0:\n  break\ny[1] = t_2"),
    ("for i in range(3):\n t = n[i]\n y[t] = 1\n t = x[i]\n if t > 1:\n  break\nelse:\n t = 3\ny[1] = t",
     "for i in range(3):\n t = n[i]\n y[t] = 1\n t_2 = x[i]\n if t_2 > 1:\n  break\nelse:\n t_2 = 3\ny[1] = t_2"),
]  # fmt: skip
TOGETHER = [
    "for i in range(3):\n x[i] = 1\nfor i in range(4):\n y[i] = 1",
    "t = 0.0\nfor i in range(3):\n t += x[i]\ny[0] = t\nt = 1.0\ny[1] = t",
    "t = n[0]\nfor i in range(3):\n if x[i] > 0:\n  t = x[i]\ny[0] = t",
    "t = n[0]\nfor t in range(3):\n x[t] = 1\ny[0] = t",
    "t = n[0]\nfor i in range(3):\n y[t] = 1\n t = 2 * i",
    "for i in range(3):\n t = n[i]\n if t > 0:\n  t = x[i]\n y[i] = t",
    "t = n[0]\nfor i in range(3):\n y[t] = 1\n t = x[i]\n if t > 1:\n  break\n t = n[i]\ny[1] = t",
    "t = 0\nfor i in range(3):\n if x[i] > 1:\n  break\n t = n[i]\n y[t] = 1\ny[1] = t",
    "t = n[0]\ny[t] = 1\nt = x[0]\ng = lambda: t\ny[1] = g()",
    "t = n[0]\ny[t] = 1\ntry:\n t = x[0]\nexcept ValueError:\n t = 1",
    "t: float\nt = n[0]\ny[t] = 1\nt = x[0]\ny[0] = t",
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), APART)
def test_apart(before: str, after: str):
    """What is not wanted before nor after some statements is theirs, if it begins otherwise elsewhere."""
    head = "def f(x, y, n):\n"
    expected = ast.unparse(ast.parse(head + textwrap.indent(after, " ")))
    assert renamed(head + textwrap.indent(before, " ")) == expected


@pytest.mark.parametrize("body", TOGETHER)
def test_together(body: str):
    """A name stays one where a value may reach from one use to another, or where all uses begin alike."""
    text = "def f(x, y, n):\n" + textwrap.indent(body, " ")
    assert renamed(text) == ast.unparse(ast.parse(text))


@bw.op
def penalised(logits: Tensor, history: Tensor) -> Tensor:
    B, V = logits.shape
    out = torch.zeros(B, dtype=logits.dtype)
    for b in range(B):
        total = 0.0
        for h in range(history.shape[1]):
            t = history[b, h]
            v = logits[b, t]
            t = v / 2 if v > 0 else v * 2
            total += t
        for v in range(V):
            total += logits[b, v] * v
        out[b] = total
    return out


def test_a_value_and_an_index_of_one_name():
    """A name may be an element, an integer, and an index, as in Python; gradients go through."""
    logits = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    history = torch.randint(0, 7, (3, 5))
    rows = torch.stack([logits[b, history[b]] for b in range(3)])
    expected = torch.where(rows > 0, rows / 2, rows * 2).sum(1) + (logits * torch.arange(7)).sum(1)
    assert torch.allclose(penalised(logits, history), expected)
    assert torch.autograd.gradcheck(penalised, (logits, history))
