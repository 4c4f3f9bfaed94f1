"""The gate before scheduling: which groups may compete for room."""
