// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// Granting is the third step of a registration: the member of the Cluster, and the credential of its
// agent.

// grant finds or creates the Cluster's member, and writes a credential into the status when
// pkg/cluster/hub/membership has prepared the member.
func (r *GrantReconciler) grant(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, cluster *registrationv1alpha1.Cluster,
	status *registrationv1alpha1.ClusterRegistrationStatus) (*refusal.Refusal, error) {
	key, err := r.agentKey(ctx, request.Spec.PublicKey)
	if err != nil {
		return nil, err
	}
	mc, refused, err := r.memberOf(ctx, cluster, key)
	if refused != nil || err != nil {
		return refused, err
	}
	if err := r.recordAgentKey(ctx, mc, key); err != nil {
		return nil, err
	}
	status.ClusterName = cluster.Name
	if refused := refuseUnready(mc); refused != nil {
		return refused, nil
	}
	bound, err := credentialSecret(ctx, r.Live, mc.Name)
	if err != nil {
		return nil, err
	}
	if bound == nil {
		return waiting("the Secret to which the tokens of member %q are bound is being made", mc.Name), nil
	}
	return nil, r.seal(ctx, request, mc, bound.UID, status)
}

// memberOf returns the Cluster's MemberCluster. It creates one, with the agent's key, if there never
// was one.
func (r *GrantReconciler) memberOf(ctx context.Context, cluster *registrationv1alpha1.Cluster, key string) (*clusterv1beta1.MemberCluster, *refusal.Refusal, error) {
	if name := cluster.Annotations[AnnotationMember]; name != "" && cluster.Annotations[AnnotationMemberUID] != "" {
		mc, err := getMember(ctx, r.Live, name)
		if err != nil {
			return nil, nil, err
		}
		return mc, refuseMember(cluster, mc), nil
	}
	mc, refused, err := r.makeMember(ctx, cluster, key)
	if refused != nil || err != nil {
		return nil, refused, err
	}
	return mc, nil, patchCluster(ctx, r.Client, cluster, func() {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, AnnotationMember, mc.Name)
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, AnnotationMemberUID, string(mc.UID))
	})
}

// refuseMember rejects a request if its Cluster's MemberCluster, nil if it does not exist, cannot be
// given to it. A Cluster records that it had one.
func refuseMember(cluster *registrationv1alpha1.Cluster, mc *clusterv1beta1.MemberCluster) *refusal.Refusal {
	name, uid := cluster.Annotations[AnnotationMember], cluster.Annotations[AnnotationMemberUID]
	if uid == "" {
		return nil
	}
	if mc != nil && string(mc.UID) == uid && mc.DeletionTimestamp.IsZero() {
		if isOrigin(mc, cluster) {
			return nil
		}
		return conflict("MemberCluster %q was not created for Cluster %q: remove the annotations %s and %s from the Cluster",
			mc.Name, cluster.Name, AnnotationMember, AnnotationMemberUID)
	}
	return conflict("MemberCluster %q of Cluster %q was deleted, so this cluster has left: to let it join again, "+
		"remove the annotation %s from the Cluster, or delete the Cluster", name, cluster.Name, AnnotationMemberUID)
}

// makeMember uses the first name that is free, or that was already used for this Cluster. It never
// adopts a MemberCluster of another origin.
func (r *GrantReconciler) makeMember(ctx context.Context, cluster *registrationv1alpha1.Cluster, key string) (*clusterv1beta1.MemberCluster, *refusal.Refusal, error) {
	for _, name := range memberNames(cluster.Namespace, cluster.Name) {
		mc, err := getMember(ctx, r.Live, name)
		if err != nil {
			return nil, nil, err
		}
		if mc == nil {
			mc, err = r.createMember(ctx, cluster, name, key)
			return mc, nil, err
		}
		if !isOrigin(mc, cluster) {
			continue
		}
		if !mc.DeletionTimestamp.IsZero() {
			return nil, waiting("MemberCluster %q is still leaving; the request is retried when it is deleted", name), nil
		}
		return mc, nil, nil
	}
	return nil, conflict("no name is free for the member: MemberClusters %q belong to others; delete one of them, or make the Cluster again with another name",
		memberNames(cluster.Namespace, cluster.Name)), nil
}

