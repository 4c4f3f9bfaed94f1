"""Answers what it is given after a pause, for Triton's python backend: it takes time as a model on an accelerator does, and no CPU."""

import json
import time

import triton_python_backend_utils as triton


class TritonPythonModel:
    """What Triton calls."""

    def initialize(self, args):
        """The pause is a parameter of the model, in seconds."""
        self._seconds = float(json.loads(args["model_config"])["parameters"]["seconds"]["string_value"])

    def execute(self, requests):
        """One pause and one answer for each request."""
        return [self._answer(one) for one in requests]

    def _answer(self, request):
        time.sleep(self._seconds)
        given = triton.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        return triton.InferenceResponse([triton.Tensor("OUTPUT0", given)])
