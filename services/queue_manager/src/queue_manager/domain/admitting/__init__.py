"""Whom the quota of a cohort lets in, who gives way, and what is told of it."""
