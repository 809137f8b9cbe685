// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fleetgate.io/fleetgate/test/support/env"
)

// What an administrator of the hub grants the gateway before it is started.
//
//go:embed gateway-rbac.yaml
var gatewayRBAC string

// The same for what it may do beside with OCM.
//
//go:embed klusterlets-rbac.yaml
var klusterletsRBAC string

// Rights are what an administrator grants the gateway.
func (f *Fleet) Rights() string {
	if f.OCM {
		return gatewayRBAC + "\n---\n" + klusterletsRBAC
	}
	return gatewayRBAC
}

const registrationTimeout = 60 * time.Second

// startGateway starts the gateway with its rights in place.
func (f *Fleet) startGateway(ctx context.Context) error {
	if err := f.writeKubeconfigs(); err != nil {
		return err
	}
	if err := f.startBalancers(); err != nil {
		return err
	}
	if f.Gateway.Running() && !f.Gateway.Outdated() {
		return nil
	}
	if err := f.Gateway.Stop(ctx); err != nil {
		return err
	}
	breakGlass := filepath.Join(f.Hub.Dir, env.BreakGlass+".kubeconfig")
	if _, err := f.Kubectl(ctx, breakGlass, f.Rights(), "apply", "--filename=-"); err != nil {
		return fmt.Errorf("granting the gateway its rights: %w", err)
	}
	f.Progress("hub: starting gateway")
	if err := f.Gateway.Start(ctx); err != nil {
		return err
	}
	if err := f.startReplicas(ctx); err != nil {
		return err
	}
	// Bind the admins' group first: everything after it is done as admin. The hub calls the
	// gateway's webhooks through an aggregated API, and checks only now and then whether an
	// unavailable one is available again. A hub that does not know the webhooks yet would accept
	// the placement without a review. The status would show that from then on, because the webhook
	// sets a type.
	apply := []string{"apply", "--filename=" + f.example("admins.yaml")}
	return waitFor(ctx, "making the group fleetgate:admins administrators of the hub", max(registrationTimeout, f.Patience), func(ctx context.Context) (bool, error) {
		tried, err := f.Kubectl(ctx, breakGlass, "", append(apply, "--dry-run=server", "--output=jsonpath={..placementType}")...)
		if err == nil && tried == "" {
			err = errors.New("the hub does not ask the gateway's webhooks yet")
		}
		if err == nil {
			_, err = f.Kubectl(ctx, breakGlass, "", apply...)
		}
		return err == nil, err
	})
}

func (f *Fleet) example(name string) string {
	home, err := env.Home()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(home), "examples", name)
}

// Example is the path of a file of the folder examples.
func (f *Fleet) Example(name string) string { return f.example(name) }

// registerAll registers the members as the documents tell users to: a Cluster
// with a client ID, a token, its values in a file, and the agent.
func (f *Fleet) registerAll(ctx context.Context) error {
	if err := f.fetchTunnelCA(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range f.Members {
		if m.Agent.Running() && !m.Agent.Outdated() {
			continue
		}
		if err := m.Agent.Stop(ctx); err != nil {
			return err
		}
		if err := f.fetchValues(ctx, m); err != nil {
			return fmt.Errorf("registering %s: %w", m.Name, err)
		}
		f.Progress(m.Name + ": starting agent")
		group.Go(func() error { return m.Agent.Start(ctx) })
	}
	return group.Wait()
}

func (f *Fleet) fetchValues(ctx context.Context, m *Member) error {
	manifests := fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: ClusterRegistrationToken
metadata: {name: %[2]s, namespace: %[1]s, annotations: {fleetgate.io/approval: auto}}
spec: {ttl: 240h}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: Cluster
metadata: {name: %[3]s, namespace: %[1]s}
spec: {clientID: %[4]s}
`, RegistrationNamespace, registrationToken, m.Name, clientID(m))
	if _, err := f.Kubectl(ctx, f.HubKubeconfig(), manifests, "apply", "--filename=-"); err != nil {
		return err
	}
	return waitFor(ctx, "Secret "+registrationToken+" of the registration token", registrationTimeout, func(ctx context.Context) (bool, error) {
		encoded, err := f.Kubectl(ctx, f.HubKubeconfig(), "", "get", "secret", registrationToken,
			"--namespace="+RegistrationNamespace, "--output=jsonpath={.data.values}")
		if err != nil || encoded == "" {
			return false, err
		}
		values, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return false, err
		}
		return true, os.WriteFile(f.valuesFile(m), values, 0o600)
	})
}

// Kubectl runs kubectl with a kubeconfig and returns what it prints. Its error
// holds what it printed as the reason.
func (f *Fleet) Kubectl(ctx context.Context, kubeconfig, input string, args ...string) (string, error) {
	return f.Run(ctx, "kubectl", input, append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
}

// Run runs a program of BinDir and returns what it prints.
func (f *Fleet) Run(ctx context.Context, program, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, f.binary(program), args...)
	command.Stdin = strings.NewReader(input)
	// No file of the user's own, such as a cache or a kuberc, decides what happens.
	command.Env = append(os.Environ(), "HOME="+f.Dir, "KUBECONFIG=")
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), &CommandError{Program: program, Args: args, Stderr: strings.TrimSpace(string(exit.Stderr)), Err: err}
	}
	if err != nil {
		return string(out), fmt.Errorf("running %s: %w", program, err)
	}
	return string(out), nil
}

// CommandError says what a program refused to do.
type CommandError struct {
	Program string
	Args    []string
	// Stderr is what it printed as the reason.
	Stderr string
	Err    error
}

// Error shows the command without its kubeconfig, and the reason.
func (e *CommandError) Error() string {
	var shown []string
	for _, arg := range e.Args {
		if !strings.HasPrefix(arg, "--kubeconfig=") {
			shown = append(shown, arg)
		}
	}
	return fmt.Sprintf("%s %s: %v: %s", e.Program, strings.Join(shown, " "), e.Err, e.Stderr)
}

// Unwrap returns how the program ended.
func (e *CommandError) Unwrap() error { return e.Err }
