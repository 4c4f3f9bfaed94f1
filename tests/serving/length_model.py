"""A model of one's own on KServe's Python server: how long each text is."""

from kserve import Model, ModelServer


class LengthModel(Model):
    """Predicts lengths."""

    def __init__(self, name):
        super().__init__(name)
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        """Protocol v1."""
        return {"predictions": [len(text) for text in payload["instances"]]}


if __name__ == "__main__":
    ModelServer(enable_grpc=False).start([LengthModel("length")])
