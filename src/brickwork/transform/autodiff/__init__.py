"""Derivatives of programs: rules of operators, reverse and forward mode."""
