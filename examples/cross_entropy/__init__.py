"""The cross-entropy method at work: samples of normal distributions close in on the lowest point of a surface."""
