"""The same operators in other systems. Each module imports its system; a missing one is left out of the tables."""
