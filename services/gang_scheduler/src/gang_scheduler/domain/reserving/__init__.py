"""Reservations: who gets one, where, and what becomes of it."""
