// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	sources "sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/decision/clustercel"
)

// lateHub is a hub whose news of one kind come in their order, but late, and each kind's as
// late as it happens.
type lateHub struct {
	client.WithWatch
	mu   sync.Mutex // guards what follows, and has news in the order of writes
	dice *rand.Rand
	news map[string]chan func()
	// tell says what handles a kind, on a queue.
	tell map[string]handler.EventHandler
	//lint:ignore containedctx It is the life of the hub.
	ctx context.Context
	to  queue
}

func kindOf(object client.Object) string { return fmt.Sprintf("%T", object) }

func newLateHub(t *testing.T, dice *rand.Rand) *lateHub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	h := &lateHub{dice: dice, news: map[string]chan func(){}, tell: map[string]handler.EventHandler{}}
	h.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&ocmclusterv1beta1.Placement{}, &ocmclusterv1beta1.PlacementDecision{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if decision, ok := object.(*ocmclusterv1beta1.PlacementDecision); ok {
				decision.Status = ocmclusterv1beta1.PlacementDecisionStatus{}
			}
			return h.write(object, func() error { return c.Create(ctx, object, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			return h.write(object, func() error { return c.Update(ctx, object, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
			return h.write(object, func() error { return c.Patch(ctx, object, p, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return h.write(object, func() error { return c.Delete(ctx, object, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			return h.write(object, func() error { return c.SubResource(name).Patch(ctx, object, p, o...) })
		},
	}).Build()
	return h
}

// write writes, and has the news of it on their way.
func (h *lateHub) write(object client.Object, do func() error) error {
	time.Sleep(h.while(20 * time.Millisecond))
	h.mu.Lock()
	defer h.mu.Unlock()
	key := client.ObjectKeyFromObject(object)
	was, is := object.DeepCopyObject().(client.Object), object.DeepCopyObject().(client.Object)
	before := h.WithWatch.Get(h.ctx, key, was)
	if err := do(); err != nil {
		return err
	}
	after := h.WithWatch.Get(h.ctx, key, is)
	to := h.tell[kindOf(object)]
	h.news[kindOf(object)] <- func() {
		switch {
		case after != nil && before == nil:
			to.Delete(h.ctx, event.DeleteEvent{Object: was}, h.to)
		case after == nil && before != nil:
			to.Create(h.ctx, event.CreateEvent{Object: is}, h.to)
		case after == nil:
			to.Update(h.ctx, event.UpdateEvent{ObjectOld: was, ObjectNew: is}, h.to)
		}
	}
	return nil
}

func (h *lateHub) while(most time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Duration(h.dice.Int64N(int64(most)))
}

// run decides for the hub's Placements until the context ends.
func (h *lateHub) run(ctx context.Context, t *testing.T, r *Reconciler) {
	t.Helper()
	h.ctx = ctx
	h.tell = map[string]handler.EventHandler{
		kindOf(&ocmclusterv1beta1.Placement{}): r.placements(), kindOf(&ocmclusterv1beta1.PlacementDecision{}): states(r.decision), kindOf(&clusterv1.ManagedCluster{}): states(r.cluster),
		kindOf(&clusterv1beta2.ManagedClusterSet{}): states(r.set), kindOf(&clusterv1beta2.ManagedClusterSetBinding{}): states(r.binding), kindOf(&clusterv1alpha1.AddOnPlacementScore{}): states(r.sheet),
	}
	for kind := range h.tell {
		news := make(chan func(), 10000)
		h.news[kind] = news
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case told := <-news:
					time.Sleep(h.while(200 * time.Millisecond))
					told()
				}
			}
		}()
	}
	again := true
	c, err := controller.NewUnmanaged("late", controller.Options{Reconciler: r, SkipNameValidation: &again, MaxConcurrentReconciles: 4, LogConstructor: func(*reconcile.Request) logr.Logger { return logr.Discard() }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(sources.Func(func(_ context.Context, q queue) error { h.to = q; return nil })); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(ctx) }()
	synctest.Wait()
}

// change changes something that Placements look at.
func (h *lateHub) change(ctx context.Context, t *testing.T) {
	t.Helper()
	h.mu.Lock()
	n, what, flip, value := h.dice.IntN(8), h.dice.IntN(8), h.dice.IntN(2), h.dice.IntN(5)
	h.mu.Unlock()
	name, namespace := fmt.Sprintf("c%02d", n), []string{"team", "other"}[flip]
	cluster := managed(name, nil)
	there := h.Get(ctx, client.ObjectKeyFromObject(cluster), cluster) == nil
	var err error
	switch {
	case what == 0:
		err = h.toggle(ctx, &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}})
	case what == 1:
		err = h.toggle(ctx, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}})
	case what == 2:
		until := metav1.NewTime(time.Now().Add(time.Duration(value) * time.Second))
		score := sheet(name, int32(value), []*metav1.Time{nil, &until}[flip])
		if is := sheet(name, 0, nil); h.Get(ctx, client.ObjectKeyFromObject(is), is) == nil {
			is.Status = score.Status
			err = h.Update(ctx, is)
		} else {
			err = h.Create(ctx, score)
		}
	case !there:
		err = h.Create(ctx, managed(name, nil))
	case what == 3:
		err = h.Delete(ctx, cluster)
	case what == 4:
		cluster.Spec.Taints = nil
		if value < 4 {
			effect := []clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectNoSelectIfNew}[flip]
			cluster.Spec.Taints = []clusterv1.Taint{{Key: "maintenance", Effect: effect, TimeAdded: metav1.Now()}}
		}
		err = h.Update(ctx, cluster)
	case what == 5:
		cluster.Labels["env"] = []string{"prod", "test"}[flip]
		err = h.Update(ctx, cluster)
	case what == 6:
		cluster.Labels[clusterv1.ClusterSetLabel] = []string{"set", "none"}[flip]
		err = h.Update(ctx, cluster)
	default:
		cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: []string{"eu", "us"}[flip]}}
		err = h.Update(ctx, cluster)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// toggle makes an object, or removes it if it is there.
func (h *lateHub) toggle(ctx context.Context, object client.Object) error {
	if h.Get(ctx, client.ObjectKeyFromObject(object), object) == nil {
		return h.Delete(ctx, object)
	}
	return h.Create(ctx, object)
}

// roster is of what is there.
func (h *lateHub) roster(ctx context.Context, t *testing.T) *roster {
	t.Helper()
	var clusters clusterv1.ManagedClusterList
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	for _, list := range []client.ObjectList{&clusters, &sets, &bindings, &scores} {
		if err := h.List(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	r := newRoster()
	for i := range clusters.Items {
		r.setCluster(&clusters.Items[i])
	}
	for i := range sets.Items {
		r.setSet(sets.Items[i].Name, &sets.Items[i])
	}
	for _, b := range bindings.Items {
		r.setBinding(b.Namespace, b.Name, true)
	}
	for i := range scores.Items {
		r.setSheet(scores.Items[i].Namespace, scores.Items[i].Name, &scores.Items[i])
	}
	return r
}

// stale says what a gateway that begins anew would write.
func (h *lateHub) stale(ctx context.Context, t *testing.T, compiler *clustercel.Compiler) (all []string) {
	t.Helper()
	r := h.roster(ctx, t)
	var placements ocmclusterv1beta1.PlacementList
	if err := h.List(ctx, &placements); err != nil {
		t.Fatal(err)
	}
	for i := range placements.Items {
		p := &placements.Items[i]
		var list ocmclusterv1beta1.PlacementDecisionList
		if err := h.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingLabels{ocmclusterv1beta1.PlacementLabel: p.Name}); err != nil {
			t.Fatal(err)
		}
		var existing []*ocmclusterv1beta1.PlacementDecision
		for j := range list.Items {
			existing = append(existing, &list.Items[j])
		}
		slices.SortFunc(existing, func(a, b *ocmclusterv1beta1.PlacementDecision) int { return byNumber(a.Name, b.Name) })
		w := newWish(p, compiler)
		o := decide(p, w, r.availableTo(p.Namespace, w), 0, time.Now(), existing)
		there := byName(existing)
		for j := range o.slices {
			if is := there[o.slices[j].name]; is == nil || !isAs(is, p, &o.slices[j]) {
				all = append(all, fmt.Sprintf("%s/%s: %v should be %v", p.Namespace, o.slices[j].name, is, o.slices[j].clusters()))
			}
		}
		if len(existing) > len(o.slices) {
			all = append(all, fmt.Sprintf("%s/%s has %d decisions instead of %d", p.Namespace, p.Name, len(existing), len(o.slices)))
		}
		if diff := cmp.Diff(o.status(p, time.Now()), p.Status); diff != "" {
			all = append(all, fmt.Sprintf("%s/%s:\n%s", p.Namespace, p.Name, diff))
		}
	}
	return all
}

// Whatever happens while news are late, and some later than others: in the end every Placement
// has what it would be given by a gateway that begins anew.
func TestNoChangeIsLostHoweverLateItIsTold(t *testing.T) {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h := newLateHub(t, rand.New(rand.NewPCG(seed, 4)))
				metrics, err := newMetrics(nil)
				if err != nil {
					t.Fatal(err)
				}
				h.run(ctx, t, &Reconciler{
					Client: h, Live: h, Recorder: events.NewFakeRecorder(100000), Clock: clock.RealClock{}, metrics: metrics, compiler: compiler,
					roster: newRoster(), tally: newTally(), statuses: map[types.NamespacedName]*ocmclusterv1beta1.PlacementStatus{},
				})
				seconds := int64(2)
				for n, spec := range []func(*ocmclusterv1beta1.PlacementSpec){
					nil, one, func(spec *ocmclusterv1beta1.PlacementSpec) { one(spec); byUsage(spec) },
					func(spec *ocmclusterv1beta1.PlacementSpec) {
						spec.Tolerations = []ocmclusterv1beta1.Toleration{{Key: "maintenance", Operator: ocmclusterv1beta1.OperatorExists, TolerationSeconds: &seconds}}
					},
					func(spec *ocmclusterv1beta1.PlacementSpec) {
						spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
						spec.Predicates[0].RequiredClusterSelector.CELSelector.CELExpressions = []string{`managedCluster.status.clusterClaims.exists(c, c.value == "eu")`}
					},
				} {
					for _, namespace := range []string{"team", "other"} {
						p := placed(spec)
						p.Namespace, p.Name, p.UID = namespace, fmt.Sprint("p", n), types.UID(fmt.Sprint(namespace, n))
						p.Spec.PrioritizerPolicy.Mode = ocmclusterv1beta1.ModeExact
						if err := h.Create(ctx, p); err != nil {
							t.Fatal(err)
						}
					}
				}
				for range 150 {
					h.change(ctx, t)
					time.Sleep(h.while(60 * time.Millisecond))
				}
				time.Sleep(time.Minute)
				for _, stale := range h.stale(ctx, t, compiler) {
					t.Error(stale)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
