// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/stored"
)

const (
	pluginMembers, pluginPlacements = 1000, 100
	// pluginFailed placements are on all members, and failed on all of them. Each of the others is
	// on the first pluginSpread members and healthy.
	pluginFailed, pluginSpread = 5, 20
	// pluginOpened is the number of members whose Works `tree` reads.
	pluginOpened = 20
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	jsonType     = "application/json"
)

// BenchmarkPlugin measures the kubectl plugin's commands as processes, on a hub that stores 1,000
// members and 100 placements. Beside each is bare: a client that requests what the command needs,
// with as much concurrency as possible, and discards the responses. Meanwhile Leases are renewed
// once a minute per member, because a hub without writes responds faster. Figures: CPU seconds of
// the command and of the hub's API server, and the bytes that bare reads.
func BenchmarkPlugin(b *testing.B) {
	bed := newPluginBed(b)
	unwell := stored.PlacementName(0)
	for _, command := range []struct {
		name, says string
		args       []string
		bare       [][]question
	}{
		{"members", stored.MemberName(pluginMembers - 1), nil, bed.ofMembers()},
		{"why", " more): not applied: exceeded quota", []string{unwell}, bed.ofWhy(unwell)},
		{"tree", "ConfigMap " + unwell + "/two: not applied", []string{unwell}, bed.ofTree(unwell)},
	} {
		b.Run(command.name, func(b *testing.B) {
			figures := map[string]float64{}
			rounds := 0.0
			sideBySide(b,
				variant{name: "fleetgate", figures: figures, do: func(ctx context.Context) (time.Duration, error) {
					before := cpuOf(b, bed.hub.APIServer.PID())
					took, used, err := bed.run(ctx, command.says, append([]string{command.name}, command.args...)...)
					rounds++
					mean(figures, "cpu-s", used.Seconds(), rounds)
					mean(figures, "hub-cpu-s", (cpuOf(b, bed.hub.APIServer.PID()) - before).Seconds(), rounds)
					return took, err
				}},
				variant{name: "bare", do: timed(func(ctx context.Context) error {
					before := cpuOf(b, bed.hub.APIServer.PID())
					read, err := bed.list(ctx, command.bare)
					mean(figures, "bare-hub-cpu-s", (cpuOf(b, bed.hub.APIServer.PID()) - before).Seconds(), rounds)
					mean(figures, "MB", float64(read)/1e6, rounds)
					return err
				})},
			)
		})
	}
}

// mean adds a value to the mean of a figure.
func mean(figures map[string]float64, unit string, value, count float64) {
	figures[unit] += (value - figures[unit]) / count
}

// pluginBed is a hub without controllers that stores a large fleet.
type pluginBed struct {
	hub                *env.Cluster
	api                apiClient
	program, home, cfg string
}

func newPluginBed(b *testing.B) *pluginBed {
	b.Helper()
	program, err := env.Program("kubectl-fleetgate")
	if err != nil {
		b.Fatal(err)
	}
	hub, err := env.Start(b.Context(), env.Options{Name: "plugin-hub"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := hub.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	bed := &pluginBed{hub: hub, api: newAPIClient(b, hub.Config()), program: program, home: b.TempDir()}
	if bed.cfg, err = hub.Kubeconfig("administrator", "system:masters"); err != nil {
		b.Fatal(err)
	}
	filled, err := bed.fill(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var renewing sync.WaitGroup
	renewing.Go(func() { renewLeases(ctx, b, filled) })
	b.Cleanup(func() { cancel(); renewing.Wait() })
	return bed
}

// renewLeases renews the Lease of each member once a minute.
func renewLeases(ctx context.Context, b *testing.B, hub client.Client) {
	ticks := time.NewTicker(time.Minute / pluginMembers)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		lease := stored.Lease(i % pluginMembers)
		patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, lease.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro))
		if err := hub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch)); err != nil && ctx.Err() == nil {
			b.Errorf("renewing a Lease: %v", err)
			return
		}
	}
}

