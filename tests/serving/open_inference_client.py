"""Asks a model server by gRPC with Triton's own client: `ADDRESS MODEL INPUT SHAPE VALUES`; runs in the environment of Triton."""

import json
import sys

import numpy
from tritonclient.grpc import InferenceServerClient, InferInput

address, model, name, shape, values = sys.argv[1:]
with InferenceServerClient(address) as client:
    asked = InferInput(name, json.loads(shape), "FP32")
    asked.set_data_from_numpy(numpy.array(json.loads(values), numpy.float32).reshape(json.loads(shape)))
    answer = client.infer(model, [asked], client_timeout=30)
    output = answer.get_response().outputs[0].name
    print(json.dumps({"ready": client.is_model_ready(model), "output": answer.as_numpy(output).tolist()}))
