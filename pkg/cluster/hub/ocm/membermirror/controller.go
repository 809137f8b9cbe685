// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	hubcluster "fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the controller's name.
const Name = "membercluster.view"

// Reconciler mirrors members as ManagedClusters.
type Reconciler struct {
	// Client writes; it reads from a cache if it has one.
	Client client.Client
	// Workers is how many members are reconciled at a time. Zero means one.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches MemberClusters, and ManagedClusters of their names.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1beta1.MemberCluster{}).
		Watches(&clusterv1.ManagedCluster{}, &handler.EnqueueRequestForObject{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Members are those that ManagedClusters mirror, read from Hub.
type Members struct{ Hub client.Reader }

// IsMember is true if a ManagedCluster mirrors a member.
func (m Members) IsMember(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error) {
	member, err := m.shownBy(ctx, cluster)
	return member != nil, err
}

// HasAgent is true if a ManagedCluster mirrors a member, or add-on fleetgate-agent made its cluster one.
func (m Members) HasAgent(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error) {
	made := cluster.Annotations[addonv1alpha1.AgentMemberAnnotation]
	if made == "" {
		return m.IsMember(ctx, cluster)
	}
	member := &clusterv1beta1.MemberCluster{}
	exists, err := reconcileutil.GetIfExists(ctx, m.Hub, client.ObjectKey{Name: cluster.Name}, member, "reading MemberCluster %q", cluster.Name)
	return exists && string(member.UID) == made, err
}

// shownBy is the member that a ManagedCluster mirrors, or nil.
func (m Members) shownBy(ctx context.Context, cluster *clusterv1.ManagedCluster) (*clusterv1beta1.MemberCluster, error) {
	if cluster.Annotations[MemberAnnotation] == "" {
		return nil, nil
	}
	member := &clusterv1beta1.MemberCluster{}
	if err := m.Hub.Get(ctx, client.ObjectKey{Name: cluster.Name}, member); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !Shows(cluster, member) {
		return nil, nil
	}
	return member, nil
}

// Report returns a function that writes a member's status into the ManagedCluster that mirrors it,
// and nil if it mirrors none.
func (m Members) Report(ctx context.Context, cluster *clusterv1.ManagedCluster) (func(*clusterv1.ManagedClusterStatus), error) {
	member, err := m.shownBy(ctx, cluster)
	if member == nil || err != nil {
		return nil, err
	}
	return func(status *clusterv1.ManagedClusterStatus) { desiredStatus(status, member) }, nil
}

// ForeignUser is the user of the agent of a mirrored member, if another product manages that
// identity and the ManagedCluster says so already. If unset, only the member's account counts.
func (m Members) ForeignUser(ctx context.Context, cluster *clusterv1.ManagedCluster) (string, error) {
	recorded := cluster.Annotations[IdentityAnnotation]
	if recorded == "" {
		return "", nil
	}
	member, err := m.shownBy(ctx, cluster)
	// What people wrote there identifies nobody.
	if member == nil || err != nil || hubcluster.FleetSeats().ForeignUser(member) != recorded {
		return "", err
	}
	return recorded, nil
}

// Pending says why a member's mirror is not gone yet: the member's agent still has to clean up its
// orders. If empty, there is none.
func Pending(ctx context.Context, hub client.Reader, member string) (string, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := hub.Get(ctx, client.ObjectKey{Name: member}, cluster); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if shown, err := (Members{hub}).IsMember(ctx, cluster); !shown || err != nil {
		return "", err
	}
	return fmt.Sprintf("ManagedCluster %q is not gone yet", member), nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(r.reconcile(ctx, req.Name)))
}

func (r *Reconciler) reconcile(ctx context.Context, name string) error {
	member, cluster := &clusterv1beta1.MemberCluster{}, &clusterv1.ManagedCluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ManagedCluster %q: %w", name, err)
	}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, member)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading MemberCluster %q: %w", name, err)
	case err != nil || member.DeletionTimestamp != nil:
		return r.end(ctx, cluster, err != nil)
	case cluster.UID == "" && !isShownYet(member):
		return nil
	case cluster.UID == "":
		cluster.Name = name
		begin(cluster, member)
		if err := r.Client.Create(ctx, cluster); err != nil {
			return fmt.Errorf("showing member %q as a ManagedCluster: %w", name, err)
		}
	case cluster.DeletionTimestamp != nil && cluster.Annotations[MemberAnnotation] != "" && !Shows(cluster, member):
		// It belongs to a previous MemberCluster.
		return r.end(ctx, cluster, true)
	case cluster.DeletionTimestamp != nil:
		return nil
	case cluster.Annotations[MemberAnnotation] != "" && !Shows(cluster, member):
		// A backup restored the MemberCluster with another UID. Without the ManagedCluster the member would
		// lose its ManifestWorks. Who was accepted before does not count: it may be another member.
		delete(cluster.Annotations, acceptedAnnotation)
	case !Shows(cluster, member):
		return nil
	}
	return r.follow(ctx, member, cluster)
}

