// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fleetgate.io/fleetgate/test/support/env"
)

const (
	// GatewayUser is whom the gateway's certificate on the hub names.
	GatewayUser = "fleetgate:gateway"
	// AgentUser is whom the agents' certificates on their members name.
	AgentUser = "fleetgate:agent"
	// RegistrationNamespace is where clusters register on the hub.
	RegistrationNamespace = "clusters"

	hubName           = "hub"
	registrationToken = "new-token"
	mastersGroup      = "system:masters"
)

// Options say what a fleet is made of.
type Options struct {
	// Dir is the fleet's folder.
	Dir string
	// Members are the names of the members.
	Members []string
	// Detached lets the fleet outlive the process that starts it.
	Detached bool
	// BinDir is where gateway, agent and the Kubernetes programs are.
	BinDir string
	// HubBinDir and MemberBinDir are where the Kubernetes programs of hub and members are,
	// if they are of another version than those of BinDir. Empty means BinDir.
	HubBinDir, MemberBinDir string
	// GatewayPath and AgentPath are programs of another version than those of BinDir.
	// Empty means those.
	GatewayPath, AgentPath string
	// Verbosity is the -v of gateway and agents.
	Verbosity int
	// Tunnel is which way the members' tunnels go: one of the constants Tunnel*. Empty
	// means TunnelNative.
	Tunnel string
	// GatewayArgs and AgentArgs are further flags of the gateways and of the agents. One
	// that runs with others, from an earlier Start, is started again.
	GatewayArgs, AgentArgs []string
	// OCM has the gateways serve Open Cluster Management's API as well, all of its parts.
	OCM bool
	// Replicas is how many gateways there are; 0 is 1. Several live as long as the
	// process that starts them.
	Replicas int
	// Later is how many of them, the last ones, Start leaves to the suite.
	Later int
	// PeerAddress, if set, returns the address at which a replica finds another one, for example that
	// of a link to its address.
	PeerAddress func(from, to int, address string) (string, error)
	// IPv6 has everything listen on ::1 alone; there is one gateway then.
	IPv6 bool
	// Audit makes all clusters record the metadata of every request, for package audit.
	Audit bool
	// Way, if set, is called when the hub runs, and returns further flags of the gateway: which
	// way it and the members are to come there.
	Way func(hub *env.Cluster) ([]string, error)
	// Patience is how long a gateway, or a program of a control plane, may take until it is ready, 0 is
	// a minute and a half; and how long the hub may take to call the gateway's webhooks, at least a minute.
	Patience time.Duration
	// Progress receives a short line about each step.
	Progress func(string)
}

// Fleet is a hub and its members.
type Fleet struct {
	Options
	Hub *env.Cluster
	// Gateway is the first of Gateways.
	Gateway  *env.Process
	Gateways []*env.Process
	Members  []*Member
	// ports are the gateway's: API, webhooks, metrics, probes, peers.
	ports []int
	// tunnelPort is that of agents, if there is one.
	tunnelPort int
	balancers  []*balancer
}

// Member is a cluster that belongs to the fleet.
type Member struct {
	Name    string
	Cluster *env.Cluster
	Agent   *env.Process
	// ports are the agent's: metrics, probes, at this address.
	ports   []int
	address string
}

// Clusters are the hub and the members; of a fleet that is nil, there are none.
func (f *Fleet) Clusters() []*env.Cluster {
	if f == nil {
		return nil
	}
	clusters := []*env.Cluster{f.Hub}
	for _, m := range f.Members {
		clusters = append(clusters, m.Cluster)
	}
	return clusters
}

// Start makes the fleet in Dir run: what was never made is made, what does not
// run is started, what runs with the same flags is left alone. It returns when all members are registered.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	f := &Fleet{Options: o}
	if err := f.startClusters(ctx); err != nil {
		return nil, err
	}
	if f.Way != nil {
		flags, err := f.Way(f.Hub)
		if err != nil {
			return f, err
		}
		f.GatewayArgs = append(f.GatewayArgs, flags...)
	}
	if err := f.prepareProcesses(); err != nil {
		return f, err
	}
	if err := f.startGateway(ctx); err != nil {
		return f, err
	}
	return f, f.registerAll(ctx)
}

