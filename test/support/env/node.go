// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// kubeletClientUser is the API server's user for requests to kubelets.
	kubeletClientUser = "kube-apiserver-kubelet-client"
	proxyUser         = "system:kube-proxy"
	nodesGroup        = "system:nodes"
	// pluginsDir is where Debian installs CNI plugins.
	pluginsDir = "/usr/lib/cni"
	// imagesNamespace is the kubelet's namespace in containerd.
	imagesNamespace = "k8s.io"
)

// NodeOptions configure a real node. All but Network are required.
type NodeOptions struct {
	// Name is the name of the Node.
	Name string
	// Address is the node's address on an interface of its network, where its kubelet listens.
	Address string
	// Pods is the Pod network, as in 10.244.0.0/24. To reach Pods from elsewhere, add a route over
	// Address.
	Pods string
	// Network is the file of a network namespace for the node's programs. If unset, they run in the
	// current one.
	Network string
	// Images are archives (of `docker save`, or OCI) that are imported at start.
	Images []string
	// PauseImage is the image among them that keeps a Pod's network.
	PauseImage string
	// WithoutNetwork leaves out the network plugin's configuration, so that the node is not ready.
	WithoutNetwork bool
}

// Node is a real node: containerd, kubelet and kube-proxy run its Pods, and Services work. It needs
// root and Debian's packages containerd, runc, containernetworking-plugins, iptables and conntrack.
// Its Pods outlive it, and it leaves mounts: run it in namespaces that are removed as a whole, as
// test/pods does.
type Node struct {
	// Name is the name from NodeOptions.
	Name string
	// Dir is the node's folder below its cluster's. pod-logs has the logs of Pods.
	Dir string

	Containerd *Process
	Kubelet    *Process
	Proxy      *Process

	options NodeOptions
	cluster *Cluster
}

// StartNode adds a real node to a cluster with an address, and returns when Pods can be scheduled
// on it, or without a network when it has registered. After an error, use Stop to end what did start.
func (c *Cluster) StartNode(ctx context.Context, o NodeOptions) (*Node, error) {
	if c.options.Address == "" {
		return nil, fmt.Errorf("cluster %s has no Address, where the node %s could reach it", c.Name, o.Name)
	}
	n := &Node{Name: o.Name, Dir: c.path(o.Name), options: o, cluster: c}
	if err := n.prepare(); err != nil {
		return n, fmt.Errorf("node %s: %w", n.Name, err)
	}
	c.options.Progress(c.Name + ": starting node " + n.Name)
	if err := n.Containerd.Start(ctx); err != nil {
		return n, err
	}
	for _, archive := range o.Images {
		if _, err := n.ctr(ctx, "images", "import", archive); err != nil {
			return n, fmt.Errorf("node %s: importing %s: %w", n.Name, archive, err)
		}
	}
	if err := n.Proxy.Start(ctx); err != nil {
		return n, err
	}
	return n, n.Kubelet.Start(ctx)
}

// Stop ends the node's programs. Its Pods keep running.
func (n *Node) Stop(ctx context.Context) error {
	var failures []error
	for _, p := range []*Process{n.Kubelet, n.Proxy, n.Containerd} {
		if p != nil {
			failures = append(failures, p.Stop(ctx))
		}
	}
	return errors.Join(failures...)
}

// Tag gives an image of the node another name.
func (n *Node) Tag(ctx context.Context, image, name string) error {
	if _, err := n.ctr(ctx, "images", "tag", "--force", image, name); err != nil {
		return fmt.Errorf("node %s: giving %s another name: %w", n.Name, image, err)
	}
	return nil
}

func (n *Node) prepare() error {
	if err := os.MkdirAll(n.path("network"), 0o700); err != nil {
		return err
	}
	kubelet, err := n.kubeconfig("kubelet", User{Name: "system:node:" + n.Name, Groups: []string{nodesGroup}})
	if err != nil {
		return err
	}
	proxy, err := n.kubeconfig("kube-proxy", User{Name: proxyUser})
	if err != nil {
		return err
	}
	files := map[string]string{
		"containerd.toml": n.containerdConfig(), "kubelet.yaml": n.kubeletConfig(), "kube-proxy.yaml": n.proxyConfig(proxy),
	}
	if !n.options.WithoutNetwork {
		files["network/pods.conflist"] = n.NetworkConfig()
	}
	for name, text := range files {
		if err := writeFile(n.path(name), []byte(text)); err != nil {
			return err
		}
	}
	return n.makeProcesses(kubelet)
}

