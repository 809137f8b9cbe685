// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxClientID limits an agent's clientID, in bytes.
const maxClientID = 256

// Validation is the first step of a registration: has the request the right form, and who made it?

// applicant is a valid request.
type applicant struct {
	request *registrationv1alpha1.ClusterRegistration
	// fingerprint is that of the request's key.
	fingerprint string
	// cluster has the request's client ID; nil if none has.
	cluster *registrationv1alpha1.Cluster
	// owns is set if the request's key owns the Cluster. It needs no other proof: only the agent with
	// that key can decrypt the credential.
	owns bool
	// allowed is what a registration token permits to any other key, or the signature of the owning key.
	allowed allowance
}

// validate checks form and authenticity of a request.
func (r *GrantReconciler) validate(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (*applicant, *refusal.Refusal, error) {
	if refused := cmp.Or(refuseNamespace(r.Namespaces, request.Namespace), refuseRequest(request)); refused != nil {
		return nil, refused, nil
	}
	a := &applicant{request: request, fingerprint: sealing.Fingerprint(request.Spec.PublicKey)}
	var clusters registrationv1alpha1.ClusterList
	// Only the result is copied.
	if err := r.Client.List(ctx, &clusters, client.InNamespace(request.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Clusters: %w", err)
	}
	if a.cluster = clusterOf(clusters.Items, request.Spec.ClientID).DeepCopy(); a.cluster != nil {
		if refused := refuseCluster(a.cluster); refused != nil {
			return nil, refused, nil
		}
		if a.owns = a.cluster.Annotations[AnnotationKey] == a.fingerprint; a.owns {
			return a, nil, nil
		}
		if isTransferred(a.cluster, request) {
			a.allowed = allowance{approved: true, cluster: a.cluster.Name}
			return a, nil, nil
		}
	}
	token, secret, err := r.tokenOf(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	if refused := refuseToken(request, token, secret); refused != nil {
		return nil, refused, nil
	}
	var refused *refusal.Refusal
	a.allowed, refused = allowanceOf(token, r.Defaults)
	return a, refused, nil
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

// refuseRequest rejects a malformed request.
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

// clusterOf is the Cluster with the clientID, the first by name if there are several.
func clusterOf(clusters []registrationv1alpha1.Cluster, clientID string) *registrationv1alpha1.Cluster {
	var found *registrationv1alpha1.Cluster
	for i := range clusters {
		if cluster := &clusters[i]; cluster.Spec.ClientID == clientID && (found == nil || cluster.Name < found.Name) {
			found = cluster
		}
	}
	return found
}

// refuseCluster rejects a Cluster that nobody can register now.
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

// tokenOf reads the token with which a request was made, and its Secret of values; nil if they do not
// exist or the token has expired. The label with its name is only a claim of the agent.
func (r *GrantReconciler) tokenOf(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (*registrationv1alpha1.ClusterRegistrationToken, *corev1.Secret, error) {
	name := request.Labels[registrationv1alpha1.LabelRegistrationToken]
	if name == "" {
		return nil, nil, nil
	}
	key := client.ObjectKey{Namespace: request.Namespace, Name: name}
	token, secret := &registrationv1alpha1.ClusterRegistrationToken{}, &corev1.Secret{}
	if found, err := reconcileutil.GetIfExists(ctx, r.Live, key, token, "reading ClusterRegistrationToken %q", name); !found || lifeOf(token, r.Clock.Now()).over() {
		return nil, nil, err
	}
	if found, err := reconcileutil.GetIfExists(ctx, r.Live, key, secret, "reading Secret %q", name); !found {
		return token, nil, err
	}
	return token, secret, nil
}

// refuseToken rejects a request that was not made with the token that it names. The token and its
// Secret of values are nil if they do not exist or the token has expired.
func refuseToken(request *registrationv1alpha1.ClusterRegistration, token *registrationv1alpha1.ClusterRegistrationToken, secret *corev1.Secret) *refusal.Refusal {
	name := request.Labels[registrationv1alpha1.LabelRegistrationToken]
	switch {
	case name == "" || len(request.Spec.TokenProof) == 0:
		return unproven("the request does not prove with which ClusterRegistrationToken it was made: " +
			"start the agent with the values of one, all of them, and of this version of the gateway")
	case token == nil:
		return unproven("ClusterRegistrationToken %q, with which the request was made, has expired or was deleted: "+
			"give the agent the values of a new one", name)
	case secret == nil:
		return waiting("Secret %q of the registration token is being made again", name)
	case !metav1.IsControlledBy(secret, token) || !isProven(secret, request):
		return unproven("the request was not made with the present token of ClusterRegistrationToken %q: "+
			"give the agent its values as they are now", name)
	}
	return nil
}

// isProven verifies the request's proof with the token in the Secret of values.
func isProven(secret *corev1.Secret, request *registrationv1alpha1.ClusterRegistration) bool {
	var values registrationv1alpha1.AgentValues
	if err := untrusted.Unmarshal(secret.Data[registrationv1alpha1.RegistrationValuesKey], untrusted.Object, &values); err != nil || values.Token == "" {
		return false
	}
	proof, err := registrationv1alpha1.TokenProof(values.Token, request)
	return err == nil && hmac.Equal(proof, request.Spec.TokenProof)
}

func invalid(format string, args ...any) *refusal.Refusal {
	return &refusal.Refusal{Reason: registrationv1alpha1.RegistrationReasonInvalid, Message: fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) *refusal.Refusal {
	return &refusal.Refusal{Reason: registrationv1alpha1.RegistrationReasonConflict, Message: fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) *refusal.Refusal {
	return &refusal.Refusal{Reason: registrationv1alpha1.RegistrationReasonWaiting, Message: fmt.Sprintf(format, args...)}
}

func unproven(format string, args ...any) *refusal.Refusal {
	return &refusal.Refusal{Reason: registrationv1alpha1.RegistrationReasonUnproven, Message: fmt.Sprintf(format, args...)}
}

// refuseMemberName is a message why a member cannot have the Cluster's name, or "".
func refuseMemberName(cluster string) string {
	if len(cluster) > clusterv1beta1.MaxMemberNameLength {
		return fmt.Sprintf("the Cluster's name has %d characters, a member's name may have at most %d: "+
			"make the Cluster again with a shorter name", len(cluster), clusterv1beta1.MaxMemberNameLength)
	}
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		return fmt.Sprintf("the Cluster's name %q is no DNS label (lower-case letters, digits and '-'), as a member's name must be: "+
			"make the Cluster again with another name", cluster)
	}
	return ""
}
