"""What is measured: questions (`python -m brickwork bench`), and loop programs (`python -m benchmarks programs`)."""