// fill stores the fleet and returns the client that did it.
func (p *pluginBed) fill(ctx context.Context) (client.Client, error) {
	kinds, err := stored.Kinds()
	if err != nil {
		return nil, err
	}
	if _, err := envtest.InstallCRDs(p.hub.Config(), envtest.CRDInstallOptions{CRDs: kinds, MaxTime: patience}); err != nil {
		return nil, err
	}
	hub, err := stored.Client(ctx, p.hub.Config())
	if err != nil {
		return nil, err
	}
	var seats, rest []client.Object
	for i := range pluginMembers {
		seats = append(seats, stored.Seat(i))
		rest = append(rest, stored.Member(i), stored.Gateway(i), stored.Lease(i))
	}
	for i := range pluginPlacements {
		refusing, on := 0, pluginSpread
		if i < pluginFailed {
			refusing, on = pluginMembers, pluginMembers
		}
		rest = append(rest, stored.Placement(i, refusing))
		for j := range on {
			rest = append(rest, stored.Binding(i, j, refusing > 0), stored.Work(i, j, refusing > 0))
		}
	}
	if err := stored.Write(ctx, hub, seats); err != nil {
		return nil, err
	}
	return hub, stored.Write(ctx, hub, rest)
}

// run runs the plugin and returns its elapsed and CPU time.
func (p *pluginBed) run(ctx context.Context, says string, args ...string) (took, used time.Duration, err error) {
	var out bytes.Buffer
	command := exec.CommandContext(ctx, p.program, append(args, "--kubeconfig="+p.cfg, "--cache-dir="+filepath.Join(p.home, "cache"))...)
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), "HOME="+p.home), &out, &out
	began := time.Now()
	err = command.Run()
	took = time.Since(began)
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 2 {
		err = nil // The exit code reports the problems that the command found.
	}
	if err == nil && !strings.Contains(out.String(), says) {
		err = fmt.Errorf("the output does not contain %q", says)
	}
	if err != nil {
		return took, 0, fmt.Errorf("kubectl fleetgate %s: %w: %.2000s", strings.Join(args, " "), err, out.String())
	}
	return took, command.ProcessState.UserTime() + command.ProcessState.SystemTime(), nil
}

// question is a list that a command needs, and its path.
type question struct{ path, accept string }

// list requests all lists of one step in parallel, then those of the next step. It returns the
// number of bytes.
func (p *pluginBed) list(ctx context.Context, steps [][]question) (int64, error) {
	var read int64
	for _, step := range steps {
		sizes := make([]int64, len(step))
		group, ctx := errgroup.WithContext(ctx)
		for i, l := range step {
			group.Go(func() error {
				counted := countingWriter{&sizes[i]}
				return p.api.getAs(ctx, l.path, l.accept, counted)
			})
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		for _, size := range sizes {
			read += size
		}
	}
	return read, nil
}

// countingWriter counts the bytes written to it and discards them.
type countingWriter struct{ count *int64 }

func (w countingWriter) Write(text []byte) (int, error) {
	*w.count += int64(len(text))
	return io.Discard.Write(text)
}

var (
	membersPath    = "/apis/" + clusterv1beta1.GroupVersion.String() + "/memberclusters"
	placementsPath = "/apis/" + placementv1beta1.GroupVersion.String() + "/"
)

// one returns a placement by name, as a list.
func one(placement string) question {
	return question{placementsPath + "clusterresourceplacements?fieldSelector=" + url.QueryEscape("metadata.name="+placement), jsonType}
}

func bindingsOf(placement string) question {
	return question{placementsPath + "clusterresourcebindings?labelSelector=" + url.QueryEscape(placementv1beta1.ParentPlacementLabel+"="+placement), jsonType}
}

func (p *pluginBed) ofMembers() [][]question {
	var unwell []question
	for i := range pluginFailed {
		unwell = append(unwell, one(stored.PlacementName(i)))
	}
	return [][]question{{
		{membersPath, jsonType},
		{"/apis/" + gatewayv1alpha1.GroupVersion.String() + "/clustergateways", jsonType},
		{"/apis/coordination.k8s.io/v1/leases?fieldSelector=" + url.QueryEscape("metadata.name="+clusterv1beta1.AgentLease), "application/vnd.kubernetes.protobuf"},
		{placementsPath + "clusterresourceplacements", tableType},
		{placementsPath + "resourceplacements", tableType},
	}, unwell}
}

func (p *pluginBed) ofWhy(placement string) [][]question {
	return [][]question{{one(placement), bindingsOf(placement), {membersPath, jsonType}, {placementsPath + "clusterresourceplacementevictions", jsonType}}}
}

func (p *pluginBed) ofTree(placement string) [][]question {
	var works []question
	for i := range pluginOpened {
		works = append(works, question{placementsPath + "namespaces/" + stored.Seat(i).Name + "/works?labelSelector=" + url.QueryEscape(placementv1beta1.ParentPlacementLabel+"="+placement), jsonType})
	}
	return [][]question{{one(placement), bindingsOf(placement)}, works}
}
