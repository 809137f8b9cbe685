// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// BenchmarkMembership measures how long clusters take to join: from the first registration on the
// hub until every MemberCluster is Joined. The baseline is a client that sends as many writes of
// the same sizes with the same concurrency.
//
// The agents of join are processes, each with a new identity. They share the API server of one
// member, in a namespace each, so that many can join without many control planes. Those of
// simulated are goroutines, for numbers that do not fit on one machine as processes.
func BenchmarkMembership(b *testing.B) {
	b.Run("join", func(b *testing.B) {
		f := startFleet(b, "membership", "member-1")
		j := newJoiner(b, f)
		for _, members := range []int{1, 4} {
			b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
				writes := bare{client: j.hub, namespace: j.namespace(b), counted: j.count(b, members), workers: members}
				count := map[string]float64{"writes/op": float64(total(writes.counted))}
				sideBySide(b,
					variant{name: "fleetgate", figures: count, do: func(ctx context.Context) (time.Duration, error) {
						took, err := j.join(ctx, members)
						return took, errors.Join(err, j.settle(ctx))
					}},
					variant{name: "bare", figures: count, do: timed(writes.write)})
			})
		}
	})
	b.Run("simulated/members=100", func(b *testing.B) { joinCrowd(b, 100, time.Minute) })
	b.Run("simulated/members=1000", func(b *testing.B) { joinCrowd(b, 1000, 5*time.Minute) })
}

// joiner joins new members to a fleet.
type joiner struct {
	fleet  *fleet.Fleet
	hub    client.WithWatch
	api    apiClient
	values string
	// kubeconfig is the agents' kubeconfig of the cluster that they share; empty if the fleet has
	// none.
	kubeconfig string
	// joined counts the agents that were started. Each is a new cluster to the hub.
	joined int
}

func newJoiner(b *testing.B, f *fleet.Fleet) *joiner {
	b.Helper()
	ctrl.SetLogger(klog.Background())
	config, err := f.Hub.ConfigFor("admin", "fleetgate:admins")
	if err != nil {
		b.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme, registrationv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	j := &joiner{fleet: f, api: newAPIClient(b, config), values: filepath.Join(f.Dir, "values.yaml")}
	if j.hub, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	if len(f.Members) > 0 {
		if j.kubeconfig, err = f.Members[0].Cluster.Kubeconfig(fleet.AgentUser, "system:masters"); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.fetchValues(b.Context()); err != nil {
		b.Fatal(err)
	}
	return j
}

// fetchValues creates a registration token and writes the agents' chart values to a file.
func (j *joiner) fetchValues(ctx context.Context) error {
	// A fleet without members has no namespace for them.
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet.RegistrationNamespace}}
	if err := client.IgnoreAlreadyExists(j.hub.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("making the namespace of registrations: %w", err)
	}
	token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{
		Namespace: fleet.RegistrationNamespace, Name: "benchmark",
		Annotations: map[string]string{registrationv1alpha1.AnnotationApproval: registrationv1alpha1.ApprovalAuto},
	}}
	if err := j.hub.Create(ctx, token); err != nil {
		return fmt.Errorf("making a registration token: %w", err)
	}
	const interval = 100 * time.Millisecond
	var secret corev1.Secret
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		err := j.hub.Get(ctx, client.ObjectKeyFromObject(token), &secret)
		return len(secret.Data[registrationv1alpha1.RegistrationValuesKey]) > 0, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the values of a registration token: %w", err)
	}
	return os.WriteFile(j.values, secret.Data[registrationv1alpha1.RegistrationValuesKey], 0o600)
}

// namespace creates a namespace on the hub for the baseline.
func (j *joiner) namespace(b *testing.B) string {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bare-"}}
	if err := j.hub.Create(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
	return namespace.Name
}

// count joins members once and returns the writes on the hub meanwhile.
func (j *joiner) count(b *testing.B, members int) []written {
	b.Helper()
	before, err := j.writes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := j.join(b.Context(), members); err != nil {
		b.Fatal(err)
	}
	after, err := j.writes(b.Context())
	if err := errors.Join(err, j.settle(b.Context())); err != nil {
		b.Fatal(err)
	}
	return since(before, after)
}

func (j *joiner) writes(ctx context.Context) ([]written, error) {
	metrics, err := j.metrics(ctx)
	if err != nil {
		return nil, err
	}
	return parseWrites(metrics)
}

// metrics returns the metrics of the hub's API server.
func (j *joiner) metrics(ctx context.Context) (string, error) {
	var metrics bytes.Buffer
	err := j.api.get(ctx, "/metrics", &metrics)
	return metrics.String(), err
}

// settle waits until the writes after a join are done, so that they do not distort the next
// measurement.
func (j *joiner) settle(ctx context.Context) error {
	const quiet = 500 * time.Millisecond
	return j.rest(ctx, quiet, patience, func(written) bool { return true })
}

// rest waits until there were no writes that count for a while.
func (j *joiner) rest(ctx context.Context, quiet, patience time.Duration, counts func(written) bool) error {
	last := -1
	return wait.PollUntilContextTimeout(ctx, quiet, patience, true, func(ctx context.Context) (bool, error) {
		all, err := j.writes(ctx)
		before := last
		last = total(slices.DeleteFunc(all, func(w written) bool { return !counts(w) }))
		return last == before, err
	})
}

// join starts agents at the same time and returns the time from the first registration to the last
// member. It stops the agents.
func (j *joiner) join(ctx context.Context, members int) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var agents []*env.Process
	waiting := map[string]bool{}
	for range members {
		j.joined++
		name := fmt.Sprintf("joining-%d", j.joined)
		agent, err := j.agent(name)
		if err != nil {
			return 0, err
		}
		agents = append(agents, agent)
		waiting[registrationv1alpha1.ClusterName(name)] = true
	}
	seen, err := j.watch(ctx)
	if err != nil {
		return 0, err
	}
	defer seen.stop()
	defer func() { err = errors.Join(err, each(agents, func(p *env.Process) error { return p.Kill() })) }()
	if err := each(agents, func(p *env.Process) error { return p.Start(ctx) }); err != nil {
		return 0, err
	}
	return seen.await(ctx, waiting)
}

