// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// klusterletBed is a hub with a gateway, a hub without one, and klusterlets.
type klusterletBed struct {
	fleet    *fleet.Fleet
	joiner   *joiner
	hub      client.WithWatch
	bare     client.Client
	clusters int
	// round counts the rounds of joins. Each round uses new clusters.
	round int
	// requests are the certificate requests of klusterlets. All use one key, because their contents
	// are not measured.
	requests *csrTexts
	renewed  atomic.Int64

	mu    sync.Mutex // guards what follows
	gates map[gate]chan struct{}
	asked map[string]time.Time
	took  []time.Duration
}

// gate is closed when a cluster has reached a stage.
type gate struct {
	cluster string
	at      stage
}

type stage int

const (
	// signed is a cluster with its certificate, accepted one with its rights, clean one that is
	// Available without a taint.
	signed stage = iota
	accepted
	clean
)

func newKlusterletBed(b *testing.B, clusters int) *klusterletBed {
	b.Helper()
	f := startFleetWith(b, fmt.Sprintf("managedclusters-%d", clusters), fleet.Options{Members: []string{"member-1"}, OCM: true, GatewayArgs: gatewayFlags()})
	other, err := env.Start(b.Context(), env.Options{Name: "bare"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := other.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	kinds, err := crds.ForHub(clusterv1.GroupName)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(other.Config(), envtest.CRDInstallOptions{CRDs: kinds, MaxTime: patience}); err != nil {
		b.Fatal(err)
	}
	k := &klusterletBed{fleet: f, joiner: newJoiner(b, f), clusters: clusters, requests: newCSRTexts(b)}
	scheme := build.Scheme(clientgoscheme.AddToScheme, clusterv1.AddToScheme, clusterv1beta2.AddToScheme)
	if k.hub, err = client.NewWithWatch(build.Unlimited(f.Hub.Config()), client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	if k.bare, err = client.New(build.Unlimited(other.Config()), client.Options{Scheme: scheme}); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	b.Cleanup(func() { cancel(); running.Wait() })
	see(ctx, &running, k.hub, &certificatesv1.CertificateSigningRequestList{}, k.seeRequest)
	see(ctx, &running, k.hub, &clusterv1.ManagedClusterList{}, k.seeCluster)
	return k
}

func (k *klusterletBed) names() []string {
	all := make([]string, k.clusters)
	for i := range all {
		all[i] = fmt.Sprintf("edge-%d-%04d", k.round, i)
	}
	return all
}

func (k *klusterletBed) seeRequest(object client.Object) {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	if ok && len(csr.Status.Certificate) > 0 {
		k.open(gate{csr.Labels[clusterv1.ClusterNameLabel], signed})
	}
}

func (k *klusterletBed) seeCluster(object client.Object) {
	cluster, ok := object.(*clusterv1.ManagedCluster)
	if !ok {
		return
	}
	if meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted) {
		k.open(gate{cluster.Name, accepted})
	}
	if meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionAvailable) && len(cluster.Spec.Taints) == 0 {
		k.open(gate{cluster.Name, clean})
	}
}

// open closes a gate, once.
func (k *klusterletBed) open(of gate) {
	k.mu.Lock()
	defer k.mu.Unlock()
	closed, ok := k.gates[of]
	if !ok {
		return
	}
	select {
	case <-closed:
	default:
		close(closed)
		if asked, ok := k.asked[of.cluster]; ok && of.at == accepted {
			k.took = append(k.took, time.Since(asked))
		}
	}
}

func (k *klusterletBed) noteAccept(cluster string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked[cluster] = time.Now()
}

// rights are the times from acceptance to the report of the rights, in order.
func (k *klusterletBed) rights() []time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	slices.Sort(k.took)
	return k.took
}

// join joins all clusters and returns how long that took.
func (k *klusterletBed) join(ctx context.Context) (time.Duration, error) {
	k.round++
	return k.joinThose(ctx, k.names(), k.clusters)
}

// joinOneByOne joins more clusters one after another, as when an administrator accepts each.
func (k *klusterletBed) joinOneByOne(ctx context.Context) error {
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("alone-%d-%02d", k.round, i)
	}
	_, err := k.joinThose(ctx, names, 1)
	return err
}

