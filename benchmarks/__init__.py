"""What is measured. `python -m benchmarks [name ...]` runs the benchmarks and writes their records."""
