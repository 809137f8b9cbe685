// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// ClusterControllerName is the name of ClusterReconciler.
const ClusterControllerName = "cluster.status"

// lastSeenStep is the minimum progress of a heartbeat that is written to a Cluster: the MemberCluster
// has every one.
const lastSeenStep = 15 * time.Minute

// Reasons of a Cluster's condition Ready.
const (
	reasonJoined       = "Joined"
	reasonWaitCheckIn  = "WaitCheckIn"
	reasonNotJoined    = "NotJoined"
	reasonUnhealthy    = "Unhealthy"
	reasonMemberLeft   = "MemberLeft"
	reasonUnregistered = "NotRegistered"
	reasonUnapproved   = "WaitingForApproval"
)

// Reasons of a Cluster's condition LabelsAccepted.
const (
	reasonLabelsAccepted = "LabelsAccepted"
	reasonLabelsDropped  = "LabelsDropped"
)

// ClusterReconciler copies the state of a Cluster's member to the Cluster, and deletes the
// MemberCluster with the Cluster.
type ClusterReconciler struct {
	// Client writes, and reads the kinds of the registration and cluster groups, from a cache if it has
	// one.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Recorder records the events of Clusters. If nil, there are none.
	Recorder events.EventRecorder
	// Labels decides which labels of their Clusters members get.
	Labels LabelRule
	// Bundles counts the Works of members.
	Bundles bool
	// Concurrency is the number of Clusters that are reconciled at a time. Zero means one.
	Concurrency int
}

var _ reconcile.Reconciler = (*ClusterReconciler)(nil)

// SetupWithManager watches Clusters, the MemberClusters that were created for them, and their Works.
func (r *ClusterReconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named(ClusterControllerName).
		For(&registrationv1alpha1.Cluster{}).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(clusterOfMember)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency})
	if r.Bundles {
		b.Watches(&placementv1beta1.Work{}, handler.EnqueueRequestsFromMapFunc(r.clusterOfWork), builder.WithPredicates(deliveryChanged()))
	}
	return b.Complete(reconcileutil.RetryConflicts(r))
}

func clusterOfMember(_ context.Context, mc client.Object) []reconcile.Request {
	key := clusterKeyOf(mc)
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// clusterKeyOf is the Cluster for which a MemberCluster was created; its name is empty if there is
// none.
func clusterKeyOf(mc client.Object) types.NamespacedName {
	return types.NamespacedName{
		Namespace: mc.GetAnnotations()[registrationv1alpha1.AnnotationClusterNamespace],
		Name:      mc.GetAnnotations()[registrationv1alpha1.AnnotationCluster],
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *ClusterReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster registrationv1alpha1.Cluster
	if err := r.Client.Get(ctx, req.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	again, err := r.reconcile(ctx, &cluster)
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: again}, err)
}

func (r *ClusterReconciler) reconcile(ctx context.Context, cluster *registrationv1alpha1.Cluster) (again time.Duration, err error) {
	if !cluster.DeletionTimestamp.IsZero() {
		return 0, r.finalize(ctx, cluster)
	}
	mc, err := r.memberOf(ctx, cluster)
	if err != nil {
		return 0, err
	}
	if err := r.shareMetadata(ctx, mc, cluster); err != nil {
		return 0, err
	}
	bundles, err := r.readyBundles(ctx, mc)
	if err != nil {
		return 0, err
	}
	status := desiredClusterStatus(cluster, mc, r.Clock.Now())
	status.Display.ReadyBundles = bundles
	if equality.Semantic.DeepEqual(cluster.Status, status) {
		return 0, nil
	}
	if left := preparing(r.Clock, cluster); left > 0 && isExpected(cluster, mc) {
		return left, nil
	}
	before := conditionOf(cluster, registrationv1alpha1.ClusterConditionLabelsAccepted)
	cluster.Status = status
	if err := r.Client.Status().Update(ctx, cluster); err != nil {
		return 0, fmt.Errorf("writing the status of Cluster %q: %w", cluster.Name, err)
	}
	now := conditionOf(cluster, registrationv1alpha1.ClusterConditionLabelsAccepted)
	if r.Recorder != nil && now.Status == corev1.ConditionFalse && before.Message != now.Message {
		r.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, now.Reason, "Register", "%s", untrusted.Excerpt(now.Message, maxNote))
	}
	return 0, nil
}

