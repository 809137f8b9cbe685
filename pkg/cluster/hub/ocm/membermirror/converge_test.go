// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// meddler is everybody else who writes to the two objects of a member, just before the controller
// does, while there are writes left.
type meddler struct {
	random *rand.Rand
	left   int
	// wrote counts the controller's writes.
	wrote int
}

func (m *meddler) before(ctx context.Context, hub client.Client) error {
	m.wrote++
	for m.left > 0 && m.random.IntN(2) == 0 {
		m.left--
		if err := m.meddle(ctx, hub); err != nil {
			return err
		}
	}
	return nil
}

func (m *meddler) meddle(ctx context.Context, hub client.Client) error {
	member, cluster := &clusterv1beta1.MemberCluster{}, &clusterv1.ManagedCluster{}
	if err := hub.Get(ctx, client.ObjectKey{Name: "a"}, member); err != nil {
		return err
	}
	if err := hub.Get(ctx, client.ObjectKey{Name: "a"}, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	text := fmt.Sprint(m.random.IntN(3))
	switch m.random.IntN(7) {
	case 0, 1:
		cluster.Spec.HubAcceptsClient = m.random.IntN(2) == 0
	case 2, 3:
		member.Spec.Taints = nil
		if m.random.IntN(2) == 0 {
			member.Spec.Taints = []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule}}
		}
	case 4:
		member.Labels = map[string]string{"of-member": text}
	case 5:
		metav1.SetMetaDataLabel(&cluster.ObjectMeta, "of-people", text)
		cluster.Spec.Taints = append(cluster.Spec.Taints, clusterv1.Taint{Key: "of-people-" + text, Effect: clusterv1.TaintEffectNoSelect})
	case 6:
		// Its other controllers release it when nothing of it is left.
		cluster.Finalizers = nil
		if err := hub.Update(ctx, cluster); err != nil {
			return err
		}
		return hub.Delete(ctx, cluster)
	}
	if err := hub.Update(ctx, member); err != nil {
		return err
	}
	return hub.Update(ctx, cluster)
}

// The same as TestProperty_DecisionsConverge for the objects themselves, with labels, taints and
// deletions. Whatever is written just before the controller writes, in the end both objects agree,
// and writes stop.
func TestProperty_ObjectsConverge(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(200) {
		m := &meddler{random: rand.New(rand.NewPCG(seed, 2))}
		hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1.ManagedCluster{}, &clusterv1beta1.MemberCluster{}).
			WithObjects(aMember()).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				object.SetUID("of-the-cluster") // as an API server does, and this client does not
				return c.Create(ctx, object, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := m.before(ctx, c); err != nil {
					return err
				}
				return c.Patch(ctx, object, patch, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				if err := m.before(ctx, c); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			},
		}).Build()
		r := reconcileutil.RetryConflicts(&Reconciler{Client: hub})
		settle := func() {
			t.Helper()
			for look := 0; ; look++ {
				before := m.wrote
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if cluster := (&clusterv1.ManagedCluster{}); m.wrote == before && hub.Get(t.Context(), client.ObjectKey{Name: "a"}, cluster) == nil {
					return
				}
				if look > 50 {
					t.Fatalf("seed %d: it keeps writing", seed)
				}
			}
		}
		settle()
		for range 4 {
			m.left = 1 + m.random.IntN(4)
			if err := m.meddle(t.Context(), hub); err != nil {
				t.Fatal(err)
			}
			settle()
		}
		m.left = 0
		settle()
		checkAgreed(t, seed, hub)
	}
}

// A backup restores both objects, and the MemberCluster gets another UID.
func TestReconcile_KeepsMirrorOfRestoredMember(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for approved, taints := range map[bool][]clusterv1beta1.Taint{true: nil, false: {{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule}}} {
		previous, mirror := aMember(), &clusterv1.ManagedCluster{}
		mirror.Name, mirror.UID, previous.UID = previous.Name, "of-the-cluster", "of-the-backup"
		begin(mirror, previous)
		mirror.Spec.HubAcceptsClient = true
		mirror.Annotations[acceptedAnnotation] = waiting // What an administrator changed for the previous member.
		member := aMember()
		member.Spec.Taints = taints
		hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(mirror, member).WithObjects(mirror, member).Build()
		r := reconcileutil.RetryConflicts(&Reconciler{Client: hub})
		for range 3 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "a"}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(mirror), mirror); err != nil || mirror.DeletionTimestamp != nil {
			t.Fatalf("approved %t: the mirror is deleted: %v", approved, err)
		}
		if !Shows(mirror, member) || mirror.Spec.HubAcceptsClient != approved {
			t.Errorf("approved %t: accepted %t, annotations %v", approved, mirror.Spec.HubAcceptsClient, mirror.Annotations)
		}
	}
}

func checkAgreed(t *testing.T, seed uint64, hub client.Client) {
	t.Helper()
	member, cluster := &clusterv1beta1.MemberCluster{}, &clusterv1.ManagedCluster{}
	for _, object := range []client.Object{member, cluster} {
		if err := hub.Get(t.Context(), client.ObjectKey{Name: "a"}, object); err != nil {
			t.Fatal(err)
		}
	}
	if member.IsApproved() != cluster.Spec.HubAcceptsClient {
		t.Errorf("seed %d: one lets it in, the other does not: %v, %v", seed, member.IsApproved(), cluster.Spec.HubAcceptsClient)
	}
	for key, value := range member.Labels {
		if cluster.Labels[key] != value {
			t.Errorf("seed %d: label %s=%s is %q", seed, key, value, cluster.Labels[key])
		}
	}
	if _, left := cluster.Labels["env"]; left != (member.Labels["env"] != "") {
		t.Errorf("seed %d: a label that the member lost is still there", seed)
	}
}
