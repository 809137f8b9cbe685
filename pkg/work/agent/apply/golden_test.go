// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

var update = flag.Bool("update", false, "write the golden file")

// bed is a Reconciler between a hub and the stand-in of a member. All that it sends is
// in the log, in order.
type bed struct {
	*testing.T
	member     *standIn
	hub        client.Client
	clock      *testingclock.FakePassiveClock
	reconciler *Reconciler
	events     *events.FakeRecorder
	log        *strings.Builder
}

func newBed(t *testing.T, options Options, objects ...client.Object) *bed {
	t.Helper()
	b := &bed{T: t, member: newStandIn(), clock: testingclock.NewFakePassiveClock(early.Time), log: &strings.Builder{}}
	server := httptest.NewServer(b.member)
	t.Cleanup(server.Close)
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	joined := &clusterv1beta1.InternalMemberCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: "m", UID: "joined", Annotations: map[string]string{clusterv1beta1.AnnotationHub: "the-hub"}},
		Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
	}
	b.hub = fake.NewClientBuilder().WithScheme(known).WithIndex(&placementv1beta1.Work{}, worksByObject, objectsOf).
		WithStatusSubresource(&placementv1beta1.Work{}).WithObjects(joined).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Patch: b.patched, SubResourcePatch: b.statusPatched}).Build()
	options.Member, options.HubNamespace, options.MemberAPI = "m", memberNamespace, reached(b, &rest.Config{Host: server.URL, BearerToken: "of-the-agent"})
	options.Manifests, options.Clock = 1, b.clock
	b.start(options)
	return b
}

// start replaces the Reconciler, like a restart of the agent.
func (b *bed) start(options Options) {
	b.Helper()
	var err error
	if b.reconciler, err = New(options); err != nil {
		b.Fatal(err)
	}
	b.reconciler.options.Retention = retention.NewTrackerWithIDs(nil, func() string { return "an-id" })
	b.events = events.NewFakeRecorder(100)
	b.reconciler.connect(b.hub, b.hub, b.events)
}

func (b *bed) patched(ctx context.Context, hub client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	b.apply("PATCH", object, patch)
	return hub.Patch(ctx, object, patch, options...)
}

func (b *bed) statusPatched(ctx context.Context, hub client.Client, _ string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	b.apply("PATCH status of", object, patch)
	return hub.Status().Patch(ctx, object, patch, options...)
}

func (b *bed) apply(verb string, object client.Object, patch client.Patch) {
	data, err := patch.Data(object)
	if err != nil {
		b.Fatal(err)
	}
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	b.member.log = append(b.member.log, fmt.Sprintf("%s Work %s on the hub %s", verb, object.GetName(), hashOf(data)))
}

// look reconciles a Work and records the requests.
func (b *bed) look(name string) {
	b.Helper()
	fmt.Fprintf(b.log, "- look at %s\n", name)
	result, err := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: memberNamespace, Name: name}})
	for _, line := range b.member.log {
		fmt.Fprintf(b.log, "  %s\n", line)
	}
	b.member.log = nil
	for len(b.events.Events) > 0 {
		fmt.Fprintf(b.log, "  event %s\n", <-b.events.Events)
	}
	if err != nil {
		fmt.Fprintf(b.log, "  error: %v\n", err)
	}
	next := result.RequeueAfter.String()
	if result.RequeueAfter >= 15*time.Minute {
		next = "a resync" // by chance
	}
	priority := "none"
	if result.Priority != nil {
		priority = fmt.Sprint(*result.Priority)
	}
	fmt.Fprintf(b.log, "  next look after %s, priority %s\n", next, priority)
}

// said records the conditions and the ledger of a Work: conditions as text, to show a change, and
// the rest as a hash.
func (b *bed) said(name string) {
	b.Helper()
	status := b.work(name).Status
	fmt.Fprintf(b.log, "- status of %s %s\n", name, b.sum(status))
	b.list("", status.Conditions)
	for _, m := range status.ManifestConditions {
		b.list(fmt.Sprintf("%d %s %s: ", m.Identifier.Ordinal, m.Identifier.Resource, m.Identifier.Name), m.Conditions)
		for kind, found := range map[string]any{"drift": m.DriftDetails, "difference": m.DiffDetails, "mirror": m.BackReportedStatus} {
			if text, _ := json.Marshal(found); string(text) != "null" {
				fmt.Fprintf(b.log, "    %s %s\n", kind, text)
			}
		}
	}
	if record := b.member.objects[recordPath(name)]; record != nil {
		fmt.Fprintf(b.log, "- AppliedWork %s %s\n", name, b.sum(map[string]any{"annotations": record.GetAnnotations(), "status": record.Object["status"]}))
	}
}

func (b *bed) list(of string, conditions []metav1.Condition) {
	for _, c := range conditions {
		fmt.Fprintf(b.log, "  %s%s %s %s: %s\n", of, c.Type, c.Status, c.Reason, c.Message)
	}
}

func (b *bed) sum(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		b.Fatal(err)
	}
	return hashOf(text)
}

func recordPath(work string) string {
	return "/apis/placement.kubernetes-fleet.io/v1beta1/appliedworks/" + work
}

func (b *bed) work(name string) *placementv1beta1.Work {
	b.Helper()
	work := &placementv1beta1.Work{}
	if err := b.hub.Get(b.Context(), client.ObjectKey{Namespace: memberNamespace, Name: name}, work); err != nil {
		b.Fatal(err)
	}
	return work
}

// change changes a Work as the hub.
func (b *bed) change(name string, change func(*placementv1beta1.Work)) {
	b.Helper()
	work := b.work(name)
	change(work)
	work.Generation++
	if err := b.hub.Update(b.Context(), work); err != nil {
		b.Fatal(err)
	}
}

// meddle changes an object as another client on the member, and creates it if it does not exist.
func (b *bed) meddle(path, text string) {
	b.Helper()
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	live := b.member.objects[path]
	if live == nil {
		live = &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &live.Object); err != nil {
			b.Fatal(err)
		}
		b.member.put(path, live)
		return
	}
	if _, err := b.member.merge(path, live, []byte(text), false, mergePatch); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) lose(path string) {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	delete(b.member.objects, path)
}

func newWork(name string, strategy *placementv1beta1.ApplyStrategy, manifests ...string) *placementv1beta1.Work {
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: name, Generation: 1, UID: "of-work"}}
	work.Spec.Workload.Manifests, work.Spec.ApplyStrategy = raw(manifests...), strategy
	return work
}

// The file was written by the agent as it was before the engine was cut out of this
// package: the cut changed no request, no answer and no word. Since then epochs of Works
// added a request to the hub where an object joins one.
func TestReconcile_MatchesTheGoldenFile(t *testing.T) {
	for name, run := range goldenLooks {
		t.Run(name, func(t *testing.T) {
			log := run(t)
			path := filepath.Join("testdata", "reconciles", strings.ReplaceAll(name, " ", "-")+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(log, "\n")); diff != "" {
				t.Errorf("what was done (-want +got):\n%s", diff)
			}
		})
	}
}
