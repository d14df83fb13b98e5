"""Measuring operators and their peers."""
