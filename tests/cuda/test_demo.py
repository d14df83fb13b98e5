"""What the demonstration shows of a GPU: every ready operator, beside the CPU."""

from examples.demo import gpu
from support.gpu import GPU

pytestmark = GPU


def test_the_demonstration_runs_every_ready_operator_beside_the_cpu():
    assert not gpu.why_not()
    rows = {row.name: row for row in gpu.rows()}
    assert rows.keys() == {"brick_pad", "timex", "sin", "sample_normal"}
    assert rows["brick_pad"].apart == 0
    assert all(row.gpu > 0 and row.cpu > 0 for row in rows.values())
