"""Measuring operators and their peers: timing, records, tables and plots. What is measured is in `benchmarks/`."""
