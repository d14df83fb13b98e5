"""Compiling, caching and loading."""
