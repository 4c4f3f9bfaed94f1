"""Migrations: which may go on now, and what is next for each."""
