"""`ti.profiler`: how often kernels ran, and how long, with `ti.init(kernel_profiler=True)`."""

from __future__ import annotations

from brickwork.taichi import state


def clear_kernel_profiler_info() -> None:
    """Forget what was measured."""
    state.times().clear()


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Print a table: of each kernel, or with `"trace"` of each launch; times are in milliseconds."""
    if mode not in {"count", "trace"}:
        raise ValueError("mode must be 'count' or 'trace'")
    times = state.times()
    total = sum(seconds for _, seconds in times) or 1.0
    if mode == "trace":
        print("   part |      time | kernel")
        for name, seconds in times:
            print(f"{100 * seconds / total:6.2f}% | {seconds * 1e3:9.3f} | {name}")
        return
    by_name: dict[str, list[float]] = {}
    for name, seconds in times:
        by_name.setdefault(name, []).append(seconds * 1e3)
    print("   part |     total |  count |       min |       avg |       max | kernel")
    for name, each in sorted(by_name.items(), key=lambda item: -sum(item[1])):
        whole, count = sum(each), len(each)
        part = 100 * whole / (total * 1e3)
        least, mean, most = min(each), whole / count, max(each)
        print(f"{part:6.2f}% | {whole:9.3f} | {count:6d} | {least:9.3f} | {mean:9.3f} | {most:9.3f} | {name}")


def get_kernel_profiler_total_time() -> float:
    """Return the time of all kernels, in seconds."""
    return sum(seconds for _, seconds in state.times())
