"""Graphs: sparse matrices, ranks, levels, paths, components."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, floats, integers, loops


def csr_matvec(indptr: torch.Tensor, indices: torch.Tensor, data: torch.Tensor, x: torch.Tensor):
    """Y = A x, A in compressed rows."""
    n = len(indptr) - 1
    y = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        s = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            s += data[e] * x[indices[e]]
        y[i] = s
    return y


def pagerank(indptr: torch.Tensor, indices: torch.Tensor, out_degree: torch.Tensor, damping: float, iterations: int):
    """Ranks by repeated averaging, over the links that lead to each page."""
    n = len(out_degree)
    rank = torch.zeros(n, dtype=torch.float64)
    new = torch.zeros(n, dtype=torch.float64)
    for v in range(n):
        rank[v] = 1.0 / n
    for it in range(iterations):
        dangling = 0.0
        for v in range(n):
            if out_degree[v] == 0:
                dangling += rank[v]
        for v in range(n):
            s = 0.0
            for e in range(indptr[v], indptr[v + 1]):
                u = indices[e]
                s += rank[u] / out_degree[u]
            new[v] = (1.0 - damping) / n + damping * (s + dangling / n)
        for v in range(n):
            rank[v] = new[v]
    return rank


def bfs_levels(indptr: torch.Tensor, indices: torch.Tensor, source: int):
    """The distance of each node from a source, level by level; -1 where there is no way."""
    n = len(indptr) - 1
    level = torch.full((n,), -1, dtype=torch.int64)
    level[source] = 0
    depth = 0
    found = 1
    while found > 0:
        found = 0
        for v in range(n):
            if level[v] == -1:
                for e in range(indptr[v], indptr[v + 1]):
                    if level[indices[e]] == depth:
                        level[v] = depth + 1
                        found += 1
                        break
        depth += 1
    return level


def triangle_count(adjacency: torch.Tensor):
    """How many triangles a graph has, from its matrix of zeros and ones."""
    n = adjacency.shape[0]
    count = 0
    for i in range(n):
        for j in range(i + 1, n):
            if adjacency[i, j] == 1:
                for k in range(j + 1, n):
                    if adjacency[i, k] == 1 and adjacency[j, k] == 1:
                        count += 1
    result = torch.zeros(1, dtype=torch.int64)
    result[0] = count
    return result


def bellman_ford(n: int, source: int, tail: torch.Tensor, head: torch.Tensor, weight: torch.Tensor):
    """The lengths of the shortest paths from a source, over a list of edges."""
    dist = torch.full((n,), float("inf"), dtype=torch.float64)
    dist[source] = 0.0
    for r in range(n - 1):
        changed = False
        for e in range(len(tail)):
            d = dist[tail[e]] + weight[e]
            if d < dist[head[e]]:
                dist[head[e]] = d
                changed = True
        if not changed:
            break
    return dist


def label_propagation(indptr: torch.Tensor, indices: torch.Tensor):
    """The least node of each component: labels spread until none changes."""
    n = len(indptr) - 1
    label = torch.zeros(n, dtype=torch.int64)
    new = torch.zeros(n, dtype=torch.int64)
    for v in range(n):
        label[v] = v
    changed = True
    while changed:
        changed = False
        for v in range(n):
            m = label[v]
            for e in range(indptr[v], indptr[v + 1]):
                m = min(m, label[indices[e]])
            new[v] = m
        for v in range(n):
            if new[v] != label[v]:
                label[v] = new[v]
                changed = True
    return label


def connected_components(n: int, tail: torch.Tensor, head: torch.Tensor):
    """The representative of each node's component, by union and find with halved paths."""

    def find(parent, v):
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    parent = torch.zeros(n, dtype=torch.int64)
    for v in range(n):
        parent[v] = v
    for e in range(len(tail)):
        a = find(parent, tail[e])
        b = find(parent, head[e])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
    for v in range(n):
        parent[v] = find(parent, v)
    return parent


def _graph(n: int, degree: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the links of a graph that go both ways, in compressed rows."""
    tail = torch.arange(n, device="cpu").repeat_interleave(degree)
    head = (tail + 1 + integers(max(n // 4, 1), n * degree)) % max(n, 1)
    both = torch.unique(torch.cat((tail * n + head, head * n + tail)))
    counts = torch.bincount(both // max(n, 1), minlength=n)
    return torch.cat((torch.zeros(1, dtype=torch.int64, device="cpu"), counts.cumsum(0))), both % max(n, 1)


def _edges(n: int, degree: int) -> tuple[torch.Tensor, torch.Tensor]:
    return integers(n, n * degree), integers(n + 1, n * degree) % max(n, 1)


def _sparse(n: int, degree: int) -> tuple[torch.Tensor, ...]:
    indptr, indices = _graph(n, degree)
    return indptr, indices, floats(len(indices)), floats(n)


def _pages(n: int, degree: int) -> tuple[object, ...]:
    indptr, indices = _graph(n, degree)
    return indptr, indices, indptr.diff(), 0.85, 4 if n < 100 else 20


def _matrix(n: int) -> tuple[torch.Tensor]:
    upper = torch.triu(integers(2, n, n), 1)
    return (upper + upper.T,)


FAMILY = "graphs"
PROGRAMS = (
    LoopProgram(
        function=csr_matvec,
        family=FAMILY,
        arguments=_sparse,
        small=((1, 1), (9, 2)),
        large=(1_000_000, 16),
        loops=loops("i* parallel, e reduction"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=pagerank,
        family=FAMILY,
        arguments=_pages,
        small=((1, 1), (9, 2)),
        large=(400_000, 4),
        loops=loops("v* parallel, it in order, v reduction, v* parallel, e reduction, v* parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=bfs_levels,
        family=FAMILY,
        arguments=lambda n, degree: (*_graph(n, degree), 0),
        small=((1, 1), (12, 2)),
        large=(1_000_000, 8),
        loops=loops("v in order, e in order"),
        bound="order",
        device=(20_000, 8),
    ),
    LoopProgram(
        function=triangle_count,
        family=FAMILY,
        arguments=_matrix,
        small=((0,), (1,), (8,)),
        large=(1500,),
        loops=loops("i* reduction, j reduction, k reduction"),
        bound="compute",
        reference=lambda a: ((a @ a @ a).trace() // 6).reshape(1),
    ),
    LoopProgram(
        function=bellman_ford,
        family=FAMILY,
        arguments=lambda n, degree: (n, 0, *_edges(n, degree), floats(n * degree)),
        small=((1, 1), (7, 2)),
        large=(1_000_000, 8),
        loops=loops("r in order, e in order"),
        bound="order",
        device=(20_000, 8),
    ),
    LoopProgram(
        function=label_propagation,
        family=FAMILY,
        arguments=_graph,
        small=((1, 1), (9, 1)),
        large=(1_000_000, 4),
        loops=loops("v* parallel, v* parallel, e reduction, v reduction"),
        bound="bandwidth",
        device=(20_000, 4),
    ),
    LoopProgram(
        function=connected_components,
        family=FAMILY,
        arguments=lambda n, degree: (n, *_edges(n, degree)),
        small=((1, 1), (9, 1)),
        large=(4_000_000, 2),
        loops=loops("v parallel, e in order, v in order"),
        bound="order",
        device=(200_000, 2),
    ),
)
