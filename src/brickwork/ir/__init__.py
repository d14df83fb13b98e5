"""The typed intermediate representation of lifted loops and host programs."""
