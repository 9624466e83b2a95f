"""The job as it was described: answers, facts and constraints."""
