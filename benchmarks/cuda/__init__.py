"""What is measured on a GPU. `python -m benchmarks --device cuda` runs it."""

from benchmarks.cuda import (
    brick_pad,
    first_call,
    gradients,
    launch,
    launches,
    programs,
    sample_normal,
    sin,
    streaming,
    timex,
)

BENCHMARKS = {
    "brick_pad": brick_pad.cases,
    "sin": sin.cases,
    "sample_normal": sample_normal.cases,
    "timex": timex.cases,
    "gradients": gradients.cases,
    "launch": launch.cases,
    "streaming": streaming.cases,
    "first_call": first_call.cases,
    "launches": launches.cases,
    **programs.BENCHMARKS,
}