func (k *klusterletBed) joinThose(ctx context.Context, names []string, atATime int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, crowdPatience)
	defer cancel()
	k.mu.Lock()
	k.asked, k.took = map[string]time.Time{}, nil
	k.gates = map[gate]chan struct{}{}
	for _, name := range names {
		for at := signed; at <= clean; at++ {
			k.gates[gate{name, at}] = make(chan struct{})
		}
	}
	k.mu.Unlock()
	writing := make(chan struct{}, concurrency)
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, name := range names {
		group.Go(func() error {
			l := &klusterletLife{klusterletWrites: klusterletWrites{client: k.hub, name: name, requests: k.requests}, bed: k, writing: writing}
			return l.join(ctx)
		})
	}
	err := group.Wait()
	return time.Since(begin), err
}

// writeBare sends the same writes to the other hub and returns how long that took.
func (k *klusterletBed) writeBare(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, name := range k.names() {
		group.Go(func() error {
			return (&klusterletWrites{client: k.bare, name: "bare-" + name, requests: k.requests}).all(ctx)
		})
	}
	err := group.Wait()
	return time.Since(begin), err
}

// klusterletLife is a klusterlet, and an administrator who accepts it.
type klusterletLife struct {
	klusterletWrites
	bed *klusterletBed
	// writing bounds the parallel writes, as for the bare client.
	writing chan struct{}
}

func (l *klusterletLife) do(ctx context.Context, steps ...func(context.Context) error) error {
	l.writing <- struct{}{}
	defer func() { <-l.writing }()
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// until waits until the cluster has reached a stage.
func (l *klusterletLife) until(ctx context.Context, at stage) error {
	l.bed.mu.Lock()
	closed := l.bed.gates[gate{l.name, at}]
	l.bed.mu.Unlock()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", l.name, ctx.Err())
	}
}

func (l *klusterletLife) join(ctx context.Context) error {
	if err := l.do(ctx, l.register, l.ask, l.approve); err != nil {
		return err
	}
	err := l.do(ctx, func(ctx context.Context) error {
		l.bed.noteAccept(l.name)
		return l.accept(ctx)
	})
	err = errors.Join(err, l.until(ctx, signed), l.until(ctx, accepted))
	if err != nil {
		return err
	}
	lease := func(ctx context.Context) error {
		// The hub creates it shortly after it reports the acceptance.
		return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			err := l.renew(ctx)
			return err == nil, client.IgnoreNotFound(err)
		})
	}
	if err := l.do(ctx, l.reportJoined, lease, l.reportAvailable); err != nil {
		return err
	}
	return l.until(ctx, clean)
}

// keepRenewing renews all Leases once a minute, evenly spread, until the context ends.
func (k *klusterletBed) keepRenewing(ctx context.Context) error {
	names := k.names()
	ticker := time.NewTicker(idleFor / time.Duration(len(names)))
	defer ticker.Stop()
	group, writing := errgroup.Group{}, context.WithoutCancel(ctx)
	group.SetLimit(concurrency)
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-ticker.C:
			name := names[i%len(names)]
			group.Go(func() error {
				_, err := k.renew(writing, name)
				return err
			})
		}
	}
}

// renew renews one Lease and returns when it ends.
func (k *klusterletBed) renew(ctx context.Context, cluster string) (time.Time, error) {
	k.renewed.Add(1)
	now := time.Now()
	return now, (&klusterletWrites{client: k.hub, name: cluster}).renewAt(ctx, now)
}

func (k *klusterletBed) patch(ctx context.Context, cluster string, patch []byte) error {
	return k.hub.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, client.RawPatch(types.MergePatchType, patch))
}

func (k *klusterletBed) writes(b *testing.B) []written {
	b.Helper()
	all, err := k.joiner.writes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return all
}

func (k *klusterletBed) settle(b *testing.B) {
	b.Helper()
	const quiet = 2 * time.Second // sets report their number of clusters once a second
	if err := k.joiner.rest(b.Context(), quiet, patience, func(written) bool { return true }); err != nil {
		b.Fatal(err)
	}
}