// agent returns a new agent with its own namespace on the member.
func (j *joiner) agent(name string) (*env.Process, error) {
	return env.NewProcess(env.ProcessOptions{
		Name: name, Dir: j.fleet.Dir, Path: filepath.Join(j.fleet.BinDir, "agent"),
		Args: []string{
			"--member-kubeconfig=" + j.kubeconfig,
			"--bootstrap-file=" + j.values,
			"--client-id=" + name,
			"--namespace=" + name,
			"--account-namespace=" + name + "-accounts",
			"--metrics-bind-address=0",
			"--health-probe-bind-address=127.0.0.1:0",
		},
	})
}

func each(agents []*env.Process, do func(*env.Process) error) error {
	var group errgroup.Group
	for _, agent := range agents {
		group.Go(func() error { return do(agent) })
	}
	return group.Wait()
}

// sightings watch the objects of joining clusters on the hub.
type sightings struct{ requests, members *sighting }

func (j *joiner) watch(ctx context.Context) (sightings, error) {
	s := sightings{
		requests: &sighting{open: func(ctx context.Context) (watch.Interface, error) {
			return j.hub.Watch(ctx, &registrationv1alpha1.ClusterRegistrationList{}, client.InNamespace(fleet.RegistrationNamespace))
		}},
		members: &sighting{open: func(ctx context.Context) (watch.Interface, error) {
			return j.hub.Watch(ctx, &clusterv1beta1.MemberClusterList{})
		}},
	}
	for _, each := range []*sighting{s.requests, s.members} {
		if err := each.begin(ctx); err != nil {
			s.stop()
			return s, err
		}
	}
	return s, nil
}

func (s sightings) stop() {
	s.requests.stop()
	s.members.stop()
}

// sighting is a watch that restarts when a busy hub ends it. A watch begins with all existing
// objects, so it misses none.
type sighting struct {
	open    func(context.Context) (watch.Interface, error)
	current watch.Interface
}

func (s *sighting) begin(ctx context.Context) (err error) {
	if s.current, err = s.open(ctx); err != nil {
		return fmt.Errorf("watching the hub: %w", err)
	}
	return nil
}

func (s *sighting) stop() {
	if s.current != nil {
		s.current.Stop()
	}
}

// next returns the next object of the watch.
func (s *sighting) next(ctx context.Context) (runtime.Object, error) {
	for {
		select {
		case event, open := <-s.current.ResultChan():
			if open && event.Type != watch.Error {
				return event.Object, nil
			}
			s.stop()
			if err := s.begin(ctx); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// await returns when the MemberClusters of all waiting Clusters are Joined.
func (s sightings) await(ctx context.Context, waiting map[string]bool) (time.Duration, error) {
	if err := s.awaitFirst(ctx, waiting); err != nil {
		return 0, err
	}
	begin := time.Now()
	wanted := len(waiting)
	for len(waiting) > 0 {
		object, err := s.members.next(ctx)
		if err != nil {
			return 0, fmt.Errorf("%d of %d clusters have not joined: %w", len(waiting), wanted, err)
		}
		member, ok := object.(*clusterv1beta1.MemberCluster)
		if ok && meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionJoined) {
			delete(waiting, member.Annotations[registrationv1alpha1.AnnotationCluster])
		}
	}
	return time.Since(begin), nil
}

// awaitFirst returns when one of the Clusters has requested its registration.
func (s sightings) awaitFirst(ctx context.Context, waiting map[string]bool) error {
	for {
		object, err := s.requests.next(ctx)
		if err != nil {
			return fmt.Errorf("no agent has registered: %w", err)
		}
		request, ok := object.(*registrationv1alpha1.ClusterRegistration)
		if ok && waiting[registrationv1alpha1.ClusterName(request.Spec.ClientID)] {
			return nil
		}
	}
}
