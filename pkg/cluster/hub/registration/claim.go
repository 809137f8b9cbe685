// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// clusterFor returns the Cluster of the request: the one that its key owns or that was transferred to
// it, or otherwise the one that its token permits.
func (r *GrantReconciler) clusterFor(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (*registrationv1alpha1.Cluster, *refusal.Refusal, error) {
	var clusters registrationv1alpha1.ClusterList
	// Only the result is copied.
	if err := r.Client.List(ctx, &clusters, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Clusters: %w", err)
	}
	cluster := clusterOf(clusters.Items, request.Spec.ClientID)
	if cluster != nil {
		cluster = cluster.DeepCopy()
		if refused := refuseCluster(cluster); refused != nil {
			return nil, refused, nil
		}
		if cluster.Annotations[AnnotationKey] == sealing.Fingerprint(request.Spec.PublicKey) {
			return cluster, nil, nil
		}
		if isTransferred(cluster, request) {
			return cluster, nil, r.claim(ctx, cluster, request, allowance{approved: true})
		}
	}
	allowed, refused, err := r.allowanceFor(ctx, request)
	if refused != nil || err != nil {
		return nil, refused, err
	}
	if refused := refuseAllowance(allowed, cluster); refused != nil {
		return nil, refused, nil
	}
	if cluster == nil {
		return r.createCluster(ctx, request, allowed)
	}
	if refused, err := r.spend(ctx, request, cluster.Name, allowed); refused != nil || err != nil {
		return nil, refused, err
	}
	return cluster, nil, r.claim(ctx, cluster, request, allowed)
}

// createCluster creates the Cluster for a new clientID. Its name is a hash, so only the full clientID
// identifies it.
func (r *GrantReconciler) createCluster(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, allowed allowance) (*registrationv1alpha1.Cluster, *refusal.Refusal, error) {
	wanted := desiredCluster(request, allowed)
	var taken registrationv1alpha1.Cluster
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(wanted), &taken)
	if err == nil {
		return nil, conflict("Cluster %q has the name for this client ID but another client ID: start the agent with another one", wanted.Name), nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("reading Cluster %q: %w", wanted.Name, err)
	}
	if refused, err := r.spend(ctx, request, wanted.Name, allowed); refused != nil || err != nil {
		return nil, refused, err
	}
	if err := r.Client.Create(ctx, wanted); err != nil {
		return nil, nil, fmt.Errorf("creating Cluster %q: %w", wanted.Name, err)
	}
	log.FromContext(ctx).Info("Created a Cluster for a new client ID", "cluster", wanted.Name)
	return wanted, nil, nil
}

func refuseCluster(cluster *registrationv1alpha1.Cluster) *refusal.Refusal {
	if !cluster.DeletionTimestamp.IsZero() {
		return waiting("Cluster %q is being deleted; the request is retried when it is deleted", cluster.Name)
	}
	if cluster.Labels[registrationv1alpha1.LabelClusterManagement] != "" {
		return conflict("Cluster %q is registered by another manager, as its label %s says",
			cluster.Name, registrationv1alpha1.LabelClusterManagement)
	}
	if sentence := refuseMemberName(cluster.Name); sentence != "" {
		return conflict("%s", sentence)
	}
	return nil
}

// claim records the key that owns the Cluster from now on, before anything is created for it. The write
// fails if anybody else wrote in between. The credential of a former key is revoked first, because two
// agents must not be the same member.
func (r *GrantReconciler) claim(ctx context.Context, cluster *registrationv1alpha1.Cluster, request *registrationv1alpha1.ClusterRegistration, allowed allowance) error {
	if cluster.Annotations[AnnotationKey] != "" {
		if err := r.revoke(ctx, cluster); err != nil {
			return err
		}
	}
	base := cluster.DeepCopy()
	record(&cluster.ObjectMeta, request, allowed)
	shareFacts(&cluster.ObjectMeta, allowed.labelsOf(request))
	setOrDelete(&cluster.ObjectMeta, AnnotationDroppedLabels, droppedLabels(request.Spec.ClusterLabels, func(key, value string) dropCause {
		if cluster.Labels[key] == value {
			return ""
		}
		return causeExists
	}))
	return patchCluster(ctx, r.Client, cluster, base)
}

// shareFacts sets what the agent found out about its cloud on a Cluster that existed before. Other
// labels of such a Cluster are its administrator's.
func shareFacts(cluster *metav1.ObjectMeta, brought map[string]string) {
	facts := map[string]string{}
	for _, key := range []string{registrationv1alpha1.LabelLocation, registrationv1alpha1.LabelResourceGroup, registrationv1alpha1.LabelSubscription} {
		value, ok := brought[key]
		if _, set := cluster.Labels[key]; ok && !set {
			facts[key] = value
			metav1.SetMetaDataLabel(cluster, key, value)
		}
	}
	if all := strings.Trim(cluster.Annotations[AnnotationBroughtLabels]+","+broughtLabels(facts), ","); len(facts) > 0 {
		metav1.SetMetaDataAnnotation(cluster, AnnotationBroughtLabels, all)
	}
}

// revoke ends every token of the Cluster's member: pkg/cluster/hub/membership re-creates the Secret to
// which they are bound.
func (r *GrantReconciler) revoke(ctx context.Context, cluster *registrationv1alpha1.Cluster) error {
	mc, err := getMember(ctx, r.Live, cluster.Annotations[AnnotationMember])
	if mc == nil || err != nil || !isOrigin(mc, cluster) {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(mc.Name), Name: clusterv1beta1.AgentCredentialSecret,
	}}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("revoking the credential of member %q: %w", mc.Name, err)
	}
	log.FromContext(ctx).Info("Moved a Cluster to another agent and revoked the former one's credential", "cluster", cluster.Name, "member", mc.Name)
	return nil
}