// createMember first verifies that the Cluster did not change since it was read: in an outdated cache a
// Cluster could appear to never have had a member.
func (r *GrantReconciler) createMember(ctx context.Context, cluster *registrationv1alpha1.Cluster, name, key string) (*clusterv1beta1.MemberCluster, error) {
	var live registrationv1alpha1.Cluster
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &live); err != nil {
		return nil, fmt.Errorf("reading Cluster %q: %w", cluster.Name, err)
	}
	if live.ResourceVersion != cluster.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: registrationv1alpha1.GroupName, Resource: "clusters"},
			cluster.Name, errors.New("it has changed since it was read"))
	}
	mc := desiredMember(cluster, name, r.Labels)
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, AnnotationAgentKey, key)
	membership.Mark(mc) // This saves the first write there.
	if err := r.Client.Create(ctx, mc); err != nil {
		return nil, fmt.Errorf("creating MemberCluster %q: %w", name, err)
	}
	return mc, nil
}

// desiredMember is the MemberCluster for a Cluster. Its identity is the account that
// pkg/cluster/hub/membership creates in the member's namespace.
func desiredMember(cluster *registrationv1alpha1.Cluster, name string, rule LabelRule) *clusterv1beta1.MemberCluster {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	shareMetadata(mc, cluster, rule)
	mc.Spec.Identity.Kind = "ServiceAccount"
	mc.Spec.Identity.Name = clusterv1beta1.AgentAccount
	mc.Spec.Identity.Namespace = clusterv1beta1.MemberNamespace(name)
	if cluster.Annotations[registrationv1alpha1.AnnotationApproval] == registrationv1alpha1.ApprovalManual {
		mc.Spec.Taints = []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule}}
	}
	return mc
}

// shareMetadata sets a MemberCluster's origin, which nobody can change, the facts about its
// infrastructure, and the labels of its Cluster. Labels that were removed from the Cluster are removed;
// labels that somebody set on the MemberCluster itself stay.
func shareMetadata(mc *clusterv1beta1.MemberCluster, cluster *registrationv1alpha1.Cluster, rule LabelRule) {
	labels, selfAssigned := memberLabels(cluster, rule)
	for key := range strings.SplitSeq(mc.Annotations[AnnotationClusterLabels], ",") {
		if _, ok := labels[key]; !ok && !isReserved(key) {
			delete(mc.Labels, key)
		}
	}
	for key, value := range labels {
		metav1.SetMetaDataLabel(&mc.ObjectMeta, key, value)
	}
	for name, value := range map[string]string{
		AnnotationClusterUID:                            string(cluster.UID),
		registrationv1alpha1.AnnotationCluster:          cluster.Name,
		registrationv1alpha1.AnnotationClusterNamespace: cluster.Namespace,
		clusterv1beta1.AnnotationProperties:             cluster.Annotations[clusterv1beta1.AnnotationProperties],
		AnnotationClusterLabels:                         strings.Join(slices.Sorted(maps.Keys(labels)), ","),
		AnnotationSelfAssignedLabels:                    strings.Join(selfAssigned, ","),
	} {
		setOrDelete(&mc.ObjectMeta, name, value)
	}
}

// isOrigin reports whether the MemberCluster was created for that Cluster. Only the MemberCluster's
// annotation counts: namespace administrators can write anything on their Clusters.
func isOrigin(mc *clusterv1beta1.MemberCluster, cluster *registrationv1alpha1.Cluster) bool {
	return mc.Annotations[AnnotationClusterUID] == string(cluster.UID)
}

// getMember reads a MemberCluster, or nil if there is none. Only the API server knows whether a name is
// free, because a cache may lag.
func getMember(ctx context.Context, from client.Reader, name string) (*clusterv1beta1.MemberCluster, error) {
	if name == "" {
		return nil, nil
	}
	var mc clusterv1beta1.MemberCluster
	if found, err := reconcileutil.GetIfExists(ctx, from, client.ObjectKey{Name: name}, &mc, "reading MemberCluster %q", name); !found {
		return nil, err
	}
	return &mc, nil
}

// agentKey is the value of AnnotationAgentKey on this hub for an agent's key.
func (r *GrantReconciler) agentKey(ctx context.Context, key []byte) (string, error) {
	hub := r.hub.Load()
	if hub == nil {
		namespace := &corev1.Namespace{}
		if err := r.Live.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
			return "", fmt.Errorf("reading namespace %q: %w", metav1.NamespaceSystem, err)
		}
		uid := string(namespace.UID)
		hub = &uid
		r.hub.Store(hub)
	}
	return *hub + "/" + base64.StdEncoding.EncodeToString(key), nil
}