func (n *Node) makeProcesses(kubeconfig string) (err error) {
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return fmt.Errorf("%w: apt-get install containerd runc containernetworking-plugins iptables conntrack", err)
	}
	bin := n.cluster.options.BinDir
	if n.Containerd, err = n.process(containerd, n.answers, "--config="+n.path("containerd.toml")); err != nil {
		return err
	}
	n.Kubelet, err = n.process(filepath.Join(bin, "kubelet"), n.ready,
		"--config="+n.path("kubelet.yaml"), "--kubeconfig="+kubeconfig, "--root-dir="+n.path("kubelet"), "--cert-dir="+n.path("kubelet-pki"),
		"--hostname-override="+n.Name, "--node-ip="+n.options.Address)
	if err != nil {
		return err
	}
	n.Proxy, err = n.process(filepath.Join(bin, "kube-proxy"), nil, "--config="+n.path("kube-proxy.yaml"))
	return err
}

// process returns one of the node's programs, in its network.
func (n *Node) process(path string, ready func(context.Context) error, args ...string) (*Process, error) {
	o := ProcessOptions{
		Name: filepath.Base(path), Dir: n.Dir, Path: path, Args: args, Ready: ready, StartTimeout: n.cluster.options.StartTimeout,
		Env: []string{"HOME=" + n.Dir},
	}
	if n.options.Network == "" {
		return NewProcess(o)
	}
	var err error
	if o.Path, err = exec.LookPath("nsenter"); err != nil {
		return nil, err
	}
	o.Args = append([]string{"--net=" + n.options.Network, "--", path}, args...)
	return NewProcess(o)
}

// answers returns nil when containerd responds.
func (n *Node) answers(ctx context.Context) error {
	_, err := n.ctr(ctx, "version")
	return err
}

// ready returns nil when the API server reports the node as Ready, or without a network when it has the
// node.
func (n *Node) ready(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.cluster.config)
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !isSchedulable(node) && !n.options.WithoutNetwork {
		return fmt.Errorf("node %s is not ready", n.Name)
	}
	return nil
}

// ctr runs containerd's own command.
func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "ctr", append([]string{"--address=" + n.socket(), "--namespace=" + imagesNamespace}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

func (n *Node) path(name string) string { return filepath.Join(n.Dir, name) }

func (n *Node) socket() string { return n.path("containerd.sock") }

func (n *Node) kubeconfig(program string, user User) (string, error) {
	config, err := n.cluster.ConfigFor(user.Name, user.Groups...)
	if err != nil {
		return "", err
	}
	config.Host = n.cluster.AddressURL()
	path := n.path(program + ".kubeconfig")
	return path, WriteKubeconfig(path, config)
}

// containerdConfig does not set OOM scores: containers of continuous integration lack the
// capability for it.
func (n *Node) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "%[2]s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%[3]s"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%[4]s"
    conf_dir = "%[1]s/network"
`, n.Dir, n.socket(), n.options.PauseImage, pluginsDir)
}

// NetworkConfig is the network plugin's configuration, which containerd reads from the folder network of
// Dir.
func (n *Node) NetworkConfig() string {
	return fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipam": {"type": "host-local", "dataDir": "%s/addresses", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`, n.Dir, n.options.Pods)
}

// kubeletConfig is an ordinary kubelet's, except for what belongs to the machine: no cgroup
// hierarchy, no reservations, and no eviction when the machine's disk is full.
func (n *Node) kubeletConfig() string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[2]s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[3]s}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://%[4]s
podLogsDir: %[1]s/pod-logs
volumePluginDir: %[1]s/volume-plugins
resolvConf: ""
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`, n.Dir, n.options.Address, n.cluster.pki("ca.crt"), n.socket())
}

// proxyConfig keeps the machine's kernel limits.
func (n *Node) proxyConfig(kubeconfig string) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: %s
clusterCIDR: %s
clientConnection: {kubeconfig: %s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.Name, n.options.Pods, kubeconfig)
}

// realNodesArgs are the flags of an API server that Pods reach and that reaches kubelets. The last
// flag of a name counts.
func (c *Cluster) realNodesArgs() []string {
	return flags(
		"bind-address", "0.0.0.0",
		"advertise-address", c.options.Address,
		"endpoint-reconciler-type", "lease",
		// Node names are not in DNS.
		"kubelet-preferred-address-types", "InternalIP",
		"kubelet-client-certificate", c.pki("kubelet-client.crt"),
		"kubelet-client-key", c.pki("kubelet-client.key"),
	)
}

// makeKubeletClient creates the API server's client certificate for kubelets.
func (c *Cluster) makeKubeletClient(users *authority) error {
	client, err := users.client(kubeletClientUser, mastersGroup)
	if err != nil {
		return err
	}
	return client.write(c.pki(""), "kubelet-client")
}

// AddressURL is the API server's URL at Options.Address, for nodes, Pods and other clusters.
func (c *Cluster) AddressURL() string {
	return "https://" + net.JoinHostPort(c.options.Address, strconv.Itoa(c.ports.APIServer))
}