// end deletes the mirror of a leaving member. A ManagedCluster of somebody else lacks the
// annotation. Its works end first, while the member's agent can clean up; an agent that is gone is
// not waited for.
func (r *Reconciler) end(ctx context.Context, cluster *clusterv1.ManagedCluster, gone bool) error {
	if cluster.UID == "" || cluster.Annotations[MemberAnnotation] == "" {
		return nil
	}
	if cluster.DeletionTimestamp != nil {
		if !gone || cluster.Annotations[managedcluster.ForceDeleteAnnotation] == "true" {
			return nil
		}
		base := cluster.DeepCopy()
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, managedcluster.ForceDeleteAnnotation, "true")
		if err := r.Client.Patch(ctx, cluster, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("saying of ManagedCluster %q that its member is gone: %w", cluster.Name, err)
		}
		return nil
	}
	if err := r.Client.Delete(ctx, cluster, client.Preconditions{UID: &cluster.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ManagedCluster %q, whose member was deleted: %w", cluster.Name, err)
	}
	return nil
}

// follow writes differences, in either direction.
func (r *Reconciler) follow(ctx context.Context, member *clusterv1beta1.MemberCluster, cluster *clusterv1.ManagedCluster) error {
	letIn := decide(cluster.Annotations[acceptedAnnotation], member.Annotations[arrivedAnnotation], member.IsApproved(), cluster.Spec.HubAcceptsClient)
	// The decision is recorded first, so that a change in between is noticed.
	if err := r.write(ctx, member, cluster, letIn); err != nil {
		return err
	}
	if member.IsApproved() != letIn {
		_, decision, _ := strings.Cut(cluster.Annotations[acceptedAnnotation], pending)
		if err := r.approve(ctx, member, letIn, decision); err != nil {
			return err
		}
		if err := r.write(ctx, member, cluster, letIn); err != nil {
			return err
		}
	}
	if letIn && meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionHubAccepted) == nil {
		// The accepting controller is about to write the condition, and reports the rest with it.
		return nil
	}
	return reconcileutil.PatchStatus(ctx, r.Client, cluster, func() {
		desiredStatus(&cluster.Status, member)
	}, "following member %q with the status of its ManagedCluster", member.Name)
}

// write updates the ManagedCluster, if it differs.
func (r *Reconciler) write(ctx context.Context, member *clusterv1beta1.MemberCluster, cluster *clusterv1.ManagedCluster, letIn bool) error {
	return reconcileutil.Patch(ctx, r.Client, cluster, func() { desired(cluster, member, letIn) }, "following member %q with its ManagedCluster", member.Name)
}

// approve writes the decision, and its identity, to the member.
func (r *Reconciler) approve(ctx context.Context, member *clusterv1beta1.MemberCluster, letIn bool, decision string) error {
	return reconcileutil.Patch(ctx, r.Client, member, func() {
		metav1.SetMetaDataAnnotation(&member.ObjectMeta, arrivedAnnotation, decision)
		if letIn {
			member.Spec.Taints = slices.DeleteFunc(slices.Clone(member.Spec.Taints), func(t clusterv1beta1.Taint) bool { return t.Key == clusterv1beta1.TaintUnapproved })
		} else {
			member.Spec.Taints = append(slices.Clone(member.Spec.Taints), clusterv1beta1.Taint{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule})
		}
	}, "saying of MemberCluster %q what was decided of its ManagedCluster", member.Name)
}

// authorityOf are the certificates that verify the member's API server, if it reported them.
func authorityOf(member *clusterv1beta1.MemberCluster) []byte {
	content, err := base64.StdEncoding.DecodeString(member.Status.Properties[clusterv1beta1.PropertyCertificateAuthority].Value)
	if err != nil {
		//lint:ignore nilerr What an agent says of itself need not be right, and is nobody's error.
		return nil
	}
	return content
}
