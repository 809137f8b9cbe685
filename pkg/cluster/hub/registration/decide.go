// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// maxClientID limits an agent's clientID, in bytes.
const maxClientID = 256

func invalid(format string, args ...any) *refusal.Refusal {
	return refusal.New(registrationv1alpha1.RegistrationReasonInvalid, format, args...)
}

func conflict(format string, args ...any) *refusal.Refusal {
	return refusal.New(registrationv1alpha1.RegistrationReasonConflict, format, args...)
}

func waiting(format string, args ...any) *refusal.Refusal {
	return refusal.New(registrationv1alpha1.RegistrationReasonWaiting, format, args...)
}

// refuseRequest checks the request alone, and returns nil if it is valid.
func refuseRequest(request *registrationv1alpha1.ClusterRegistration) *refusal.Refusal {
	spec := request.Spec
	if err := sealing.CheckPublicKey(spec.PublicKey); err != nil {
		return invalid("spec.publicKey is %v: delete this request, and Secret agent-key on the member, then start the agent again", err)
	}
	if want := registrationv1alpha1.RequestName(spec.PublicKey); request.Name != want {
		return invalid("the name must be %q, which follows from spec.publicKey: delete this request and let the agent make its own", want)
	}
	if spec.ClientID == "" || len(spec.ClientID) > maxClientID {
		return invalid("spec.clientID must have 1 to %d bytes: delete this request and start the agent with another client ID", maxClientID)
	}
	return nil
}

// refuseNamespace rejects namespaces in which clusters cannot register.
func refuseNamespace(allowed []string, namespace string) *refusal.Refusal {
	if len(allowed) == 0 || slices.Contains(allowed, namespace) {
		return nil
	}
	return invalid("%s", namespaceNotAllowed(namespace))
}

func namespaceNotAllowed(namespace string) string {
	return fmt.Sprintf("clusters do not register in namespace %q: use one of those in the gateway's --registration-namespaces, or add it there", namespace)
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
	return conflict("Cluster %q has registered with another key: if the agent with that key is gone for good, "+
		"remove the annotation %s from the Cluster, or give this agent a registration token with the annotation %s=%s; "+
		"otherwise give it a client ID of its own",
		cluster.Name, AnnotationKey, registrationv1alpha1.AnnotationForCluster, cluster.Name)
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
		return conflict("MemberCluster %q was not made for Cluster %q: remove the annotations %s and %s from the Cluster",
			mc.Name, cluster.Name, AnnotationMember, AnnotationMemberUID)
	}
	return conflict("MemberCluster %q of Cluster %q was deleted, so this cluster has left: to let it join again, "+
		"remove the annotation %s from the Cluster, or delete the Cluster", name, cluster.Name, AnnotationMemberUID)
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

// isTransferred reports whether the key that owns the Cluster has signed its transfer to the request's
// key.
func isTransferred(cluster *registrationv1alpha1.Cluster, request *registrationv1alpha1.ClusterRegistration) bool {
	key, err := base64.StdEncoding.DecodeString(cluster.Annotations[AnnotationVerificationKey])
	if err != nil || cluster.Annotations[AnnotationKey] == "" {
		return false
	}
	statement, err := registrationv1alpha1.MoveStatement(request)
	return err == nil && sealing.Verify(key, statement, request.Spec.PreviousSignature)
}

// isOrigin reports whether the MemberCluster was created for that Cluster. Only the MemberCluster's
// annotation counts: namespace administrators can write anything on their Clusters.
func isOrigin(mc *clusterv1beta1.MemberCluster, cluster *registrationv1alpha1.Cluster) bool {
	return mc.Annotations[AnnotationClusterUID] == string(cluster.UID)
}

// credentialExpiry is the expiry of the credential in a granted request.
func credentialExpiry(request *registrationv1alpha1.ClusterRegistration, granted metav1.Time, lifetime time.Duration) time.Time {
	recorded, err := time.Parse(time.RFC3339, request.Annotations[AnnotationCredentialExpires])
	if err != nil {
		return granted.Add(lifetime)
	}
	return recorded
}

func grantedCondition(refused *refusal.Refusal) metav1.Condition {
	if refused == nil {
		return metav1.Condition{
			Type:    registrationv1alpha1.RegistrationConditionGranted,
			Status:  metav1.ConditionTrue,
			Reason:  registrationv1alpha1.RegistrationReasonGranted,
			Message: "status.sealedToken contains the member's token, encrypted with spec.publicKey",
		}
	}
	return metav1.Condition{
		Type:    registrationv1alpha1.RegistrationConditionGranted,
		Status:  metav1.ConditionFalse,
		Reason:  refused.Reason,
		Message: refused.Message,
	}
}

// desiredCluster is the Cluster for a clientID that no Cluster has.
func desiredCluster(request *registrationv1alpha1.ClusterRegistration, allowed allowance) *registrationv1alpha1.Cluster {
	name, labels := registrationv1alpha1.ClusterName(request.Spec.ClientID), allowed.labelsOf(request)
	cluster := &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  request.Namespace,
			Name:       name,
			Labels:     labels,
			Finalizers: []string{ClusterFinalizer},
		},
		Spec: registrationv1alpha1.ClusterSpec{ClientID: request.Spec.ClientID},
	}
	record(&cluster.ObjectMeta, request, allowed)
	setOrDelete(&cluster.ObjectMeta, AnnotationBroughtLabels, broughtLabels(labels))
	setOrDelete(&cluster.ObjectMeta, AnnotationDroppedLabels, droppedLabels(request.Spec.ClusterLabels, func(key, value string) dropCause {
		return allowed.causeOf(key, value, labels)
	}))
	metav1.SetMetaDataLabel(&cluster.ObjectMeta, registrationv1alpha1.LabelCluster, name)
	return cluster
}

// record records on a Cluster which key owns it, and whether its member waits for approval.
func record(cluster *metav1.ObjectMeta, request *registrationv1alpha1.ClusterRegistration, allowed allowance) {
	metav1.SetMetaDataAnnotation(cluster, AnnotationKey, sealing.Fingerprint(request.Spec.PublicKey))
	delete(cluster.Annotations, AnnotationVerificationKey)
	if len(request.Spec.VerificationKey) > 0 {
		metav1.SetMetaDataAnnotation(cluster, AnnotationVerificationKey, base64.StdEncoding.EncodeToString(request.Spec.VerificationKey))
	}
	if !allowed.approved {
		metav1.SetMetaDataAnnotation(cluster, registrationv1alpha1.AnnotationApproval, registrationv1alpha1.ApprovalManual)
	}
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

// setOrDelete writes no empty annotation.
func setOrDelete(meta *metav1.ObjectMeta, name, value string) {
	if value == "" {
		delete(meta.Annotations, name)
		return
	}
	metav1.SetMetaDataAnnotation(meta, name, value)
}

// clusterOf is the Cluster with the clientID, the first by name if there are several.
func clusterOf(clusters []registrationv1alpha1.Cluster, clientID string) *registrationv1alpha1.Cluster {
	var found *registrationv1alpha1.Cluster
	for i := range clusters {
		if clusters[i].Spec.ClientID != clientID {
			continue
		}
		if found == nil || strings.Compare(clusters[i].Name, found.Name) < 0 {
			found = &clusters[i]
		}
	}
	return found
}
