// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Claiming is the second step of a registration: may the applicant have the Cluster with its client ID,
// or a new one?

// claim is how an applicant gets its Cluster.
type claim int

const (
	// keep: the key owns the Cluster.
	keep claim = iota
	// take makes the key the owner of an existing Cluster.
	take
	// create creates the Cluster, with the key as its owner.
	create
)

// decideClaim decides from what the applicant may do with the Cluster that has its client ID.
func decideClaim(a *applicant) (claim, *refusal.Refusal) {
	if a.owns {
		return keep, nil
	}
	if a.cluster == nil {
		return create, refuseAllowance(a.allowed, nil)
	}
	return take, refuseAllowance(a.allowed, a.cluster)
}

// refuseAllowance rejects a new key for a Cluster that its token does not permit. The Cluster is nil if
// none has the request's clientID.
func refuseAllowance(allowed allowance, cluster *registrationv1alpha1.Cluster) *refusal.Refusal {
	if allowed.cluster != "" {
		if cluster == nil || cluster.Name != allowed.cluster {
			return conflict("the registration token is for Cluster %q only, and this client ID is not that Cluster's spec.clientID: "+
				"give the agent that client ID, or another token", allowed.cluster)
		}
		return nil
	}
	if cluster == nil || cluster.Annotations[AnnotationKey] == "" {
		return nil
	}
	return conflict("Cluster %q has registered with another key: if the agent with that key no longer exists, "+
		"remove the annotation %s from the Cluster, or give this agent a registration token with the annotation %s=%s; "+
		"otherwise give it a client ID of its own",
		cluster.Name, AnnotationKey, registrationv1alpha1.AnnotationForCluster, cluster.Name)
}

// claim returns the applicant's Cluster, of which its key is the recorded owner.
func (r *GrantReconciler) claim(ctx context.Context, a *applicant) (*registrationv1alpha1.Cluster, *refusal.Refusal, error) {
	cluster := a.cluster
	next, refused := decideClaim(a)
	if refused != nil || next == keep {
		return cluster, refused, nil
	}
	if next == create {
		cluster = desiredCluster(a)
		if refused, err := r.refuseName(ctx, cluster); refused != nil || err != nil {
			return nil, refused, err
		}
	}
	if refused, err := r.spend(ctx, a, cluster.Name); refused != nil || err != nil {
		return nil, refused, err
	}
	if next == take {
		return cluster, nil, r.take(ctx, cluster, a)
	}
	if err := r.Client.Create(ctx, cluster); err != nil {
		return nil, nil, fmt.Errorf("creating Cluster %q: %w", cluster.Name, err)
	}
	log.FromContext(ctx).Info("Created a Cluster for a new client ID", "cluster", cluster.Name)
	return cluster, nil, nil
}

// refuseName rejects a new Cluster whose name is in use. The name is a hash, so only the full client ID
// identifies a Cluster.
func (r *GrantReconciler) refuseName(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*refusal.Refusal, error) {
	var existing registrationv1alpha1.Cluster
	if found, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKeyFromObject(cluster), &existing, "reading Cluster %q", cluster.Name); !found {
		return nil, err
	}
	return conflict("Cluster %q has the name for this client ID but another client ID: start the agent with another one", cluster.Name), nil
}

// desiredCluster is the Cluster for a clientID that no Cluster has.
func desiredCluster(a *applicant) *registrationv1alpha1.Cluster {
	name := registrationv1alpha1.ClusterName(a.request.Spec.ClientID)
	cluster := &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.request.Namespace, Name: name, Finalizers: []string{ClusterFinalizer}},
		Spec:       registrationv1alpha1.ClusterSpec{ClientID: a.request.Spec.ClientID},
	}
	record(&cluster.ObjectMeta, a)
	labels := a.allowed.labelsOf(a.request)
	cluster.Labels = labels
	setOrDelete(&cluster.ObjectMeta, AnnotationBroughtLabels, broughtLabels(labels))
	setOrDelete(&cluster.ObjectMeta, AnnotationDroppedLabels, droppedLabels(a.request.Spec.ClusterLabels, func(key, value string) dropCause {
		return a.allowed.causeOf(key, value, labels)
	}))
	metav1.SetMetaDataLabel(&cluster.ObjectMeta, registrationv1alpha1.LabelCluster, name)
	return cluster
}

// record records on a Cluster which key owns it, and whether its member waits for approval.
func record(cluster *metav1.ObjectMeta, a *applicant) {
	metav1.SetMetaDataAnnotation(cluster, AnnotationKey, a.fingerprint)
	delete(cluster.Annotations, AnnotationVerificationKey)
	if key := a.request.Spec.VerificationKey; len(key) > 0 {
		metav1.SetMetaDataAnnotation(cluster, AnnotationVerificationKey, base64.StdEncoding.EncodeToString(key))
	}
	if !a.allowed.approved {
		metav1.SetMetaDataAnnotation(cluster, registrationv1alpha1.AnnotationApproval, registrationv1alpha1.ApprovalManual)
	}
}

// spend records one use of the token for the applicant, who gets that Cluster. The use is stored before
// anything is created: a gateway that was killed in between finds the request there and continues. The
// write fails if the token changed since it was read, so two concurrent clusters cannot both get the
// last use. A key that registers again with another request, for the same Cluster or not, needs another
// use.
func (r *GrantReconciler) spend(ctx context.Context, a *applicant, cluster string) (*refusal.Refusal, error) {
	allowed, use := a.allowed, string(a.request.UID)
	if allowed.uses == 0 {
		return nil, nil
	}
	used := usedBy(allowed.token)
	if slices.ContainsFunc(used, func(u string) bool { return strings.HasSuffix(u, "/"+use) }) {
		return nil, nil
	}
	if allowed.reachedUseLimit() {
		return refusal.New(registrationv1alpha1.RegistrationReasonTokenUseLimitReached, "%s", useLimitReached(allowed)), nil
	}
	used = append(used, cluster+"/"+use)
	return nil, reconcileutil.Patch(ctx, r.Client, allowed.token, func() {
		metav1.SetMetaDataAnnotation(&allowed.token.ObjectMeta, registrationv1alpha1.AnnotationUsedBy, strings.Join(used, ","))
	}, "recording a use of ClusterRegistrationToken %q", allowed.token.Name)
}

// take records the key that owns the Cluster from now on, before anything is created for it. The write
// fails if anybody else wrote in between. The credential of a former key is revoked first, because two
// agents must not be the same member.
func (r *GrantReconciler) take(ctx context.Context, cluster *registrationv1alpha1.Cluster, a *applicant) error {
	if cluster.Annotations[AnnotationKey] != "" {
		if err := r.revoke(ctx, cluster); err != nil {
			return err
		}
	}
	return patchCluster(ctx, r.Client, cluster, func() {
		record(&cluster.ObjectMeta, a)
		shareFacts(&cluster.ObjectMeta, a.allowed.labelsOf(a.request))
		setOrDelete(&cluster.ObjectMeta, AnnotationDroppedLabels, droppedLabels(a.request.Spec.ClusterLabels, func(key, value string) dropCause {
			if cluster.Labels[key] == value {
				return ""
			}
			return causeExists
		}))
	})
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

// patchCluster changes the Cluster's metadata, and adds the finalizer that everything recorded there
// needs.
func patchCluster(ctx context.Context, c client.Client, cluster *registrationv1alpha1.Cluster, change func()) error {
	return reconcileutil.Patch(ctx, c, cluster, func() {
		change()
		controllerutil.AddFinalizer(cluster, ClusterFinalizer)
	}, "recording on Cluster %q", cluster.Name)
}
