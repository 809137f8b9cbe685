// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
)

// maxClientID bounds what an agent may call itself, in bytes.
const maxClientID = 256

// refusal is why a request is not granted, or not yet: the reason and message of its
// condition Granted.
type refusal struct {
	reason, message string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{registrationv1alpha1.RegistrationReasonInvalid, fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) *refusal {
	return &refusal{registrationv1alpha1.RegistrationReasonConflict, fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) *refusal {
	return &refusal{registrationv1alpha1.RegistrationReasonWaiting, fmt.Sprintf(format, args...)}
}

// refuseRequest looks at the request alone, and returns nil if it is well-formed.
func refuseRequest(request *registrationv1alpha1.ClusterRegistration) *refusal {
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

// refuseKey says whether another key has the Cluster.
func refuseKey(cluster *registrationv1alpha1.Cluster, fingerprint string) *refusal {
	registered := cluster.Annotations[AnnotationKey]
	if registered == "" || registered == fingerprint {
		return nil
	}
	return conflict("Cluster %q has registered with another key: if the agent with that key is gone for good, "+
		"remove the annotation %s from the Cluster, or delete the Cluster; otherwise give this agent a client ID of its own",
		cluster.Name, AnnotationKey)
}

// refuseMember says whether the Cluster's MemberCluster, nil if there is none, may
// be given to the request. A Cluster remembers that it had one.
func refuseMember(cluster *registrationv1alpha1.Cluster, mc *clusterv1beta1.MemberCluster) *refusal {
	name, uid := cluster.Annotations[AnnotationMember], cluster.Annotations[AnnotationMemberUID]
	if uid == "" || mc != nil && string(mc.UID) == uid && mc.DeletionTimestamp.IsZero() {
		return nil
	}
	return conflict("MemberCluster %q of Cluster %q was deleted, so this cluster has left: to let it join again, "+
		"remove the annotation %s from the Cluster, or delete the Cluster", name, cluster.Name, AnnotationMemberUID)
}

// refuseUnready says why the member cannot be given a token yet, and nil if it can.
func refuseUnready(mc *clusterv1beta1.MemberCluster) *refusal {
	ready := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionReadyToJoin)
	if ready == nil || ready.ObservedGeneration < mc.Generation {
		return waiting("MemberCluster %q is being prepared", mc.Name)
	}
	if ready.Status != metav1.ConditionTrue {
		return waiting("MemberCluster %q is not ready to join: %s", mc.Name, ready.Message)
	}
	return nil
}

// isOrigin tells whether the MemberCluster was made for that Cluster.
func isOrigin(mc *clusterv1beta1.MemberCluster, cluster *registrationv1alpha1.Cluster) bool {
	return mc.Annotations[AnnotationClusterUID] == string(cluster.UID)
}

// isNewer tells whether the Secret was made after the grant, so that no token granted
// then is bound to it. Both times are in whole seconds; within the same one the Secret
// counts as the older.
func isNewer(secret *corev1.Secret, granted metav1.Time) bool {
	return secret.CreationTimestamp.After(granted.Time)
}

// credentialExpiry is when the credential in a granted request expires.
func credentialExpiry(request *registrationv1alpha1.ClusterRegistration, granted metav1.Time, lifetime time.Duration) time.Time {
	recorded, err := time.Parse(time.RFC3339, request.Annotations[AnnotationCredentialExpires])
	if err != nil {
		return granted.Add(lifetime)
	}
	return recorded
}

func grantedCondition(refused *refusal) metav1.Condition {
	if refused == nil {
		return metav1.Condition{
			Type:    registrationv1alpha1.RegistrationConditionGranted,
			Status:  metav1.ConditionTrue,
			Reason:  registrationv1alpha1.RegistrationReasonGranted,
			Message: "status.sealedToken holds the member's token, sealed to spec.publicKey",
		}
	}
	return metav1.Condition{
		Type:    registrationv1alpha1.RegistrationConditionGranted,
		Status:  metav1.ConditionFalse,
		Reason:  refused.reason,
		Message: refused.message,
	}
}

// desiredCluster is the Cluster that the hub makes for a clientID that none has.
func desiredCluster(request *registrationv1alpha1.ClusterRegistration) *registrationv1alpha1.Cluster {
	name := registrationv1alpha1.ClusterName(request.Spec.ClientID)
	cluster := &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   request.Namespace,
			Name:        name,
			Labels:      sanitizeLabels(request.Spec.ClusterLabels),
			Annotations: map[string]string{AnnotationKey: sealing.Fingerprint(request.Spec.PublicKey)},
			Finalizers:  []string{ClusterFinalizer},
		},
		Spec: registrationv1alpha1.ClusterSpec{ClientID: request.Spec.ClientID},
	}
	metav1.SetMetaDataLabel(&cluster.ObjectMeta, registrationv1alpha1.LabelCluster, name)
	return cluster
}

// desiredMember is the MemberCluster for a Cluster. Its identity is the account that
// pkg/cluster/membership makes in the member's namespace.
func desiredMember(cluster *registrationv1alpha1.Cluster, name string) *clusterv1beta1.MemberCluster {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: sanitizeLabels(cluster.Labels),
		Annotations: map[string]string{
			AnnotationClusterUID:                            string(cluster.UID),
			registrationv1alpha1.AnnotationCluster:          cluster.Name,
			registrationv1alpha1.AnnotationClusterNamespace: cluster.Namespace,
		},
	}}
	mc.Spec.Identity.Kind = "ServiceAccount"
	mc.Spec.Identity.Name = clusterv1beta1.AgentAccount
	mc.Spec.Identity.Namespace = clusterv1beta1.MemberNamespace(name)
	return mc
}

// clusterOf picks the Cluster with the clientID: the first by name, should there be
// several.
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
