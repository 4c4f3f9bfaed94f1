"""What goes by a model's server: requests are gathered into batches, and told of."""
