"""Random programs: they are written as Python source, run in every way there is, compared, and made smaller."""
