"""The kinds of what serves, and of what sizes it."""

from document_kind import Support

SERVING = (
    Support(
        "HorizontalPodAutoscaler.autoscaling",
        ("inference_autoscaler",),
        "autoscaling/v2 for Deployments, StatefulSets and ReplicaSets: all types of metrics and targets, tolerance, pods that are "
        "not ready or not measured, several metrics, `behavior` with windows, policies and tolerance, `minReplicas: 0`; conditions "
        "with Kubernetes' reasons. A pod that a rolling update has too many of is not taken for one that is wanted. On Kubernetes "
        "the cluster's own controller acts on them",
        "targets of other kinds",
    ),
    Support(
        "ScaledObject.keda.sh",
        ("inference_autoscaler",),
        "makes a HorizontalPodAutoscaler and decides between none and one: triggers `prometheus`, `nats-jetstream`, `metrics-api` (asked "
        "at the server that they name, at `pollingInterval`, or at each look of the autoscaler where that is sooner and not "
        "`useCachedMetrics`; one that names no server is handed in as a MetricReading `s0-prometheus` and so on, with the label "
        "`scaledobject.keda.sh/name`), `cron`, `cpu`, `memory`; `authenticationRef`; activation, `pollingInterval`, `cooldownPeriod`, "
        "`initialCooldownPeriod`, `idleReplicaCount`, `fallback` with its behaviors, pauses by annotation. A source that says nothing, or "
        "no number, is a failure and never zero; no series are zero only where `ignoreNullValues` is stated as `true`",
        "triggers of other types, `scalingModifiers`, `restoreToOriginalReplicaCount`",
    ),
    Support(
        "TriggerAuthentication.keda.sh",
        ("inference_autoscaler", "cluster_gateway"),
        "lets triggers in at their sources: `secretTargetRef`, for `authModes` `bearer`, `basic`, `tls` and `custom`; the values go from "
        "the gateway to who asks the source, and nowhere else",
        "`env`, `configMapTargetRef`, `podIdentity` and vaults",
    ),
    Support(
        "ClusterTriggerAuthentication.keda.sh",
        ("inference_autoscaler", "cluster_gateway"),
        "like a TriggerAuthentication, for triggers of all namespaces; its Secrets are those of the namespace `keda`",
        "`env`, `configMapTargetRef`, `podIdentity` and vaults",
    ),
    Support(
        "InferenceService.serving.kserve.io",
        ("inference_autoscaler", "inference_gateway"),
        "predictor, transformer and explainer, by containers of their own, by a model and a runtime, or by one of KServe's older "
        "blocks (`predictor.triton` with `modelRepository` too, which is read as `storageUri`); models are fetched by an init container "
        "as KServe has it, or mounted (`pvc://`); `logger` and `batcher` by KServe's agent before the server. Serverless: revisions, "
        "sized as Knative's autoscaler does by `concurrency` or `rps` (stable and panic windows, `containerConcurrency`, Knative's "
        "annotations for targets, windows, initial and activation scale, delays, to zero and back; the load is handed in as "
        "MetricReadings of the service), or by what users should feel (`tidegate.dev/target`, docs/autoscaling.md); "
        "canaries by `canaryTrafficPercent`, or in steps by the annotations `tidegate.dev/rollout` "
        "(docs/adr/0038), with promotion and taking back by what revisions answered; never to a revision that is not ready. Standard "
        "(`RawDeployment`): Deployment, Service and HorizontalPodAutoscaler or ScaledObject by KServe's names, `behavior` honoured, "
        "`canary` with shares; requests by host or model, in exact shares, held while no replica is ready, `containerConcurrency`, "
        "`timeout` (services/inference_gateway); classes `hpa`, `keda`, `external`, `none`. `serving.kserve.io/stop`. "
        "On Kubernetes, where its own parts carry requests, an HTTPRoute with weights or through the inference gateway, an Ingress or a "
        "Service of the type LoadBalancer (docs/serving.md); where KServe's own controller runs, `inference_services: false` leaves "
        "them to it",
        "refused: `workerSpec`, the mode ModelMesh, `batcher` and `logger` before a model that speaks gRPC alone; "
        "without effect: `batcher.timeout`, `scaleMetricType`, a logger's `metadataAnnotations`",
    ),
    Support(
        "InferenceGraph.serving.kserve.io",
        ("inference_autoscaler",),
        "a router of its own (Deployment, Service and HorizontalPodAutoscaler of its name) that takes each request from `root` through "
        "`Sequence`, `Switch`, `Ensemble` and `Splitter`; steps by `serviceName`, `serviceUrl` or `nodeName`, with `data`, `condition` "
        "(paths of GJSON without modifiers other than `@this`), `dependency` and `weight`; `resources`, bounds and places of the "
        "router, `timeout`, `routerTimeouts.serviceClient`, `serving.kserve.io/stop`. A graph that comes back to a node is refused",
        "to zero: a router is one pod at least; `routerTimeouts` of its own server",
    ),
    Support(
        "ServingRuntime.serving.kserve.io",
        ("inference_autoscaler",),
        "runs the models whose format, version and protocol it lists; those of the namespace go before those of the cluster, then by "
        "priority, the newest first, by name; `runtime` and `runtimeVersion` of a model; labels, annotations and placeholders such as "
        "`{{.Name}}`",
        "endpoints, `replicas`; one with `multiModel` or `workerSpec` is never given to a model, and says so",
    ),
    Support(
        "ClusterServingRuntime.serving.kserve.io",
        ("inference_autoscaler",),
        "like a ServingRuntime, for models of all namespaces",
        "as for a ServingRuntime",
    ),
    Support(
        "MetricReading.tidegate.dev",
        ("inference_autoscaler",),
        "a sample: of a pod (`cpu`, `memory`, or a name of its own; with the label `container` of one container), of another object, "
        "or, without `describedObject`, of something outside the cluster. It stands until it is replaced; without `value` none is "
        "known, which is not zero, and `message` says why",
    ),
)