// startClusters starts the control planes, all at the same time.
func (f *Fleet) startClusters(ctx context.Context) error {
	names := append([]string{hubName}, f.Options.Members...)
	clusters := make([]*env.Cluster, len(names))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range names {
		group.Go(func() (err error) {
			clusters[i], err = f.startCluster(groupCtx, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	f.Hub = clusters[0]
	for _, c := range clusters[1:] {
		f.Members = append(f.Members, &Member{Name: c.Name, Cluster: c})
	}
	return nil
}

func (f *Fleet) startCluster(ctx context.Context, name string) (*env.Cluster, error) {
	options := env.Options{
		Name: name, Dir: filepath.Join(f.Dir, name), Detached: f.Detached, BinDir: cmp.Or(f.HubBinDir, f.BinDir), Progress: f.Progress,
		Audit: f.Audit, IPv6: f.IPv6, StartTimeout: f.Patience,
	}
	if name != hubName {
		options.Nodes, options.BinDir = 1, cmp.Or(f.MemberBinDir, f.BinDir)
	}
	cluster, err := env.Load(options.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return env.Start(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	return cluster, cluster.Resume(ctx)
}

// Load finds the processes of the fleet in a folder, whether they run or not.
func Load(dir string) ([]*env.Process, error) { return env.Processes(dir) }

// Stop ends what Start started, agents and gateway first.
func (f *Fleet) Stop(ctx context.Context) error {
	var agents, gateways, clusters []stopper
	for _, m := range f.Members {
		if m.Agent != nil {
			agents = append(agents, m.Agent)
		}
		clusters = append(clusters, m.Cluster)
	}
	for _, gateway := range f.Gateways {
		gateways = append(gateways, gateway)
	}
	if f.Hub != nil {
		clusters = append(clusters, f.Hub)
	}
	failures := []error{stopAll(ctx, agents), stopAll(ctx, gateways)}
	for _, b := range f.balancers {
		b.stop()
	}
	return errors.Join(append(failures, stopAll(ctx, clusters))...)
}

type stopper interface{ Stop(context.Context) error }

// stopAll stops all at the same time.
func stopAll(ctx context.Context, all []stopper) error {
	failures := make([]error, len(all))
	var group sync.WaitGroup
	for i, one := range all {
		group.Go(func() { failures[i] = one.Stop(ctx) })
	}
	group.Wait()
	return errors.Join(failures...)
}

// HubKubeconfig is the path of the kubeconfig of user admin on the hub.
func (f *Fleet) HubKubeconfig() string { return filepath.Join(f.Dir, "hub.kubeconfig") }

// MemberKubeconfig is the same with only the server's URL changed: it leads to
// the member, through the hub.
func (f *Fleet) MemberKubeconfig(member string) string {
	return filepath.Join(f.Dir, member+"-via-hub.kubeconfig")
}

// FleetKubeconfig is the same again: it leads to all members at once, to read from.
func (f *Fleet) FleetKubeconfig() string { return filepath.Join(f.Dir, "fleet.kubeconfig") }

// writeKubeconfigs writes those that the fleet's user works with.
func (f *Fleet) writeKubeconfigs() error {
	hub, err := os.ReadFile(filepath.Join(f.Hub.Dir, "admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of admin: %w", err)
	}
	if err := os.WriteFile(f.HubKubeconfig(), hub, 0o600); err != nil {
		return err
	}
	const gateway = "/apis/cluster.core.oam.dev/v1alpha1/"
	paths := map[string]string{f.FleetKubeconfig(): gateway + "fleetviews/all/proxy"}
	for _, m := range f.Members {
		paths[f.MemberKubeconfig(m.Name)] = gateway + "clustergateways/" + m.Name + "/proxy"
	}
	for file, path := range paths {
		via := strings.Replace(string(hub), "server: "+f.Hub.URL, "server: "+f.Hub.URL+path, 1)
		if err := os.WriteFile(file, []byte(via), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// AwaitAnswers returns when all members answer through the hub, or says which one did not
// in time.
func (f *Fleet) AwaitAnswers(ctx context.Context, timeout time.Duration) error {
	return waitFor(ctx, "an answer of each member through the hub", timeout, func(ctx context.Context) (bool, error) {
		for _, m := range f.Members {
			if _, err := f.Kubectl(ctx, f.MemberKubeconfig(m.Name), "", "get", "namespace", "kube-system", "--request-timeout=10s"); err != nil {
				return false, fmt.Errorf("asking %s: %w", m.Name, err)
			}
		}
		return true, nil
	})
}

// AwaitTunnels returns when the gateway reaches all members, whatever they let the user do.
func (f *Fleet) AwaitTunnels(ctx context.Context) error {
	for _, m := range f.Members {
		healthy, err := f.Kubectl(ctx, f.HubKubeconfig(), "", "get", "clustergateway", m.Name, "--output=jsonpath={.status.healthy}", "--request-timeout=10s")
		if err == nil && healthy != "true" {
			err = errors.New("there is no way in")
		}
		if err != nil {
			return fmt.Errorf("asking for %s: %w", m.Name, err)
		}
	}
	return nil
}

// waitFor asks until done is true or the time is up; the error says what was waited for.
func waitFor(ctx context.Context, what string, timeout time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: not within %s", what, timeout), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
