// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fleetgate.io/fleetgate/test/env"
)

// Four ports of the gateway, two of each agent.
const (
	portAPI = iota
	portWebhooks
	portMetrics
	portProbes
	gatewayPorts
)

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
	if f.Tunnel == TunnelKonnectivity {
		ports, err := f.keepPorts("konnectivity", 1)
		if err != nil {
			return err
		}
		f.tunnelPort = ports[0]
	}
	if f.Gateway, err = f.gatewayProcess(); err != nil {
		return err
	}
	for _, m := range f.Members {
		if m.ports, err = f.keepPorts(m.Name, agentPorts); err != nil {
			return err
		}
		if m.Agent, err = f.agentProcess(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) gatewayProcess() (*env.Process, error) {
	kubeconfig, err := f.Hub.Kubeconfig(GatewayUser)
	if err != nil {
		return nil, err
	}
	agentsPort, err := f.agentsPort()
	if err != nil {
		return nil, err
	}
	options := env.ProcessOptions{
		Name: "gateway", Dir: f.Dir, Path: f.binary("gateway"), Detached: f.Detached,
		Args: append(f.gatewayTunnelArgs(),
			"--kubeconfig="+kubeconfig,
			"--install",
			"--external-name="+loopback,
			"--bind-address="+loopback,
			fmt.Sprintf("--secure-port=%d", f.ports[portAPI]),
			fmt.Sprintf("--webhook-port=%d", f.ports[portWebhooks]),
			"--metrics-bind-address="+onLoopback(f.ports[portMetrics]),
			"--health-probe-bind-address="+onLoopback(f.ports[portProbes]),
			fmt.Sprintf("--v=%d", f.Verbosity),
		),
		Ready: probe(f.ports[portProbes]),
	}
	options.Args = append(options.Args, agentsPort...)
	return env.NewProcess(options)
}

// agentsPort are the flags that open the gateway's own port for agents, if asked for.
func (f *Fleet) agentsPort() ([]string, error) {
	if !f.AgentsPort {
		return nil, nil
	}
	ports, err := f.keepPorts("gateway-agents", 1)
	if err != nil {
		return nil, err
	}
	return []string{"--agents-address=" + onLoopback(ports[0]), fmt.Sprintf("--agents-port=%d", ports[0])}, nil
}

func (f *Fleet) agentProcess(m *Member) (*env.Process, error) {
	kubeconfig, err := m.Cluster.Kubeconfig(AgentUser, mastersGroup)
	if err != nil {
		return nil, err
	}
	return env.NewProcess(env.ProcessOptions{
		Name: m.Name + "-agent", Dir: f.Dir, Path: f.binary("agent"), Detached: f.Detached,
		Args: append(f.agentTunnelArgs(),
			"--member-kubeconfig="+kubeconfig,
			"--bootstrap-file="+f.valuesFile(m),
			"--client-id="+clientID(m),
			"--metrics-bind-address="+onLoopback(m.ports[agentMetrics]),
			"--health-probe-bind-address="+onLoopback(m.ports[agentProbes]),
			fmt.Sprintf("--v=%d", f.Verbosity),
		),
		Ready: probe(m.ports[agentProbes]),
	})
}

// GatewayMetrics is the URL of the gateway's metrics.
func (f *Fleet) GatewayMetrics() string {
	return "http://" + onLoopback(f.ports[portMetrics]) + "/metrics"
}

// GatewayURL is the gateway's own endpoint. The CA of its certificate is in Secret
// gateway-serving-ca of the hub.
func (f *Fleet) GatewayURL() string { return fmt.Sprintf("https://localhost:%d", f.ports[portAPI]) }

// AgentMetrics is the URL of the metrics of a member's agent.
func (m *Member) AgentMetrics() string {
	return "http://" + onLoopback(m.ports[agentMetrics]) + "/metrics"
}

func (f *Fleet) binary(name string) string { return filepath.Join(f.BinDir, name) }

// valuesFile is where the values of the registration token are put for the agent.
func (f *Fleet) valuesFile(m *Member) string { return filepath.Join(f.Dir, m.Name+"-values.yaml") }

// clientID is the text under which the Cluster was made beforehand. On a real
// fleet it is random.
func clientID(m *Member) string { return "client-of-" + m.Name }

func onLoopback(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// probe is ready when /readyz says so.
func probe(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+onLoopback(port)+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		const limit = 2 << 10
		body, err := io.ReadAll(io.LimitReader(response.Body, limit))
		return errors.Join(fmt.Errorf("not ready: %s", strings.TrimSpace(string(body))), err)
	}
}

// keepPorts returns the ports that a process of this fleet was given before, or
// new ones that are free.
func (f *Fleet) keepPorts(name string, n int) ([]int, error) {
	path := filepath.Join(f.Dir, name+".ports.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		ports, err := env.FreePorts(n)
		if err != nil {
			return nil, fmt.Errorf("finding ports for %s: %w", name, err)
		}
		if data, err = json.Marshal(ports); err != nil {
			return nil, err
		}
		return ports, os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return nil, err
	}
	var ports []int
	if err := json.Unmarshal(data, &ports); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return ports, nil
}