// recordAgentKey records the key of a member's agent, if it changed.
func (r *GrantReconciler) recordAgentKey(ctx context.Context, mc *clusterv1beta1.MemberCluster, key string) error {
	if mc.Annotations[AnnotationAgentKey] == key {
		return nil
	}
	base := mc.DeepCopy()
	metav1.SetMetaDataAnnotation(&mc.ObjectMeta, AnnotationAgentKey, key)
	if err := r.Client.Patch(ctx, mc, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("recording the key of the agent on MemberCluster %q: %w", mc.Name, err)
	}
	return nil
}

// refuseUnready returns why the member cannot be given a token yet, and nil if it can.
func refuseUnready(mc *clusterv1beta1.MemberCluster) *refusal.Refusal {
	ready := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionReadyToJoin)
	if ready == nil || ready.ObservedGeneration < mc.Generation {
		return waiting("MemberCluster %q is being prepared", mc.Name)
	}
	if ready.Status != metav1.ConditionTrue {
		return waiting("MemberCluster %q is not ready to join: %s", mc.Name, ready.Message)
	}
	return nil
}

// seal writes an encrypted credential for the member into the status.
func (r *GrantReconciler) seal(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, mc *clusterv1beta1.MemberCluster, bound types.UID,
	status *registrationv1alpha1.ClusterRegistrationStatus) error {
	credential, err := r.credentialFor(ctx, mc, bound)
	if err != nil {
		return err
	}
	status.CredentialUID = bound
	if err := r.recordExpiry(ctx, request, credential.Expires); err != nil {
		return err
	}
	status.SealedToken, err = sealing.Seal(credential, request.Spec.PublicKey, request.UID, request.Spec.ClientID)
	if err != nil {
		return fmt.Errorf("answering ClusterRegistration %q: %w", request.Name, err)
	}
	status.Granted = true
	return nil
}

// credentialSecret reads the metadata of the Secret to which a member's tokens are bound; nil if it
// does not exist. Only its UID matters.
func credentialSecret(ctx context.Context, from client.Reader, member string) (*metav1.PartialObjectMetadata, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(member), Name: clusterv1beta1.AgentCredentialSecret}
	if found, err := reconcileutil.GetIfExists(ctx, from, key, secret, "reading the credential Secret of member %q", member); !found {
		return nil, err
	}
	return secret, nil
}

// credentialFor requests a token of the member's account, bound to the Secret whose deletion revokes
// it.
func (r *GrantReconciler) credentialFor(ctx context.Context, mc *clusterv1beta1.MemberCluster, bound types.UID) (sealing.Credential, error) {
	seconds := int64(r.lifetime().Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1",
			Kind:       "Secret",
			Name:       clusterv1beta1.AgentCredentialSecret,
			UID:        bound,
		},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(mc.Name),
		Name:      clusterv1beta1.AgentAccount,
	}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return sealing.Credential{}, fmt.Errorf("requesting a token for member %q: %w", mc.Name, err)
	}
	return sealing.Credential{
		Member:  mc.Name,
		Token:   request.Status.Token,
		Expires: request.Status.ExpirationTimestamp.Time,
	}, nil
}

// recordExpiry records the credential's expiry if the API server granted less time than requested.
// Otherwise it follows from the time of the grant.
func (r *GrantReconciler) recordExpiry(ctx context.Context, request *registrationv1alpha1.ClusterRegistration, expires time.Time) error {
	if expires.Add(grantSlack).After(r.Clock.Now().Add(r.lifetime())) {
		return nil
	}
	return reconcileutil.Patch(ctx, r.Client, request, func() {
		metav1.SetMetaDataAnnotation(&request.ObjectMeta, AnnotationCredentialExpires, expires.UTC().Format(time.RFC3339))
	}, "recording on ClusterRegistration %q", request.Name)
}

func (r *GrantReconciler) lifetime() time.Duration {
	return cmp.Or(r.AgentTokenLifetime, DefaultAgentTokenLifetime)
}

// memberNames are the candidates for the name of a Cluster's member, in order.
func memberNames(namespace, cluster string) []string {
	return []string{cluster, shorten(namespace + "-" + cluster)}
}

// shorten shortens a generated name to the length of a member's name.
func shorten(name string) string {
	limit := clusterv1beta1.MaxMemberNameLength
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-hashLength-1], "-") + "-" + hash.Of(name)[:hashLength]
}
