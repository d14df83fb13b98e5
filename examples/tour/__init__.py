"""A tour of loops: operators of many fields, each a screen of code with what it is checked against."""
