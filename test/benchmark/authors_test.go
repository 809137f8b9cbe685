// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
)

const (
	// between is the interval of requests: 50 per second, which cause 100 reviews by the two
	// webhooks.
	between = 20 * time.Millisecond
	// betweenMany is the interval where each request costs the hub 100 access reviews and lists.
	betweenMany = time.Second
)

// BenchmarkAuthors measures the author check, on admission of placements and on delivery.
func BenchmarkAuthors(b *testing.B) {
	b.Run("admission", admissionOfAuthors)
	b.Run("placement", placementOfAuthors)
}

// admissionOfAuthors measures the admission of a placement by the hub's API server and both
// webhooks at 100 reviews per second, independent of earlier responses: for an administrator; for
// an author who can read the one object; and, at two reviews per second, for an author who can read
// each kind in a namespace. The last costs two access reviews for each kind of the hub, and a list. The
// gateway shares results of access reviews for five seconds, so most requests find them.
func admissionOfAuthors(b *testing.B) {
	f := startFleet(b, "authors")
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	as := func(user string, groups ...string) client.Client {
		config, err := f.Hub.ConfigFor(user, groups...)
		if err != nil {
			b.Fatal(err)
		}
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	admin := as("root", "system:masters")
	prepareAuthors(b, admin)
	one := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{GenerateName: "one-", Namespace: "authors"}}
	one.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
	all := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{GenerateName: "all-"}}
	all.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "authors"}}
	for _, who := range []struct {
		name    string
		client  client.Client
		object  client.Object
		between time.Duration
	}{{"administrator", admin, all, between}, {"one-object", as("one"), one, between}, {"kind-by-kind", as("kinds"), all, betweenMany}} {
		b.Run(who.name, func(b *testing.B) { atARate(b, who.client, who.object, who.between) })
	}
}

// placementOfAuthors measures the time until the last Work of 10 placements of an administrator on
// 1,000 members, with the author check and without. Each runs on its own hub.
func placementOfAuthors(b *testing.B) {
	const placements, members = 10, 1000
	trusting, err := env.ConfigFlag(b.TempDir(), configv1alpha1.GatewayKind, "placement: {authorizeAuthors: false}")
	if err != nil {
		b.Fatal(err)
	}
	for _, variant := range []struct {
		name  string
		flags []string
	}{{"asked", nil}, {"trusted", []string{trusting}}} {
		p := newPlacementBed(b, placements, members, variant.flags...)
		p.settle(b) // A gateway installs its objects after the start.
		p.join(b)
		p.prepare(b, p.placementNames())
		p.settle(b)
		cpu := cpuOf(b, p.fleet.Gateway.PID())
		p.placeUntilWorks(b)
		used := map[string]float64{"gateway-cpu-s": (cpuOf(b, p.fleet.Gateway.PID()) - cpu).Seconds()}
		p.figure("scheduled/"+variant.name, p.tookScheduled, nil)
		p.figure("works/"+variant.name, p.tookWorks, used)
		p.end()
		p.print(b)
		if err := p.fleet.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// prepareAuthors grants user "one" the right to an object, and "kinds" the rights to each kind of a
// namespace, without the wildcard that would need fewer reviews.
func prepareAuthors(b *testing.B, admin client.Client) {
	b.Helper()
	rights := map[string][]rbacv1.PolicyRule{
		"one": {
			{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"resourceplacements"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"settings"}, Verbs: []string{"get"}},
		},
		"kinds": {
			{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"clusterresourceplacements"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps", "secrets", "services"}, Verbs: []string{"get"}},
		},
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "authors"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "authors", Name: "settings"}},
	}
	for user, rules := range rights {
		name := metav1.ObjectMeta{Name: "author-" + user}
		objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}
	for _, object := range objects {
		createWithin(b, admin, object)
	}
}

// atARate sends dry-run creations of an object at a rate.
func atARate(b *testing.B, c client.Client, object client.Object, between time.Duration) {
	ask := func(ctx context.Context) error {
		return c.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
	deadline := time.Now().Add(patience)
	for err := ask(b.Context()); err != nil; err = ask(b.Context()) { // Wait for rights, webhooks and connections.
		if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	ticker := time.NewTicker(between)
	defer ticker.Stop()
	for b.Loop() {
		<-ticker.C
		running.Go(func() {
			start := time.Now()
			if err := ask(b.Context()); err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(start))
		})
	}
	running.Wait()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	for name, q := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99} {
		b.ReportMetric(float64(took[int(q*float64(len(took)-1))])/float64(time.Millisecond), name)
	}
}
