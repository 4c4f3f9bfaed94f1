"""How the programs of a real node are told what to do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from lab_image import PAUSE
from node_place import SERVICES, Place

NODE = "real-node"
API_PORT = 6443
DNS_ADDRESS = "10.96.0.10"


def api_server(place: Place, etcd: str) -> list[str]:
    """The flags of the API server."""
    folder = place.folder
    return [
        f"--etcd-servers={etcd}",
        f"--secure-port={API_PORT}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={place.address}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-account-key-file={folder / 'server.key'}",
        f"--service-account-signing-key-file={folder / 'server.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICES}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--kubelet-preferred-address-types=InternalIP",
        f"--cert-dir={folder / 'certificates'}",
    ]


DNS_SERVICE: dict[str, Any] = {
    "metadata": {"name": "kube-dns", "namespace": "kube-system"},
    "spec": {
        "clusterIP": DNS_ADDRESS,
        "ports": [{"name": name.lower(), "port": 53, "protocol": name} for name in ("UDP", "TCP")],
    },
}


def dns_endpoints(place: Place) -> dict[str, Any]:
    """Where CoreDNS answers, which is not in a pod."""
    return {
        "metadata": {
            "name": "kube-dns-lab",
            "namespace": "kube-system",
            "labels": {"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "lab"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [place.address], "conditions": {"ready": True}}],
        "ports": [{"name": name.lower(), "port": 53, "protocol": name} for name in ("UDP", "TCP")],
    }


def write_configuration(place: Place, programs: Mapping[str, Path]) -> None:
    """Write the files that the programs of the node read; ``programs`` are those that containerd has to find."""
    folder = place.folder
    (folder / "bin").mkdir()
    for name, program in programs.items():
        (folder / "bin" / name).symlink_to(program)
    (folder / "cni").mkdir()
    (folder / "cni/10-lab.conflist").write_text(_CNI.replace("SUBNET", f"10.214.{place.number}.0/24"))
    (folder / "containerd.toml").write_text(
        _CONTAINERD.replace("FOLDER", str(folder))
        .replace("PAUSE", f"docker.io/{PAUSE}")
        .replace("RUNC", str(programs["runc"]))
    )
    (folder / "resolv.conf").write_text("")
    (folder / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet(place)))
    proxy = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(place.kubeconfig)},
        "clusterCIDR": f"10.214.{place.number}.0/24",
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
    (folder / "kube-proxy.yaml").write_text(yaml.safe_dump(proxy))
    (folder / "Corefile").write_text(
        f".:53 {{\n  bind {place.address}\n  kubernetes cluster.local {{\n    kubeconfig {place.kubeconfig} lab\n"
        "    pods disabled\n  }\n  errors\n}\n"
    )


def _kubelet(place: Place) -> dict[str, Any]:
    """Nothing is collected or evicted for want of room: the disk is not the node's alone."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.address,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": place.cgroup_root,
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(place.folder / "resolv.conf"),
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "24h",
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "nodeStatusUpdateFrequency": "5s",
        "volumeStatsAggPeriod": "0s",
    }


_CNI = """
{"cniVersion": "1.0.0", "name": "lab", "plugins": [
  {"type": "ptp", "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "SUBNET"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
"""
# A machine without CAP_SYS_RESOURCE cannot lower what the kernel thinks of a process when memory is short.
_CONTAINERD = """
version = 3
root = 'FOLDER/containerd'
state = '/run/containerd'
disabled_plugins = ['io.containerd.snapshotter.v1.btrfs', 'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.devmapper', 'io.containerd.snapshotter.v1.erofs', 'io.containerd.tracing.processor.v1.otlp']
[grpc]
  address = '/run/containerd/containerd.sock'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'PAUSE'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = 'RUNC'
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['FOLDER/bin']
    conf_dir = 'FOLDER/cni'
[plugins.'io.containerd.nri.v1.nri']
  disable = false
  socket_path = 'FOLDER/nri.sock'
  plugin_path = 'FOLDER/nri-plugins'
  plugin_config_path = 'FOLDER/nri-configuration'
"""
