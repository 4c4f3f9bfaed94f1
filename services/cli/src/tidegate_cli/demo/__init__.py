"""The demo: the whole system on this machine, real jobs from examples/, and what happens to them."""
