"""TrainJob (``trainer.kubeflow.org/v1alpha1``): a runtime and what the user adds to it become one JobSet."""
