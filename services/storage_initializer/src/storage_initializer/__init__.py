"""How a model comes to its server: a program that fetches it into a folder before the server starts."""
