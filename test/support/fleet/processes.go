// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
)

// Five ports of the gateway, two of each agent.
const (
	portAPI = iota
	portWebhooks
	portMetrics
	portProbes
	portPeers
	gatewayPorts
)

// portsSuffix ends the name of a file with the ports of a process.
const portsSuffix = ".ports.json"

// gatewayGrace is longer than a stopping gateway lets requests in flight continue.
const gatewayGrace = 40 * time.Second

const (
	agentMetrics = iota
	agentProbes
	agentPorts
)

// prepareProcesses knows, or finds again, gateway and agents with their ports.
func (f *Fleet) prepareProcesses() (err error) {
	if f.ports, err = f.keepPorts("gateway", gatewayPorts); err != nil {
		return err
	}
	if f.hasAgentsPort() {
		ports, err := f.keepPorts("gateway-agents", 1)
		if err != nil {
			return err
		}
		f.tunnelPort = ports[0]
	}
	for replica := range max(f.Replicas, 1) {
		gateway, err := f.gatewayProcess(replica)
		if err != nil {
			return err
		}
		f.Gateways = append(f.Gateways, gateway)
	}
	f.Gateway = f.Gateways[0]
	for _, m := range f.Members {
		if m.ports, err = f.keepPorts(m.Name, agentPorts); err != nil {
			return err
		}
		m.address = f.address(0)
		if m.Agent, err = f.agentProcess(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) gatewayProcess(replica int) (*env.Process, error) {
	kubeconfig, err := f.Hub.Kubeconfig(GatewayUser)
	if err != nil {
		return nil, err
	}
	tunnelArgs, err := f.gatewayTunnelArgs()
	if err != nil {
		return nil, err
	}
	name, host := "gateway", f.address(replica)
	if replica > 0 {
		name = fmt.Sprintf("gateway-%d", replica+1)
	}
	options := env.ProcessOptions{
		Name: name, Dir: f.Dir, Path: cmp.Or(f.GatewayPath, f.binary("gateway")), Detached: f.Detached, Grace: gatewayGrace, StartTimeout: f.Patience,
		Args: append(tunnelArgs,
			"--kubeconfig="+kubeconfig,
			"--install",
			"--external-name="+f.externalName(),
			"--bind-address="+host,
			fmt.Sprintf("--secure-port=%d", f.ports[portAPI]),
			fmt.Sprintf("--webhook-port=%d", f.ports[portWebhooks]),
			"--metrics-bind-address="+onPort(host, f.ports[portMetrics]),
			"--health-probe-bind-address="+onPort(host, f.ports[portProbes]),
			fmt.Sprintf("--v=%d", f.Verbosity),
		),
		Ready: env.Answers(http.DefaultClient, "http://"+onPort(host, f.ports[portProbes])+"/readyz"),
	}
	peers, err := f.peers(replica)
	if err != nil {
		return nil, err
	}
	if len(peers) > 0 {
		options.Args = append(options.Args, fmt.Sprintf("--peer-port=%d", f.ports[portPeers]), "--peers="+strings.Join(peers, ","))
	}
	if f.OCM {
		options.Args = append(options.Args, "--apis=fleet,rancher,msa,gateway,clusterprofile,admission,ocm", "--ocm=works,placement,registration,addons")
	}
	options.Args = append(options.Args, f.GatewayArgs...)
	return env.NewProcess(options)
}

func (f *Fleet) agentProcess(m *Member) (*env.Process, error) {
	kubeconfig, err := m.Cluster.Kubeconfig(AgentUser, mastersGroup)
	if err != nil {
		return nil, err
	}
	tunnelArgs, err := f.agentTunnelArgs()
	if err != nil {
		return nil, err
	}
	return env.NewProcess(env.ProcessOptions{
		Name: m.Name + "-agent", Dir: f.Dir, Path: cmp.Or(f.AgentPath, f.binary("agent")), Detached: f.Detached,
		Args: slices.Concat(tunnelArgs, []string{
			"--member-kubeconfig=" + kubeconfig,
			"--bootstrap-file=" + f.valuesFile(m),
			"--client-id=" + clientID(m),
			"--metrics-bind-address=" + onPort(f.address(0), m.ports[agentMetrics]),
			"--health-probe-bind-address=" + onPort(f.address(0), m.ports[agentProbes]),
			fmt.Sprintf("--v=%d", f.Verbosity),
		}, f.AgentArgs),
		Ready: env.Answers(http.DefaultClient, "http://"+onPort(f.address(0), m.ports[agentProbes])+"/readyz"),
	})
}

// GatewayMetrics is the URL of the metrics of the first gateway.
func (f *Fleet) GatewayMetrics() string { return f.GatewayMetricsOf(0) }

// GatewayURL is the gateway's own endpoint. The CA of its certificate is in Secret
// gateway-serving-ca of the hub.
func (f *Fleet) GatewayURL() string { return fmt.Sprintf("https://localhost:%d", f.ports[portAPI]) }

// AgentMetrics is the URL of the metrics of a member's agent.
func (m *Member) AgentMetrics() string {
	return "http://" + onPort(m.address, m.ports[agentMetrics]) + "/metrics"
}

func (f *Fleet) binary(name string) string { return filepath.Join(f.BinDir, name) }

// valuesFile is where the values of the registration token are put for the agent.
func (f *Fleet) valuesFile(m *Member) string { return filepath.Join(f.Dir, m.Name+"-values.yaml") }

// clientID is the text under which the Cluster was made beforehand. On a real
// fleet it is random.
func clientID(m *Member) string { return "client-of-" + m.Name }

func onPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// keepPorts returns the ports that a process of this fleet was given before, or
// new ones that are free.
func (f *Fleet) keepPorts(name string, n int) ([]int, error) {
	path := filepath.Join(f.Dir, name+portsSuffix)
	ports, err := holdPorts(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return ports, err
	}
	if ports, err = env.FreePorts(n); err != nil {
		return nil, fmt.Errorf("finding ports for %s: %w", name, err)
	}
	data, err := json.Marshal(ports)
	if err != nil {
		return nil, err
	}
	return ports, os.WriteFile(path, data, 0o600)
}

func holdPorts(path string) ([]int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var ports []int
	if err := json.Unmarshal(data, &ports); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return ports, env.HoldPorts(ports...)
}

// HoldPorts keeps the ports of the fleet in a folder from being found by other processes while this
// one runs.
func HoldPorts(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*"+portsSuffix))
	if err != nil {
		return err
	}
	for _, path := range files {
		if _, err := holdPorts(path); err != nil {
			return err
		}
	}
	clusters, err := filepath.Glob(filepath.Join(dir, "*", env.ClusterFile))
	if err != nil {
		return err
	}
	for _, path := range clusters {
		if _, err := env.Load(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}
