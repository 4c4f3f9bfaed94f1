"""Requests to a Kubernetes API server, and its watches."""

from apiserver.access import Access, NoAccess, load
from apiserver.api import Answer, Api, ApiRequest, Refused, Unreachable, field_manager

__all__ = ["Access", "Answer", "Api", "ApiRequest", "NoAccess", "Refused", "Unreachable", "field_manager", "load"]
