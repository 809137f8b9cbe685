// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/hmac"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Defaults are the permissions of registration tokens without annotations. The zero value is what the
// public documents of the API specify.
type Defaults struct {
	// Strict forbids labels from agents, and requires approval of each cluster.
	Strict bool
	// ApproveInfinite approves clusters that register with a token without expiry. It excludes Strict.
	ApproveInfinite bool
}

// allowance is what a registration token permits.
type allowance struct {
	// approved clusters are used at once; others wait for an approval.
	approved bool
	// labels are the keys that agents can set; one can end with *.
	labels []string
	// cluster is the only Cluster that the token is for; empty means any.
	cluster string
	// uses is the number of keys that can register; zero means any number.
	uses int
	// token is the object that records the uses.
	token *registrationv1alpha1.ClusterRegistrationToken
}

// allowanceOf reads the annotations of a token. An invalid token admits no cluster.
func allowanceOf(token *registrationv1alpha1.ClusterRegistrationToken, defaults Defaults) (allowance, *refusal.Refusal) {
	_, infinite := registrationv1alpha1.Lifetime(token.Spec.TTL)
	t := allowance{
		approved: !defaults.Strict && (!infinite || defaults.ApproveInfinite),
		cluster:  token.Annotations[registrationv1alpha1.AnnotationForCluster],
		token:    token,
	}
	if approval, ok := token.Annotations[registrationv1alpha1.AnnotationApproval]; ok {
		t.approved = approval == registrationv1alpha1.ApprovalAuto
	}
	allowed, ok := token.Annotations[registrationv1alpha1.AnnotationAllowedLabels]
	if !ok && !defaults.Strict {
		allowed = registrationv1alpha1.DefaultAllowedLabels
	}
	for key := range strings.SplitSeq(allowed, ",") {
		if key = strings.TrimSpace(key); key != "" {
			t.labels = append(t.labels, key)
		}
	}
	if t.cluster != "" {
		t.uses = 1
	}
	if uses, ok := token.Annotations[registrationv1alpha1.AnnotationUses]; ok {
		n, err := strconv.Atoi(uses)
		if err != nil || n < 1 || n > registrationv1alpha1.MaxUses {
			return t, refusal.New(registrationv1alpha1.RegistrationReasonTokenInvalid,
				"annotation %s of ClusterRegistrationToken %q is no whole number from 1 to %d: correct it, or take it off to let any number of clusters register",
				registrationv1alpha1.AnnotationUses, token.Name, registrationv1alpha1.MaxUses)
		}
		t.uses = n
	}
	return t, nil
}

// allows reports whether an agent can set the label. It can always set the name of its pod.
func (t allowance) allows(key string) bool {
	return key == registrationv1alpha1.LabelCreatedByAgentPod || slices.ContainsFunc(t.labels, func(allowed string) bool {
		prefix, isPrefix := strings.CutSuffix(allowed, "*")
		if isPrefix && prefix == "" {
			return !registrationv1alpha1.IsProviderLabel(key)
		}
		return key == allowed || isPrefix && strings.HasPrefix(key, prefix)
	})
}

// labelsOf are the allowed labels of a request.
func (t allowance) labelsOf(request *registrationv1alpha1.ClusterRegistration) map[string]string {
	labels := maps.Clone(request.Spec.ClusterLabels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !t.allows(key) })
	return sanitizeLabels(labels)
}

func unproven(format string, args ...any) *refusal.Refusal {
	return refusal.New(registrationv1alpha1.RegistrationReasonUnproven, format, args...)
}

// allowanceFor finds the token with which a request was made. The label with its name is only a claim
// of the agent; the proof is verified.
func (r *GrantReconciler) allowanceFor(ctx context.Context, request *registrationv1alpha1.ClusterRegistration) (allowance, *refusal.Refusal, error) {
	name := request.Labels[registrationv1alpha1.LabelRegistrationToken]
	if name == "" || len(request.Spec.TokenProof) == 0 {
		return allowance{}, unproven("the request does not prove with which ClusterRegistrationToken it was made: " +
			"start the agent with the values of one, all of them, and of this version of the gateway"), nil
	}
	var token registrationv1alpha1.ClusterRegistrationToken
	key := client.ObjectKey{Namespace: request.Namespace, Name: name}
	err := r.Live.Get(ctx, key, &token)
	if client.IgnoreNotFound(err) != nil {
		return allowance{}, nil, fmt.Errorf("reading ClusterRegistrationToken %q: %w", name, err)
	}
	if err != nil || lifeOf(&token, r.Clock.Now()).over() {
		return allowance{}, unproven("ClusterRegistrationToken %q, with which the request was made, has expired or was deleted: "+
			"give the agent the values of a new one", name), nil
	}
	var secret corev1.Secret
	err = r.Live.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return allowance{}, waiting("Secret %q of the registration token is being made again", name), nil
	}
	if err != nil {
		return allowance{}, nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	if !metav1.IsControlledBy(&secret, &token) || !isProven(&secret, request) {
		return allowance{}, unproven("the request was not made with the present token of ClusterRegistrationToken %q: "+
			"give the agent its values as they are now", name), nil
	}
	t, refused := allowanceOf(&token, r.Defaults)
	return t, refused, nil
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

// refusedLife is how long a rejected request is kept, so that people can read the reason. Its agent
// re-creates it while it runs. A waiting request stays at least as long
// as its token.
func refusedLife(reason string) (time.Duration, bool) {
	switch reason {
	case registrationv1alpha1.RegistrationReasonUnproven,
		registrationv1alpha1.RegistrationReasonTokenUseLimitReached, registrationv1alpha1.PreviousTokenUseLimitReached, registrationv1alpha1.RegistrationReasonTokenInvalid:
		return time.Minute, true
	case registrationv1alpha1.RegistrationReasonInvalid, registrationv1alpha1.RegistrationReasonConflict:
		return time.Hour, true
	case registrationv1alpha1.RegistrationReasonWaiting:
		return 10 * time.Minute, true
	}
	return 0, false
}