// isExpected reports whether an agent is registered, or is being registered, and has not reported yet.
func isExpected(cluster *registrationv1alpha1.Cluster, mc *clusterv1beta1.MemberCluster) bool {
	if mc == nil {
		return cluster.Annotations[AnnotationKey] != "" // Its member is being created.
	}
	return mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent) == nil
}

// shareMetadata keeps the labels of the Cluster on its MemberCluster.
func (r *ClusterReconciler) shareMetadata(ctx context.Context, mc *clusterv1beta1.MemberCluster, cluster *registrationv1alpha1.Cluster) error {
	if mc == nil || !mc.DeletionTimestamp.IsZero() {
		return nil
	}
	return reconcileutil.Patch(ctx, r.Client, mc, func() { shareMetadata(mc, cluster, r.Labels) }, "writing the labels of MemberCluster %q", mc.Name)
}

func (r *ClusterReconciler) memberOf(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*clusterv1beta1.MemberCluster, error) {
	return MemberOf(ctx, r.Client, cluster)
}

// MemberOf returns the recorded MemberCluster of a Cluster, or nil if it does not exist or was
// re-created.
func MemberOf(ctx context.Context, hub client.Reader, cluster *registrationv1alpha1.Cluster) (*clusterv1beta1.MemberCluster, error) {
	mc, err := getMember(ctx, hub, cluster.Annotations[AnnotationMember])
	if mc == nil || err != nil || !isOrigin(mc, cluster) {
		return nil, err
	}
	return mc, nil
}

// finalize deletes the Cluster's MemberCluster under every possible name, waits until it is deleted,
// and deletes the requests for this Cluster.
func (r *ClusterReconciler) finalize(ctx context.Context, cluster *registrationv1alpha1.Cluster) error {
	if !controllerutil.ContainsFinalizer(cluster, ClusterFinalizer) {
		return nil
	}
	for _, name := range memberNames(cluster.Namespace, cluster.Name) {
		gone, err := r.deleteMember(ctx, cluster, name)
		if !gone || err != nil {
			return err
		}
	}
	if err := r.deleteRequests(ctx, cluster); err != nil {
		return err
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, cluster, ClusterFinalizer, "removing the finalizer of Cluster %q", cluster.Name)
}

func (r *ClusterReconciler) deleteMember(ctx context.Context, cluster *registrationv1alpha1.Cluster, name string) (gone bool, err error) {
	mc, err := getMember(ctx, r.Live, name)
	if mc == nil || err != nil || !isOrigin(mc, cluster) {
		return err == nil, err
	}
	if !mc.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, mc, client.Preconditions{UID: &mc.UID})); err != nil {
		return false, fmt.Errorf("deleting MemberCluster %q: %w", name, err)
	}
	return false, nil
}

func (r *ClusterReconciler) deleteRequests(ctx context.Context, cluster *registrationv1alpha1.Cluster) error {
	var list registrationv1alpha1.ClusterRegistrationList
	if err := r.Client.List(ctx, &list, client.InNamespace(cluster.Namespace)); err != nil {
		return fmt.Errorf("listing ClusterRegistrations: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Status.ClusterName != cluster.Name {
			continue
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &list.Items[i])); err != nil {
			return fmt.Errorf("deleting ClusterRegistration %q: %w", list.Items[i].Name, err)
		}
	}
	return nil
}

func desiredClusterStatus(cluster *registrationv1alpha1.Cluster, mc *clusterv1beta1.MemberCluster, now time.Time) registrationv1alpha1.ClusterStatus {
	status := *cluster.Status.DeepCopy()
	status.Namespace, status.Display.State = "", ""
	if mc != nil {
		status.Namespace = clusterv1beta1.MemberNamespace(mc.Name)
		status.Agent.Namespace = cmp.Or(status.Agent.Namespace, clusterv1beta1.SystemNamespace)
		status.Agent.LastSeen = desiredLastSeen(status.Agent.LastSeen, mc)
		status.Display.ReadyNodes, status.Display.SampleNode = displayNodes(mc)
	}
	if status.Agent.LastSeen.IsZero() {
		status.Display.State = registrationv1alpha1.ClusterStateWaitCheckIn
	}
	status.Conditions = registrationv1alpha1.WithCondition(status.Conditions, desiredReady(cluster, mc), now)
	if accepted := desiredLabelsAccepted(cluster); accepted != nil {
		status.Conditions = registrationv1alpha1.WithCondition(status.Conditions, *accepted, now)
	}
	return status
}

