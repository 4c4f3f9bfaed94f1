"""A server for one model of scikit-learn, on KServe's Python server: both of its protocols, REST and gRPC.

It takes the arguments of KServe's own image (``--model_name``, ``--model_dir``, ``--http_port``, ...), and answers with the
probabilities of the classes where PREDICT_PROBA is true. The folder holds one file that joblib or pickle wrote.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import own_address

own_address.hold()

import joblib  # noqa: E402 - what is imported below binds ports
from kserve import Model, ModelServer, model_server  # noqa: E402
from kserve.errors import InferenceError, ModelMissingError  # noqa: E402
from kserve.utils.utils import get_predict_input, get_predict_response  # noqa: E402

ENDINGS = (".joblib", ".pkl", ".pickle")


class SklearnModel(Model):
    """One fitted estimator."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self.folder = folder
        self.ready = False
        self._estimator: Any = None

    def load(self) -> bool:
        """Read the model; raises ModelMissingError, and RuntimeError when it is not clear which file it is."""
        files = sorted(file for file in self.folder.iterdir() if file.is_file() and file.suffix in ENDINGS)
        if not files:
            raise ModelMissingError(f"{self.folder} has no file that ends with {', '.join(ENDINGS)}")
        if len(files) > 1:
            raise RuntimeError(f"{self.folder} has more than one model: {', '.join(file.name for file in files)}")
        self._estimator = joblib.load(files[0])
        self.ready = True
        return True

    def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        """The answer to a request of either protocol."""
        wants_shares = os.environ.get("PREDICT_PROBA", "").lower() == "true"
        try:
            ask = self._estimator.predict_proba if wants_shares else self._estimator.predict
            return get_predict_response(payload, ask(get_predict_input(payload)), self.name)
        except Exception as error:
            raise InferenceError(str(error)) from error


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    parser.add_argument("--model_dir", required=True, type=Path)
    arguments, _ = parser.parse_known_args()
    model = SklearnModel(arguments.model_name, arguments.model_dir)
    model.load()
    ModelServer().start([model])


if __name__ == "__main__":
    main()
