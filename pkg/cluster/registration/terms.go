// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/hmac"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/untrusted"
)

// terms are what a registration token lets its holders have.
type terms struct {
	// approved clusters are used at once, others wait for somebody's approval.
	approved bool
	// labels are the keys that agents may bring; one may end with *.
	labels []string
	// cluster is the only Cluster that the token is for; empty means any.
	cluster string
}

// termsOf reads the annotations of a token. approveInfinite is what goes for a token
// without end that says nothing.
func termsOf(token *registrationv1alpha1.ClusterRegistrationToken, approveInfinite bool) terms {
	_, infinite := registrationv1alpha1.Lifetime(token.Spec.TTL)
	t := terms{
		approved: !infinite || approveInfinite,
		cluster:  token.Annotations[registrationv1alpha1.AnnotationForCluster],
	}
	if approval, ok := token.Annotations[registrationv1alpha1.AnnotationApproval]; ok {
		t.approved = approval == registrationv1alpha1.ApprovalAuto
	}
	allowed, ok := token.Annotations[registrationv1alpha1.AnnotationAllowedLabels]
	if !ok {
		allowed = registrationv1alpha1.DefaultAllowedLabels
	}
	for key := range strings.SplitSeq(allowed, ",") {
		if key = strings.TrimSpace(key); key != "" {
			t.labels = append(t.labels, key)
		}
	}
	return t
}

// allows tells whether an agent may bring the label. The name of its pod it always may.
func (t terms) allows(key string) bool {
	return key == registrationv1alpha1.LabelCreatedByAgentPod || slices.ContainsFunc(t.labels, func(allowed string) bool {
		prefix, isPrefix := strings.CutSuffix(allowed, "*")
		return key == allowed || isPrefix && strings.HasPrefix(key, prefix)
	})
}

// labelsOf are the labels of a request that the terms allow.
func (t terms) labelsOf(request *registrationv1alpha1.ClusterRegistration) map[string]string {
	labels := maps.Clone(request.Spec.ClusterLabels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !t.allows(key) })
	return sanitizeLabels(labels)
}

func unproven(format string, args ...any) *refusal {
	return &refusal{registrationv1alpha1.RegistrationReasonUnproven, fmt.Sprintf(format, args...)}
}

// termsFor finds the token with which a request was made. The label that names it is
// the agent's own word; the proof is not.
func (r *GrantReconciler) termsFor(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (terms, *refusal, error) {
	name := request.Labels[registrationv1alpha1.LabelRegistrationToken]
	if name == "" || len(request.Spec.TokenProof) == 0 {
		return terms{}, unproven("the request does not prove with which ClusterRegistrationToken it was made: " +
			"start the agent with the values of one, all of them, and of this version of the gateway"), nil
	}
	var token registrationv1alpha1.ClusterRegistrationToken
	key := client.ObjectKey{Namespace: request.Namespace, Name: name}
	err := r.Live.Get(ctx, key, &token)
	if client.IgnoreNotFound(err) != nil {
		return terms{}, nil, fmt.Errorf("reading ClusterRegistrationToken %q: %w", name, err)
	}
	if err != nil || lifeOf(&token, r.Clock.Now()).over() {
		return terms{}, unproven("ClusterRegistrationToken %q, with which the request was made, has expired or was deleted: "+
			"give the agent the values of a new one", name), nil
	}
	var secret corev1.Secret
	err = r.Live.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return terms{}, waiting("Secret %q of the registration token is being made again", name), nil
	}
	if err != nil {
		return terms{}, nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	if !metav1.IsControlledBy(&secret, &token) || !isProven(&secret, request) {
		return terms{}, unproven("the request was not made with the present token of ClusterRegistrationToken %q: "+
			"give the agent its values as they are now", name), nil
	}
	return termsOf(&token, r.ApproveInfinite), nil, nil
}

// isProven checks the request's proof with the token in the Secret of values.
func isProven(secret *corev1.Secret, request *registrationv1alpha1.ClusterRegistration) bool {
	var values registrationv1alpha1.AgentValues
	if err := untrusted.Unmarshal(secret.Data[registrationv1alpha1.RegistrationValuesKey], untrusted.Object, &values); err != nil || values.Token == "" {
		return false
	}
	proof, err := registrationv1alpha1.TokenProof(values.Token, request)
	return err == nil && hmac.Equal(proof, request.Spec.TokenProof)
}

// refusedLife is how long a request that is refused stays, for people to read why. Its
// agent makes it again as long as it runs.
func refusedLife(reason string) (time.Duration, bool) {
	switch reason {
	case registrationv1alpha1.RegistrationReasonUnproven:
		return time.Minute, true
	case registrationv1alpha1.RegistrationReasonInvalid, registrationv1alpha1.RegistrationReasonConflict:
		return time.Hour, true
	}
	return 0, false
}