// displayNodes are the texts of two columns, empty until the agent has reported nodes.
func displayNodes(mc *clusterv1beta1.MemberCluster) (ready, sample string) {
	property := func(name clusterv1beta1.PropertyName) string { return mc.Status.Properties[name].Value }
	if all := property(clusterv1beta1.PropertyNodeCount); all != "" {
		ready = property(clusterv1beta1.PropertyReadyNodeCount) + "/" + all
	}
	return ready, property(clusterv1beta1.PropertySampleNode)
}

// desiredLastSeen advances in steps of lastSeenStep while the agent is connected, and is the exact last
// heartbeat when it is not.
func desiredLastSeen(shown metav1.Time, mc *clusterv1beta1.MemberCluster) metav1.Time {
	agent := mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil || mc.IsJoined() && agent.LastReceivedHeartbeat.Sub(shown.Time) < lastSeenStep {
		return shown
	}
	return agent.LastReceivedHeartbeat
}

// conditionOf is a condition of the Cluster; its fields are empty if it does not exist.
func conditionOf(cluster *registrationv1alpha1.Cluster, conditionType string) registrationv1alpha1.GenericCondition {
	for _, c := range cluster.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return registrationv1alpha1.GenericCondition{}
}

// notImported is the condition that prevents the import of a cluster with a kubeconfig; nil if nothing
// prevents it, or there is no kubeconfig.
func notImported(cluster *registrationv1alpha1.Cluster) *registrationv1alpha1.GenericCondition {
	for i := range cluster.Status.Conditions {
		c := &cluster.Status.Conditions[i]
		if c.Type == registrationv1alpha1.ClusterConditionImported && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

func desiredReady(cluster *registrationv1alpha1.Cluster, mc *clusterv1beta1.MemberCluster) registrationv1alpha1.GenericCondition {
	ready := func(status corev1.ConditionStatus, reason, message string) registrationv1alpha1.GenericCondition {
		return registrationv1alpha1.GenericCondition{
			Type: registrationv1alpha1.ClusterConditionReady, Status: status, Reason: reason, Message: message,
		}
	}
	member := cluster.Annotations[AnnotationMember]
	if mc == nil && member == "" {
		if why := notImported(cluster); why != nil {
			return ready(corev1.ConditionFalse, why.Reason, "not imported: "+why.Message)
		}
		return ready(corev1.ConditionFalse, reasonUnregistered, "no agent has registered for this cluster yet")
	}
	if refused := refuseMember(cluster, mc); refused != nil || mc == nil {
		return ready(corev1.ConditionFalse, reasonMemberLeft, fmt.Sprintf(
			"MemberCluster %q was deleted: remove the annotation %s to let the cluster join again, or delete this Cluster",
			member, AnnotationMemberUID))
	}
	agent := mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return ready(corev1.ConditionFalse, reasonWaitCheckIn, "waiting for the agent's first report")
	}
	if since, silent := mc.SilentSince(); silent {
		return ready(corev1.ConditionFalse, reasonNotJoined, fmt.Sprintf("no heartbeat of the agent since %s: see the condition Joined of MemberCluster %s",
			since.UTC().Format(time.RFC3339), mc.Name))
	}
	if !mc.IsJoined() {
		return ready(corev1.ConditionFalse, reasonNotJoined, "the agent has not joined: see its conditions in MemberCluster "+mc.Name)
	}
	if !mc.IsApproved() {
		return ready(corev1.ConditionFalse, reasonUnapproved, fmt.Sprintf(
			"joined, and waiting for approval: take the taint %s from MemberCluster %q to let placements use it", clusterv1beta1.TaintUnapproved, mc.Name))
	}
	if !meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionHealthy) {
		return ready(corev1.ConditionFalse, reasonUnhealthy, "the agent finds its own cluster unhealthy: see its conditions in MemberCluster "+mc.Name)
	}
	return ready(corev1.ConditionTrue, reasonJoined, "joined")
}
