"""InferenceServices: what they are made of, their revisions, and which of these gets what share."""
