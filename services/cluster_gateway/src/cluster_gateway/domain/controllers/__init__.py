"""The controllers that a cluster without Kubernetes needs of its own."""

from cluster_gateway.domain.controllers.controllers import Controllers

__all__ = ["Controllers"]
