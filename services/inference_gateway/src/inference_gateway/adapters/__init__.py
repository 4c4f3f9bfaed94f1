"""The proxy as a process, its files and its administration; the requests that wait; the bus."""
